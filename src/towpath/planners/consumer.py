"""Every fragment on the node that wants the results; without one, on the first node. A baseline of SBON's Table 1."""

from __future__ import annotations

from dataclasses import dataclass

from towpath.placement.copies import with_copies
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    pass


def plan(problem: Problem, options: Options) -> Placement:
    first = problem.cluster.nodes[0].name
    return with_copies(problem, {f.name: problem.query[f.query].sink or first for f in problem.fragments})
