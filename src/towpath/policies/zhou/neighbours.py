"""Who is near whom, as in Zhou et al., section 3.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from towpath.placement.problem import Problem


def neighbours(problem: Problem) -> Mapping[str, tuple[str, ...]]:
    """The fragments directly upstream and downstream of each fragment."""
    found: dict[str, dict[str, None]] = {fragment.name: {} for fragment in problem.fragments}
    for fragment in problem.fragments:
        for name in (i for operator in fragment.operators for i in operator.inputs if i in problem.home):
            if (upstream := problem.home[name]) != fragment.name:
                found[fragment.name][upstream] = None
                found[upstream][fragment.name] = None
    return {name: tuple(near) for name, near in found.items()}


def neighbouring_factors(problem: Problem) -> Mapping[str, Mapping[str, int]]:
    """By node and node: how many pairs of neighbouring fragments have the two as their native nodes."""
    factors: dict[str, Counter[str]] = {node.name: Counter() for node in problem.cluster.nodes}
    for name, near in neighbours(problem).items():
        here = problem.native_node(problem.fragment[name])
        for other in near:
            there = problem.native_node(problem.fragment[other])
            if here is not None and there is not None and here != there:
                factors[here][there] += 1
    return factors
