"""The planner `zhou`: where the dynamic placement of Zhou et al. starts from."""

from __future__ import annotations

from dataclasses import dataclass

from towpath.placement.problem import Placement, Problem
from towpath.planners import producer


@dataclass(frozen=True)
class Options:
    pass


def plan(problem: Problem, options: Options) -> Placement:
    """Every fragment on the delegation node of its stream (section 3.1, step 5); balancing is left to the policy."""
    return producer.plan(problem, producer.Options())
