"""Every fragment on its native node, else where the heaviest of its inputs is made.

A baseline of SBON's Table 1, and the static strategy of Zhou et al.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from towpath.placement.copies import with_copies
from towpath.placement.flows import Flow, flows
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    pass


def plan(problem: Problem, options: Options) -> Placement:
    heaviest: dict[str, Flow] = {}
    for flow in flows(problem):
        if flow.consumer not in heaviest or flow.bytes > heaviest[flow.consumer].bytes:
            heaviest[flow.consumer] = flow
    return with_copies(problem, {f.name: _node(problem, f.name, heaviest) for f in problem.fragments})


def _node(problem: Problem, fragment: str, heaviest: Mapping[str, Flow]) -> str:
    seen: set[str] = set()
    while fragment not in seen:
        seen.add(fragment)
        if fragment in problem.pinned:
            return problem.pinned[fragment]
        native = problem.native_node(problem.fragment[fragment])
        if native is not None:
            return native
        producer = heaviest[fragment].producer
        if producer in problem.stream:
            return problem.stream[producer].node or problem.cluster.nodes[0].name
        fragment = problem.home[producer]
    return problem.cluster.nodes[0].name  # fragments that feed each other more than any stream does
