"""Adaptive re-planning (section IV-B): queries that take more or less than was estimated, or that lack resources.

Each is taken out and planned again, one at a time, so that all others go on meanwhile: every step is an allocation that
can run, as far as what is measured allows for. `at_once` says which of a step's operators can change nodes while both
nodes work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from towpath.reuse.admission import TO_THE_END, SolveLimits, submit
from towpath.reuse.allocation import AllocatedRun, Allocation, pruned, routed
from towpath.reuse.check import places, resources
from towpath.reuse.model import Rules
from towpath.reuse.plans import Plans, PlanStep
from towpath.reuse.system import StreamRequest, System


@dataclass(frozen=True)
class Replanned:
    steps: tuple[Allocation, ...]  # what to change to, one after the other
    lost: tuple[str, ...]  # requests for which there is no room any more

    @property
    def allocation(self) -> Allocation:
        return self.steps[-1]


def to_replan(estimated: System, measured: System, allocation: Allocation, threshold: float = 0.2) -> Mapping[str, str]:
    """The requests whose use differs by more than that share from the estimate, or that a full node or link serves.

    With the reason.
    """
    full = {fault.where: str(fault) for fault in resources(measured, allocation)}
    plans = Plans(measured, allocation)
    found = {}
    for name in sorted(allocation.admitted):
        own = replace(allocation, admitted=frozenset({name}))
        steps = [step for at in places(measured, own) for step in _steps(plans.extract(*at))]
        uses = zip(USES, *(_use(system, steps) for system in (estimated, measured)), strict=True)
        reasons = [
            f"{what} {now:.3g} instead of {was:.3g}" for what, was, now in uses if abs(now - was) > threshold * was
        ]
        reasons += [full[place] for step in steps for place in _touched(step) if place in full]
        if reasons:
            found[name] = reasons[0]
    return found


USES = ("cpu", "bytes sent")


def _steps(plan: PlanStep) -> Iterator[PlanStep]:
    yield plan
    for part in plan.inputs:
        if isinstance(part, PlanStep):
            yield from _steps(part)


def _use(system: System, steps: Sequence[PlanStep]) -> tuple[float, float]:
    """The load and the bytes that are sent."""
    load = sum(system.operator[step.operator].load for step in steps if step.operator is not None)
    return load, sum(system.stream[step.stream].bytes for step in steps if step.operator is None)


def _touched(step: PlanStep) -> Iterator[str]:
    """The node of a step and, where it gets a stream from another, that node and the link, as violations name them."""
    yield f"node {step.node}"
    for part in step.inputs:
        if part.node != step.node:
            yield f"node {part.node}"
            yield f"link {part.node} -> {step.node}"


def replan(
    measured: System,
    current: Allocation,
    names: Sequence[str],
    limits: SolveLimits = TO_THE_END,
    rules: Rules | None = None,
) -> Replanned:
    """Requests that cannot be planned again stay where they are, unless something there is full: then they are lost."""
    steps, lost = [current], []
    done: set[str] = set()
    for name in names:
        if name in done:
            continue
        now, alike = steps[-1], _alike(measured, steps[-1], measured.request[name])
        done.update(request.name for request in alike)
        outcome = submit(measured, without(measured, now, alike), alike, limits, rules)
        missing = [request.name for request in alike if request.name not in outcome.admitted]
        if not missing or not to_replan(measured, measured, now).keys().isdisjoint(missing):
            steps.append(outcome.allocation)
            lost += missing
    return Replanned(tuple(steps), tuple(lost))


def at_once(system: System, now: Allocation, wanted: Sequence[AllocatedRun]) -> list[AllocatedRun]:
    """Of operators that are to run elsewhere, those that can change nodes at the same time.

    The old node and the new one work side by side until it is done; meanwhile nothing becomes full, and what is full
    gets no fuller.
    """
    during, taken = now, list[AllocatedRun]()
    known = set(resources(system, now))
    for run in wanted:
        moved = frozenset(other for other in now.runs if other.operator != run.operator) | {run}
        after = routed(system, moved | set(taken), now.admitted)
        both = replace(during, runs=during.runs | {run}, flows=during.flows | after.flows)
        if known.issuperset(resources(system, both)):
            during = both
            taken.append(run)
    return taken


def _alike(system: System, allocation: Allocation, request: StreamRequest) -> list[StreamRequest]:
    """The request and those that would keep its streams in their places: who asks for the same without a sink."""
    if request.sink is not None:
        return [request]
    others = (system.request[name] for name in sorted(allocation.admitted))
    return [r for r in others if r.sink is None and not set(r.streams).isdisjoint(request.streams)]


def without(system: System, allocation: Allocation, requests: Sequence[StreamRequest]) -> Allocation:
    """What is left when requests are withdrawn."""
    kept = allocation.admitted - {request.name for request in requests}
    others = {s for name in kept if system.request[name].sink is None for s in system.request[name].streams}
    provides = {stream: node for stream, node in allocation.provides.items() if stream in others}
    return pruned(system, Allocation(allocation.runs, allocation.flows, provides, kept))
