"""SODA, which SQPR is compared with: queries are admitted by the cpu of all nodes together, and placed afterwards.

Three stages for each epoch of queries: macroQ admits, macroW places all operators by a program that balances the load,
miniW moves single operators or, where macroW finds nothing, places what it can. Equal fragments run once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from towpath.placement.costs.sqpr import weights_for
from towpath.placement.problem import Placement, Problem
from towpath.reuse.admission import SolveLimits
from towpath.reuse.fragments import RULES, of_problem
from towpath.reuse.soda import Soda

OBJECTIVE = "sqpr.O4"
RESPECTS = {"structure", "resources"}


@dataclass(frozen=True)
class Options:
    epoch: int = 50  # queries that are planned together
    branches: int = 20  # of the tree that is searched for each epoch, at most; 0: all. The same answer in every run
    seconds: float = 0.0  # of the processor, to search for a placement of an epoch; 0: as long as that takes
    gap: float = 1e-4  # of the objective, to the best possible: closer is not looked for


def plan(problem: Problem, options: Options) -> Placement:
    fragments = of_problem(problem)
    balance = replace(RULES, weights=replace(weights_for(problem.cluster), cpu=0.0))
    soda = Soda(fragments.system, SolveLimits(options.seconds, options.gap, branches=options.branches), balance)
    refused = {q.name: "asks for copies, which this planner cannot place" for q in problem.queries if q.copies > 1}
    names = [query.name for query in problem.queries if query.name not in refused]
    size = max(options.epoch, 1)
    for first in range(0, len(names), size):
        group = names[first : first + size]
        for name in group:
            if absent := sorted(fragments.needs[name] - soda.allocation.admitted):
                refused[name] = f"reads from {absent[0]}, which has not been admitted"
        admitted = soda.epoch([fragments.system.request[name] for name in group if name not in refused])
        for name in group:
            if name not in admitted:
                refused.setdefault(name, "the nodes have no room for it beside those that were admitted first")
    return fragments.placement(soda.allocation, refused)
