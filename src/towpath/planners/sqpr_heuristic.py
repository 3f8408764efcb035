"""The heuristic planner that SQPR is compared with: each query on one node, with what others already make.

Section V-A of Kalyvianaki et al.: for every node, the query's fragments there that are not running elsewhere; the
cheapest way that fits is taken. What was placed is not moved again. A fragment with a node of its own (pinned) that is
not running yet keeps its query off all other nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from towpath.placement.problem import Placement, Problem
from towpath.reuse.fragments import RULES, of_problem
from towpath.reuse.heuristic import Heuristic

OBJECTIVE = "sqpr.objective"
RESPECTS = {"structure", "resources"}


@dataclass(frozen=True)
class Options:
    pass


def plan(problem: Problem, options: Options) -> Placement:
    fragments = of_problem(problem)
    heuristic = Heuristic(fragments.system, rules=RULES)
    refused: dict[str, str] = {}
    for query in problem.queries:
        absent = sorted(fragments.needs[query.name] - heuristic.allocation.admitted)
        if query.copies > 1:
            refused[query.name] = "asks for copies, which this planner cannot place"
        elif absent:
            refused[query.name] = f"reads from {absent[0]}, which has not been admitted"
        elif not heuristic.submit(fragments.system.request[query.name]):
            refused[query.name] = "no node has room for all of it that is not running yet"
    return fragments.placement(heuristic.allocation, refused)
