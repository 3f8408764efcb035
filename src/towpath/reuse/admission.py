"""Algorithm 1: requests one at a time, or a few at once, everything that is unrelated to them fixed.

What is unrelated the paper says twice: formally, whatever can be no part of a plan for the request; in words, queries
that share no stream with it. The first makes a small program. When that has no solution for a request, the second is
tried: admitted queries that could share most with it are planned anew together with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from towpath.placement.index import Floats
from towpath.placement.violation import Violation
from towpath.reuse.allocation import Allocation
from towpath.reuse.check import check
from towpath.reuse.heuristic import Heuristic
from towpath.reuse.model import Model, Rules
from towpath.reuse.solver import Solution, SolverStatus
from towpath.reuse.system import StreamRequest, System
from towpath.reuse.translate import decode, encode

# Of the objective, with a request that need not be admitted: lambda_1 is so much of it that only a solution that admits
# the request can be this close to the best possible while that might still be done.
ADMITTED = 0.2
RESOURCES = ("cpu", "memory", "bandwidth", "link")


@dataclass(frozen=True)
class SolveLimits:
    seconds: float = (
        0.0  # of the processor, to search for at most; 0: until the best is proven, the same answer in every run
    )
    gap: float = 1e-4  # to the best possible that counts as none
    beside: int = 0  # admitted requests that are planned anew with one that has no room otherwise
    beside_seconds: float = 0.0  # of `seconds`, what may be spent on that; 0: whatever is left
    idle: int | None = None  # of nodes that have nothing of what is planned, how many are looked at before all are
    branches: int = 0  # of the tree that is searched, at most; 0: all. The same answer in every run, unlike `seconds`


TO_THE_END = SolveLimits()


@dataclass(frozen=True)
class AdmissionOutcome:
    allocation: Allocation
    admitted: frozenset[str]  # of the requests that were submitted
    status: SolverStatus
    gap: float  # of `feasible`: how much better the objective might still become
    seconds: float  # of the search
    changed: tuple[str, ...]  # the nodes that have to be notified


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
    seconds, proven = 0.0, True
    for model, start, gap in _programs(system, current, wanted, limits, rules):
        left = limits.seconds and limits.seconds - seconds
        if limits.seconds and left <= 0:
            proven = False
            break
        if model.beside and limits.beside_seconds:
            left = min(left or limits.beside_seconds, limits.beside_seconds)
        solution = model.program.solve(left, gap, start, limits.branches)
        seconds += solution.seconds
        outcome = replace(_outcome(model, solution, current, wanted, known), seconds=seconds)
        if outcome.admitted > known or len(wanted) > 1:
            return outcome
        proven = solution.status in ("infeasible", "optimal")
        if not proven:
            break
    return AdmissionOutcome(current, known, "infeasible" if proven else "out of time", inf, seconds, ())


def _programs(
    system: System, current: Allocation, wanted: Sequence[StreamRequest], limits: SolveLimits, rules: Rules | None
) -> Iterator[tuple[Model, Floats | None, float]]:
    """What to solve until one admits the requests, each with a solution to begin with and the gap that will do."""
    begun = _by_heuristic(system, current, wanted, rules)
    if len(wanted) > 1:  # as many as possible, by lambda_1
        model = Model(system, current, wanted, forced=False, rules=rules)
        yield model, None if begun is None else encode(model, begun), limits.gap
        return
    near = () if begun is None else begun.changed(current)
    narrow = Model(system, current, wanted, forced=True, rules=rules, idle=limits.idle, near=near)
    yield narrow, None if begun is None else encode(narrow, begun), limits.gap
    if not narrow.usable.all():
        whole = Model(system, current, wanted, forced=True, rules=rules)
        yield whole, None, limits.gap
    if limits.beside and (others := _sharing(system, current, wanted[0])[: limits.beside]):
        # Not forced: so the search starts from what runs.
        wide = Model(system, current, wanted, forced=False, rules=rules, beside=others, idle=limits.idle)
        yield wide, encode(wide, current), max(limits.gap, ADMITTED)


def _sharing(system: System, current: Allocation, request: StreamRequest) -> list[StreamRequest]:
    """The admitted requests that are not planned anew with it anyway; first those whose plans may share most with its.

    Streams that operators make count, and only then those that enter.
    """
    own = set(system.related(request.streams)[0])
    found: dict[tuple[str, ...], tuple[int, int, StreamRequest]] = {}
    for name in sorted(current.admitted):
        other = system.request[name]
        if other.streams in found or own.issuperset(other.streams):
            continue
        common = own.intersection(system.related(other.streams)[0])
        made = sum(not system.stream[stream].nodes for stream in common)
        if made:
            found[other.streams] = (-made, -len(common), other)
    return [other for *_, other in sorted(found.values(), key=lambda entry: entry[:2])]


def _is_served(request: StreamRequest, current: Allocation) -> bool:
    """It was admitted, or another one that asks for the same was (line 3)."""
    same = request.sink is None and all(stream in current.provides for stream in request.streams)
    return same or request.name in current.admitted


def _by_heuristic(
    system: System, current: Allocation, wanted: Sequence[StreamRequest], rules: Rules | None
) -> Allocation | None:
    """What runs, and what the heuristic admits beside it."""
    heuristic = Heuristic(system, current, rules)
    admitted = [heuristic.submit(request) for request in wanted]
    return heuristic.allocation if all(admitted) or len(wanted) > 1 else None


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

    Empty: it takes more of several, or the time is not enough to find out.
    """
    found = []
    for resource in RESOURCES:
        relaxed = Rules(rules.relays, rules.once, rules.weights, frozenset({resource}))
        program = Model(system, current, [request], True, relaxed).program
        solution = program.solve(limits.seconds, limits.gap, branches=limits.branches)
        if solution.values is not None:
            found.append(resource)
    return found
