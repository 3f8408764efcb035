"""Every fragment where the routes of its inputs to the sink meet. A baseline of SBON's Table 1.

The routes from the streams of a query to its sink make a tree, as that of IP multicast the other way round: an operator
stands at the router where the last two of its inputs come together, so no tuple leaves its route.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from towpath.placement.cluster import Cluster
from towpath.placement.copies import with_copies
from towpath.placement.flows import flows
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    pass


def plan(problem: Problem, options: Options) -> Placement:
    inputs: dict[str, list[str]] = {fragment.name: [] for fragment in problem.fragments}
    for flow in flows(problem):
        inputs[flow.consumer].append(flow.producer)
    placed: dict[str, str] = dict(problem.pinned)
    for fragment in problem.fragments:
        _place(problem, fragment.name, inputs, placed)
    return with_copies(problem, placed)


def _place(problem: Problem, fragment: str, inputs: dict[str, list[str]], placed: dict[str, str]) -> None:
    """Those that it reads come first."""
    waiting = [fragment]
    while waiting:
        name = waiting[-1]
        homes = [problem.home[p] for p in inputs[name] if p not in problem.stream]
        below = [home for home in homes if home not in placed and home not in waiting]
        if name not in placed and below:
            waiting += below
            continue
        waiting.pop()
        if name not in placed:
            sink = problem.query[problem.fragment[name].query].sink or problem.cluster.nodes[0].name
            streams = [problem.stream[p].node for p in inputs[name] if p in problem.stream]
            sources = [*filter(None, streams), *(placed[home] for home in homes if home in placed)]
            placed[name] = _meeting(problem.cluster, sources, sink)


def _meeting(cluster: Cluster, sources: Sequence[str], sink: str) -> str:
    """The first node that the routes of all have in common."""
    routes = [cluster.route(source, sink) for source in sources]
    others = [set(route) for route in routes[1:]]
    return next((node for node in (routes[0] if routes else ()) if all(node in route for route in others)), sink)
