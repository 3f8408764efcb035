"""Everything on the node with the most cpu, or on the one that `node` names."""

from __future__ import annotations

from dataclasses import dataclass

from towpath.config.settings import meant
from towpath.errors import Mistake, PlannerError
from towpath.placement.copies import with_copies
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    node: str | None = None  # the one with the most cpu if it is not named


def plan(problem: Problem, options: Options) -> Placement:
    node = options.node or max(problem.cluster.nodes, key=lambda node: node.cpu).name
    if node not in problem.cluster.position:
        mistake = Mistake("node", f"{node} is not in the cluster", meant(node, problem.cluster.position))
        raise PlannerError("options of the planner single", [mistake])
    return with_copies(problem, {fragment.name: node for fragment in problem.fragments})
