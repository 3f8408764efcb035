"""The engine: runs a job. It owns the store, hears events, lets the controller decide, and carries the decisions out.

Order of every step: decide, write the journal, then act. A crash in between is repaired by `resume`, which acts again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from towpath.control.controller import Controller, Instruction, Publish, StartCarrier, Submission
from towpath.control.idle import Idle
from towpath.control.journal import Journal
from towpath.control.records import CarrierRecord, PartRecord
from towpath.errors import RuntimeFailure, UnknownQueryError
from towpath.lang import Query
from towpath.plan.assignment import NOBODY
from towpath.plan.build import build, optimise
from towpath.plan.pipeline import pipelines
from towpath.results import Part
from towpath.runtime.carriers import BatchDone, CarrierFailed, Event, Runtime
from towpath.schema import Catalog
from towpath.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Request:
    """A query to be taken in. `origin` tells who asked: those of a job file leave with it, others when withdrawn."""

    query: Query
    from_now: bool = False
    sink: dict[str, str] | None = None
    origin: str = "api"


class Engine:
    def __init__(
        self, store: Store, journal: Journal, runtime: Runtime, catalog: Catalog, *, idle_after_s: float | None
    ) -> None:
        self._store = store
        self._journal = journal
        self._runtime = runtime
        self._catalog = catalog
        self._idle = None if idle_after_s is None else Idle(idle_after_s)
        self.controller = Controller(journal.load(), catalog)
        self._act(self.controller.resume())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._runtime.close()
        with suppress(RuntimeFailure):
            self.poll()
        self._journal.close()

    # --- queries -----------------------------------------------------------------------------------------------------

    def submit(self, requests: Iterable[Request]) -> None:
        """Takes checked queries in; one that runs under the same name is replaced, an unchanged one goes on."""
        fresh = []
        for request in requests:
            running = self.controller.running(request.query.name)
            if running is not None and running.sql == request.query.sql and running.sink == request.sink:
                continue
            if running is not None:
                self.withdraw(request.query.name)
            fresh.append(self._submission(request))
        self._act(self.controller.submit(fresh))

    def withdraw(self, name: str) -> None:
        if self.controller.running(name) is None:
            raise UnknownQueryError(f"no query named {name!r} is running")
        self._act(self.controller.withdraw(name))

    def _submission(self, request: Request) -> Submission:
        query = request.query
        plan = optimise(build(query), self._catalog)
        names = tuple(c.name for c in query.columns)
        made = pipelines(plan, self._catalog)
        return Submission(query.name, query.sql, names, made, request.from_now, request.sink, request.origin)

    # --- time passes -------------------------------------------------------------------------------------------------

    def poll(self) -> list[Event]:
        """Hears what the carriers did and reacts. Call it a few times a second."""
        events = self._runtime.events()
        for event in events:
            if isinstance(event, BatchDone):
                self.controller.handle(event)
                if self._idle is not None:
                    self._idle.hear(event, time.monotonic())
        self._save()
        failed = [e for e in events if isinstance(e, CarrierFailed)]
        if failed:
            raise RuntimeFailure("\n".join(f"carrier {e.carrier} stopped: {e.message}" for e in failed))
        self._tick_idle()
        return events

    def _tick_idle(self) -> None:
        """A stream that has gone silent must not keep the last windows open: its event time goes on with the clock."""
        if self._idle is None:
            return
        for carrier, n, silent_s in self._idle.due(time.monotonic(), self._runtime.waiting):
            record = self.controller.state.carriers[carrier]
            own = record.inputs_us[n] if record.inputs_us else None
            newest = own if own is not None else record.newest_us
            if newest is not None:
                self._runtime.tick(carrier, n, newest + int(silent_s * 1e6))

    def settle(self) -> None:
        """Waits until every carrier has processed everything its inputs offer."""
        self._runtime.settle([carrier.id for carrier in self.carriers])

    def drain(self) -> list[Event]:
        """Processes everything the streams have, then closes all windows; what comes for them afterwards is late."""
        self._runtime.finish_input()
        self.settle()
        events = self.poll()
        for carrier in self.carriers:
            if carrier.newest_us is not None:
                for n in range(len(carrier.template.family.classes)):
                    self._runtime.tick(carrier.id, n, carrier.newest_us + self._horizon_us(carrier))
        self.settle()
        return events + self.poll()

    def _horizon_us(self, carrier: CarrierRecord) -> int:
        """How far event time must go for every open window of a carrier to close."""
        lengths = [r.get("w_range") or 0 for r in self.controller.rows(carrier.id)]
        joins = len(carrier.template.family.classes) - 1
        longest = max((int(length) for length in lengths if isinstance(length, int)), default=0)
        return longest + carrier.delay_us + joins * carrier.template.family.reach_us + 1_000_000

    # --- results -----------------------------------------------------------------------------------------------------

    @property
    def carriers(self) -> Sequence[CarrierRecord]:
        return [c for c in self.controller.state.carriers.values() if c.version]

    def parts(self, name: str) -> list[Part]:
        """Where a query's results are."""
        query = self._journal.query(name)
        if query is None:
            raise UnknownQueryError(f"there is no query named {name!r}")
        return [read_part(self._store, part, carrier) for part, carrier in self._journal.parts(query.id)]

    def validity(self, name: str) -> list[PartRecord]:
        """For which event times each SELECT of a query answers."""
        query = self._journal.query(name)
        return [] if query is None else [part for part, _ in self._journal.parts(query.id)]

    # --- doing -------------------------------------------------------------------------------------------------------

    def _act(self, instructions: Iterable[Instruction]) -> None:
        self._save()
        for instruction in instructions:
            carrier = self.controller.state.carriers[instruction.carrier]
            match instruction:
                case Publish():
                    rows = self.controller.rows(carrier.id)
                    self._runtime.publish(carrier.id, carrier.template, carrier.version, rows)
                case StartCarrier():
                    log.info("starting carrier %s: %s", carrier.id, carrier.template.family.kind)
                    self._runtime.start(carrier.id, carrier.template)

    def _save(self) -> None:
        if self.controller.changed:
            self._journal.save(self.controller.changed.values())
            self.controller.changed.clear()


def read_part(store: Store, part: PartRecord, carrier: str) -> Part:
    # A part that no micro-batch has confirmed yet answers for nothing.
    fragment = part.fragment if part.settled else NOBODY
    return Part(store.results(carrier), fragment, part.columns, part.from_us, part.until_us, part.windowed)
