"""Kalyvianaki et al. (SQPR): admission, placement and reuse in one mixed-integer program, query by query.

Algorithm 1 of the paper: queries come in their order; with each, what could be part of a plan for it is placed anew,
and everything else stays where it is. Who was admitted stays. Fragments that make equal streams run once. A query that
does not fit is refused, with the resource that it would need more of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from towpath.placement.problem import Placement, Problem
from towpath.reuse.admission import AdmissionOutcome, SolveLimits, binding, submit
from towpath.reuse.allocation import Allocation
from towpath.reuse.fragments import RULES, Fragments, of_problem
from towpath.reuse.system import StreamRequest

OBJECTIVE = "sqpr.objective"
RESPECTS = {"structure", "resources"}


@dataclass(frozen=True)
class Options:
    batch: int = 1  # queries to plan at once
    branches: int = 200  # of the tree that is searched for each query, at most; 0: all. The same answer in every run
    seconds: float = 0.0  # of the processor, to search for each query; 0: as long as that takes
    gap: float = 1e-4  # of the objective, to the best possible: closer is not looked for


def plan(problem: Problem, options: Options) -> Placement:
    fragments = of_problem(problem)
    allocation = Allocation()
    refused = {q.name: "asks for copies, which this planner cannot place" for q in problem.queries if q.copies > 1}
    size = max(options.batch, 1)
    limits = SolveLimits(options.seconds * size, options.gap, branches=options.branches)
    names = [query.name for query in problem.queries if query.name not in refused]
    for first in range(0, len(names), size):
        group = _with_inputs(fragments, names[first : first + size], allocation, refused)
        outcome = submit(fragments.system, allocation, group, limits, RULES)
        allocation = outcome.allocation
        missing = [request for request in group if request.name not in outcome.admitted]
        refused |= {request.name: _reason(fragments, outcome, request, limits) for request in missing}
    return fragments.placement(allocation, refused)


def _with_inputs(
    fragments: Fragments, names: Sequence[str], allocation: Allocation, refused: dict[str, str]
) -> list[StreamRequest]:
    """The requests whose queries read from admitted ones only; the others are refused."""
    found = []
    for name in names:
        if absent := sorted(fragments.needs[name] - allocation.admitted):
            refused[name] = f"reads from {absent[0]}, which has not been admitted"
        else:
            found.append(fragments.system.request[name])
    return found


def _reason(fragments: Fragments, outcome: AdmissionOutcome, request: StreamRequest, limits: SolveLimits) -> str:
    if outcome.status == "out of time":
        return "no place was found for it in time; allow more branches or seconds"
    short = binding(fragments.system, outcome.allocation, request, limits, RULES)
    if not short:
        return "it would take more of several resources at once"
    return f"it would take more {' or more '.join(short)}"
