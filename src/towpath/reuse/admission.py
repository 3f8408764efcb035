"""Algorithm 1: requests one at a time, or a few at once, everything that is unrelated to them fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from towpath.placement.index import Floats
from towpath.placement.violation import Violation
from towpath.reuse.allocation import Allocation
from towpath.reuse.check import check
from towpath.reuse.heuristic import Heuristic
from towpath.reuse.model import Model, Rules
from towpath.reuse.solver import Solution, SolverStatus
from towpath.reuse.system import StreamRequest, System
from towpath.reuse.translate import decode, encode

RESOURCES = ("cpu", "memory", "bandwidth", "link")


@dataclass(frozen=True)
class SolveLimits:
    seconds: float = (
        0.0  # of the processor, to search for at most; 0: until the best is proven, the same answer in every run
    )
    gap: float = 1e-4  # to the best possible that counts as none


TO_THE_END = SolveLimits()


@dataclass(frozen=True)
class AdmissionOutcome:
    allocation: Allocation
    admitted: frozenset[str]  # of the requests that were submitted
    status: SolverStatus
    gap: float  # of `feasible`: how much better the objective might still become
    seconds: float  # of the search
    changed: tuple[str, ...]  # the nodes that have to be told


class InvalidAllocationError(Exception):
    """The solver's answer breaks a rule: a fault of the model, and never of the user."""

    def __init__(self, faults: Sequence[Violation]) -> None:
        super().__init__("; ".join(map(str, faults)))


def submit(
    system: System,
    current: Allocation,
    requests: Sequence[StreamRequest],
    limits: SolveLimits = TO_THE_END,
    rules: Rules | None = None,
) -> AdmissionOutcome:
    """Admits what can be admitted of the requests. Those that were admitted before stay so."""
    served = [request for request in requests if _is_served(request, current)]
    known = frozenset(request.name for request in served)
    current = replace(current, admitted=current.admitted | known)
    wanted = [request for request in requests if request.name not in known]
    if not wanted:
        return AdmissionOutcome(current, known, "optimal", 0.0, 0.0, ())
    # One request: it is admitted or there is no solution. Several: as many as possible, by lambda_1.
    model = Model(system, current, wanted, forced=len(wanted) == 1, rules=rules)
    solution = model.program.solve(limits.seconds, limits.gap, _start(model, wanted))
    return _outcome(model, solution, current, wanted, known)


def _is_served(request: StreamRequest, current: Allocation) -> bool:
    """It was admitted, or another one that asks for the same was (line 3)."""
    same = request.sink is None and all(stream in current.provides for stream in request.streams)
    return same or request.name in current.admitted


def _start(model: Model, wanted: Sequence[StreamRequest]) -> Floats | None:
    """What runs, and what the heuristic admits beside it."""
    heuristic = Heuristic(model.system, model.current, model.rules)
    admitted = [heuristic.submit(request) for request in wanted]
    return encode(model, heuristic.allocation) if all(admitted) or len(wanted) > 1 else None


def _outcome(
    model: Model, solution: Solution, current: Allocation, wanted: Sequence[StreamRequest], known: frozenset[str]
) -> AdmissionOutcome:
    if solution.values is None:
        return AdmissionOutcome(current, known, solution.status, solution.gap, solution.seconds, ())
    found = decode(model, solution.values)
    fresh = found.admitted.intersection(request.name for request in wanted)
    if not fresh:
        found = current  # nothing to gain from moving things about
    elif faults := _new_faults(model.system, current, found):
        raise InvalidAllocationError(faults)
    changed = tuple(found.changed(current))
    return AdmissionOutcome(found, known | fresh, solution.status, solution.gap, solution.seconds, changed)


def _new_faults(system: System, before: Allocation, now: Allocation) -> list[Violation]:
    """What is wrong now and was not before: rates may have risen since, and have filled what had room."""
    if not (faults := check(system, now)):
        return []
    known = {(fault.kind, fault.where) for fault in check(system, before)}
    return [fault for fault in faults if (fault.kind, fault.where) not in known]


def binding(
    system: System, current: Allocation, request: StreamRequest, limits: SolveLimits, rules: Rules
) -> list[str]:
    """The resources each of which alone would be enough to admit the request, if it had no limit.

    Empty: it takes more of several, or the time is not enough to tell.
    """
    found = []
    for resource in RESOURCES:
        relaxed = Rules(rules.relays, rules.once, rules.weights, frozenset({resource}))
        solution = Model(system, current, [request], True, relaxed).program.solve(limits.seconds, limits.gap)
        if solution.values is not None:
            found.append(resource)
    return found
