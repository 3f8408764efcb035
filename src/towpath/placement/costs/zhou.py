"""Performance ratios of Zhou, Ooi, Tan and Wu, section 2.2, predicted from the problem's numbers.

The paper's t_c is one constant; here it is the latency of the link plus the time the tuple takes through its bandwidth
and through the medium, without waiting for others.
The paper's nodes are alike; here a node of cpu c takes t_j / c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from towpath.placement.costs.load import loads
from towpath.placement.paths import Path, nodes_on, paths
from towpath.placement.problem import Placement, Problem

Slowdown = Callable[[float], float]  # f(rho): how much longer than its processing time a tuple stays on a node


def m_m_1(rho: float) -> float:
    """f(rho) = 1 / (1 - rho), as in an M/M/1 queue; without bound where a node cannot keep up."""
    return 1 / (1 - rho) if rho < 1 else inf


@dataclass(frozen=True, slots=True)
class Ratios:
    pr: float
    ppr: float
    cpr: float


def evaluation_times(problem: Problem, path: Path) -> list[float]:
    """t_j = t'_j * product over h < j of max(sel_h, 1): only tuples that end in a result are counted."""
    times: list[float] = []
    tuples = 1.0
    for name in path.operators:
        operator = problem.operator[name]
        times.append(operator.cost * tuples)
        tuples *= max(operator.selectivity, 1.0)
    return times


def processing_time(problem: Problem, path: Path) -> float:
    """p_k^l (eq. 1)."""
    return sum(evaluation_times(problem, path))


def node_delay(
    problem: Problem, path: Path, nodes: Sequence[str], rho: Mapping[str, float], f: Slowdown = m_m_1
) -> float:
    """The first term of d_k^l (eq. 2): the time on the nodes, waiting included."""
    cpu = {node: problem.cluster.nodes[problem.cluster.position[node]].cpu for node in nodes}
    times = zip(nodes, evaluation_times(problem, path), strict=True)
    return sum(_stay(f, rho.get(node, inf), t, cpu[node]) for node, t in times)


def _stay(f: Slowdown, rho: float, t: float, cpu: float) -> float:
    return f(rho) * t / cpu if t > 0 and cpu > 0 else inf if t > 0 else 0.0


def transfer_delay(problem: Problem, path: Path, nodes: Sequence[str]) -> float:
    """The second term of d_k^l (eq. 2), t_c * m: the time between nodes; delivery to the user is not in it."""
    stream = problem.stream[path.stream]
    sizes = (stream.tuple_bytes, *(problem.operator[name].tuple_bytes for name in path.operators))
    hops = zip(pairwise((stream.node or nodes[0], *nodes)), sizes, strict=False)
    cluster = problem.cluster
    return sum(
        cluster.latency(a, b) + size / cluster.bandwidth(a, b) + size / cluster.network.medium
        for (a, b), size in hops
        if a != b
    )


def ratios(problem: Problem, placement: Placement, f: Slowdown = m_m_1) -> Mapping[str, Ratios]:
    """PR_k, PPR_k and CPR_k of every query that runs: the largest over its streams (eqs. 3 to 5)."""
    rho = loads(problem, placement)
    found: dict[str, Ratios] = {}
    for query, path in paths(problem):
        nodes = nodes_on(problem, placement, query, path)
        if not nodes:
            continue
        p = processing_time(problem, path)
        ppr = _ratio(node_delay(problem, path, nodes, rho, f), p, 1.0)  # eq. 4
        cpr = _ratio(transfer_delay(problem, path, nodes), p, 0.0)  # eq. 5
        worst = found.get(query, Ratios(0.0, 0.0, 0.0))
        found[query] = Ratios(max(worst.pr, ppr + cpr), max(worst.ppr, ppr), max(worst.cpr, cpr))  # eq. 3
    return found


def _ratio(delay: float, p: float, without_work: float) -> float:
    """A query that takes no time to process has no delay on its nodes either, but any transfer is infinitely worse."""
    return delay / p if p > 0 else inf if delay > 0 else without_work


def pr_max(problem: Problem, placement: Placement) -> float:
    """PR_max: the performance ratio of the worst query."""
    return max((r.pr for r in ratios(problem, placement).values()), default=0.0)


def ppr_max(problem: Problem, placement: Placement) -> float:
    return max((r.ppr for r in ratios(problem, placement).values()), default=0.0)


def cpr_max(problem: Problem, placement: Placement) -> float:
    return max((r.cpr for r in ratios(problem, placement).values()), default=0.0)
