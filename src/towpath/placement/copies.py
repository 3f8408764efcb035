"""From one node for each fragment to as many as its query wants."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from towpath.placement.problem import Placement, Problem


def with_copies(problem: Problem, nodes: Mapping[str, str]) -> Placement:
    """Each fragment on its pinned node, else on the node given, and its further copies on the nodes that follow."""
    all_nodes = problem.cluster.nodes
    position = problem.cluster.position

    def places(fragment: str, node: str) -> tuple[str, ...]:
        if fragment in problem.pinned:
            return (problem.pinned[fragment],)
        copies = problem.query[problem.fragment[fragment].query].copies
        following = (all_nodes[(position[node] + n) % len(all_nodes)] for n in range(1, len(all_nodes)))
        return (node, *islice((other.name for other in following if other.cpu > 0), copies - 1))

    return Placement({fragment: places(fragment, node) for fragment, node in nodes.items()})
