"""Network usage and delay of Pietzuch et al. (SBON), sections 2.3 and 4.1."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean

from towpath.placement.flows import usage
from towpath.placement.index import latencies
from towpath.placement.paths import nodes_on, paths
from towpath.placement.problem import Placement, Problem


def network_usage(problem: Problem, placement: Placement) -> float:
    """u = sum over links l of DR(l) * Lat(l) (eq. 1): the bytes in transit."""
    used = usage(problem, placement)
    return float(used.bytes @ latencies(problem.cluster, used.source, used.target))


def delays(problem: Problem, placement: Placement) -> Mapping[str, float]:
    """Of every query that runs, the latency of its slowest path, from the stream's node to the sink."""
    slowest: dict[str, float] = {}
    for query, path in paths(problem):
        nodes = nodes_on(problem, placement, query, path)
        if nodes:
            way = filter(None, (problem.stream[path.stream].node, *nodes, problem.query[query].sink))
            seconds = sum(problem.cluster.latency(a, b) for a, b in pairwise(way))
            slowest[query] = max(slowest.get(query, 0.0), seconds)
    return slowest


def delay(problem: Problem, placement: Placement) -> float:
    """The mean of `delays`."""
    return fmean(delays(problem, placement).values() or (0.0,))
