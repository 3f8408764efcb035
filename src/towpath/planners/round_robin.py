"""Each fragment on the node with the fewest operators: D-CAPE's round robin (Algorithm 2).

Fragments are taken in the order in which their query names them. Nodes without cpu only hand streams on: they get a
copy only when there are not enough others.
"""

from __future__ import annotations

from dataclasses import dataclass

from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    """There is nothing to choose."""


def plan(problem: Problem, options: Options) -> Placement:
    # Sorting is stable: first the nodes with cpu, and of two equals the earlier one.
    nodes = [node.name for node in sorted(problem.cluster.nodes, key=lambda node: node.cpu <= 0)]
    able = sum(node.cpu > 0 for node in problem.cluster.nodes) or len(nodes)
    workload = dict.fromkeys(nodes, 0)
    placed: dict[str, tuple[str, ...]] = {}
    for query in problem.queries:
        for name in query.fragments:
            pinned = [problem.pinned[name]] if name in problem.pinned else []
            dealt = [*sorted(nodes[:able], key=workload.__getitem__), *nodes[able:]]
            placed[name] = (*pinned, *(node for node in dealt if node not in pinned))[: query.copies]
            for node in placed[name]:
                workload[node] += len(problem.fragment[name].operators)
    return Placement(placed)
