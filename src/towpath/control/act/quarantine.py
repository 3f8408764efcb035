"""Carriers that keep failing: the query at fault is found and set aside, everything else goes on.

Which fragment it is, trials find out (search.py). If it is none of them and the carrier has never done anything, its
fragments are divided over two new carriers with narrower plans, and so on, until a plan that fails has one fragment.
Otherwise it is the machine, the storage or the streams: the carrier is started again once in a while, for as long as it
takes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from towpath.control.act.decisions import Decisions
from towpath.control.decide.search import Cause, Tried, Tries, Verdict, search
from towpath.control.state.history import EventKind
from towpath.errors import RuntimeFailure
from towpath.runtime.carriers import CarrierFailed, CarrierStumbled, TriedOut

log = logging.getLogger(__name__)

AGAIN_S = 20.0


@dataclass
class _Case:
    """A carrier that is looked into."""

    message: str  # why it fails
    epoch: int
    tries: Tries
    reasons: dict[int, str] = field(default_factory=dict)  # of fragments that failures named


class Quarantine:
    def __init__(
        self,
        decisions: Decisions,
        untouched: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._decisions = decisions
        self._controller = decisions.controller
        self._untouched = untouched
        self._clock = clock
        self._cases: dict[str, _Case] = {}
        self._again_at: dict[str, float] = {}
        self._reported: dict[str, set[str]] = {}  # of carriers that do not get well
        self._hurry = False

    @property
    def busy(self) -> bool:
        return bool(self._cases or self._again_at)

    @contextmanager
    def in_a_hurry(self) -> Iterator[None]:
        """Somebody waits for all that there is to be done: a carrier that does not get well is an error."""
        self._hurry = True
        try:
            yield
        finally:
            self._hurry = False

    def hear(self, event: CarrierStumbled | CarrierFailed | TriedOut) -> None:
        match event:
            case CarrierStumbled(carrier, message):
                self._report(
                    carrier, EventKind.CARRIER_RESTARTED, f"carrier {carrier} stopped: {message}; it is started again"
                )
            case CarrierFailed(carrier, message, outside):
                self._report(carrier, EventKind.CARRIER_FAILED, f"carrier {carrier} stopped again and again: {message}")
                self._begin(carrier, message, outside)
            case TriedOut():
                self._go_on(event)

    def well(self, carrier: str) -> None:
        """It has done a micro-batch."""
        self._reported.pop(carrier, None)

    def _report(self, carrier: str, kind: EventKind, text: str) -> None:
        """Once, until the carrier does a micro-batch: it may fail the same way for days."""
        reported = self._reported.setdefault(carrier, set())
        if text not in reported:
            reported.add(text)
            self._decisions.add_history(kind, text, nodes=[self._controller.state.carriers[carrier].node])

    def _begin(self, carrier: str, message: str, outside: bool) -> None:
        if not self._controller.runs(carrier):
            return
        if outside:
            self._wait(carrier, message)
        else:
            tries = search(self._controller.calculated(carrier))
            self._cases[carrier] = _Case(message, self._controller.state.carriers[carrier].epoch, tries)
            self._try(carrier, next(tries))

    def _go_on(self, tried: TriedOut) -> None:
        carrier = tried.carrier
        case = self._cases.get(carrier)
        if case is None:
            return
        if tried.failure is not None and tried.outside:
            del self._cases[carrier]
            self._wait(carrier, tried.failure)
            return
        if tried.blamed is not None and tried.failure is not None:
            case.reasons[tried.blamed] = tried.failure
        try:
            self._try(carrier, case.tries.send(Tried(tried.failure is None, tried.blamed)))
        except StopIteration as found:
            del self._cases[carrier]
            self._judge(carrier, case, found.value)

    def look(self) -> None:
        """Lets go of carriers that others have taken over or nobody needs, and starts those again that have waited."""
        for carrier, case in list(self._cases.items()):
            record = self._controller.state.carriers[carrier]
            if record.epoch != case.epoch or not self._controller.runs(carrier):
                del self._cases[carrier]
        for carrier, at in list(self._again_at.items()):
            if at <= self._clock():
                del self._again_at[carrier]
                self._restart(carrier)

    def _try(self, carrier: str, fragments: tuple[int, ...]) -> None:
        record, present = self._controller.state.carriers[carrier], set(self._controller.present(carrier))
        rows = [row for fragment in fragments if fragment in present for row in self._controller.rows_of(fragment)]
        without = set(self._controller.calculated(carrier)) - set(fragments)
        log.info("carrier %s is tried with %d of its fragments", carrier, len(fragments))
        banned = [*self._controller.banned(carrier), *sorted(without)]
        self._decisions.node(carrier).try_out(carrier, record.template, record.epoch, rows, banned)

    def _judge(self, carrier: str, case: _Case, verdict: Verdict) -> None:
        message = case.message
        present = self._controller.present(carrier)
        alone = len(present) == 1
        if verdict.cause is Cause.CARRIER and present and self._untouched(carrier):
            verdict = Verdict(Cause.FRAGMENTS, tuple(present)) if alone else self._divide(carrier, present, message)
        if verdict.cause is Cause.FRAGMENTS:
            self._set_aside(carrier, {guilty: case.reasons.get(guilty, message) for guilty in verdict.guilty})
        elif verdict.cause is Cause.GONE:
            self._restart(carrier)
        elif verdict.cause is Cause.CARRIER:
            self._wait(carrier, message)

    def _divide(self, carrier: str, fragments: list[int], message: str) -> Verdict:
        used = [fragment for fragment in fragments if self._controller.users(fragment)]
        middle = len(used) // 2
        with self._decisions.decision() as todo:
            for fragment in set(fragments) - set(used):  # on its way here
                todo += self._controller.failing.set_aside(fragment, message)
            todo += self._controller.failing.divide(carrier, (used[:middle], used[middle:]), message)
        return Verdict(Cause.DIVIDED)

    def _set_aside(self, carrier: str, reasons: Mapping[int, str]) -> None:
        with self._decisions.decision() as todo:
            for fragment, reason in reasons.items():
                todo += self._controller.failing.set_aside(fragment, reason)
            todo += self._controller.failing.restart(carrier)

    def _restart(self, carrier: str) -> None:
        with self._decisions.decision() as todo:
            todo += self._controller.failing.restart(carrier)

    def _wait(self, carrier: str, message: str) -> None:
        if self._hurry:
            raise RuntimeFailure(f"carrier {carrier} stopped: {message}")
        self._again_at[carrier] = self._clock() + AGAIN_S
        text = f"carrier {carrier} fails whatever it is to do: {message}; it is started again every {AGAIN_S:g} s"
        self._report(carrier, EventKind.CARRIER_FAILED, text)
