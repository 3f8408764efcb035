"""The engine: runs a job. It owns the store, hears events, lets the controller decide, and carries the decisions out.

Order of every step: decide, write the journal, then act. A crash in between is repaired by `resume`, which acts again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from towpath.control.controller import Controller, Instruction, Publish, StartCarrier, Submission
from towpath.control.idle import Idle
from towpath.control.journal import Journal
from towpath.control.records import CarrierRecord, PartRecord
from towpath.errors import RuntimeFailure, UnknownQueryError
from towpath.lang import Query, parse
from towpath.plan.assignment import NOBODY
from towpath.plan.build import build, optimise
from towpath.plan.pipeline import Pipeline, pipelines
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
    node: str | None = None  # where it is to run; None: wherever it can be shared


class Engine:
    def __init__(
        self,
        store: Store,
        journal: Journal,
        nodes: Mapping[str, Runtime],
        catalog: Catalog,
        *,
        idle_after_s: float | None,
    ) -> None:
        self._store = store
        self._journal = journal
        self._nodes = nodes
        self._catalog = catalog
        self._idle = None if idle_after_s is None else Idle(idle_after_s)
        self.controller = Controller(journal.load(), catalog, list(nodes))
        self._act(self.controller.resume())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for node in self._nodes.values():
            node.close()
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

    def move(self, name: str, node: str, reason: str = "asked for") -> None:
        """Begins to move a query's fragments to a node; they go on answering meanwhile. Raises MoveRefused."""
        query = self.controller.running(name)
        if query is None:
            raise UnknownQueryError(f"no query named {name!r} is running")
        made = self._pipelines(parse(query.sql, self._catalog, name))
        for part, pipeline in zip(self.controller.state.parts_of(query.id), made, strict=True):
            self._act(self.controller.move(part.fragment, pipeline, node, reason))

    def _submission(self, request: Request) -> Submission:
        query = request.query
        names = tuple(c.name for c in query.columns)
        made = self._pipelines(query)
        return Submission(
            query.name, query.sql, names, made, request.from_now, request.sink, request.origin, request.node
        )

    def _pipelines(self, query: Query) -> tuple[Pipeline, ...]:
        return pipelines(optimise(build(query), self._catalog), self._catalog)

    # --- time passes -------------------------------------------------------------------------------------------------

    def poll(self) -> list[Event]:
        """Hears what the carriers did and reacts. Call it a few times a second."""
        events = [event for node in self._nodes.values() for event in node.events()]
        for event in events:
            if isinstance(event, BatchDone):
                self._act(self.controller.handle(event))
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
        for carrier, n, silent_s in self._idle.due(time.monotonic(), lambda c: self._node(c).waiting(c)):
            record = self.controller.state.carriers[carrier]
            own = record.inputs_us[n] if record.inputs_us else None
            newest = own if own is not None else record.newest_us
            if newest is not None:
                self._node(carrier).tick(carrier, n, newest + int(silent_s * 1e6))

    def settle(self) -> None:
        """Waits until every carrier has processed everything its inputs offer."""
        mine: dict[str, list[str]] = {}
        for carrier in self.carriers:
            mine.setdefault(carrier.node, []).append(carrier.id)
        with ThreadPoolExecutor(max(1, len(mine))) as together:
            list(together.map(lambda node: self._nodes[node].settle(mine[node]), mine))

    def drain(self) -> list[Event]:
        """Processes everything the streams have, then closes all windows; what comes for them afterwards is late."""
        for node in self._nodes.values():
            node.finish_input()
        self.settle()
        events = self.poll()
        for carrier in self.carriers:
            if carrier.newest_us is not None:
                for n in range(len(carrier.template.family.classes)):
                    self._node(carrier.id).tick(carrier.id, n, carrier.newest_us + self._horizon_us(carrier))
        self.settle()
        return events + self.poll()

    def _horizon_us(self, carrier: CarrierRecord) -> int:
        """How far event time must go for every open window of a carrier to close."""
        lengths = [r.get("w_range") or 0 for r in self.controller.rows(carrier.id)]
        joins = len(carrier.template.family.classes) - 1
        longest = max((int(length) for length in lengths if isinstance(length, int)), default=0)
        return longest + carrier.delay_us + joins * carrier.template.family.reach_us + 1_000_000

    @property
    def heap_bytes(self) -> int:
        """Memory in use by the Spark of this process; embedded nodes share it."""
        return max((node.heap_bytes or 0 for node in self._nodes.values()), default=0)

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
        return [] if query is None else whole([part for part, _ in self._journal.parts(query.id)])

    # --- doing -------------------------------------------------------------------------------------------------------

    def _act(self, instructions: Iterable[Instruction]) -> None:
        self._save()
        for instruction in instructions:
            carrier = self.controller.state.carriers[instruction.carrier]
            match instruction:
                case Publish():
                    rows = self.controller.rows(carrier.id)
                    self._node(carrier.id).publish(carrier.id, carrier.template, carrier.version, rows)
                case StartCarrier():
                    log.info("starting carrier %s on %s: %s", carrier.id, carrier.node, carrier.template.family.kind)
                    self._node(carrier.id).start(carrier.id, carrier.template)

    def _node(self, carrier: str) -> Runtime:
        return self._nodes[self.controller.state.carriers[carrier].node]

    def _save(self) -> None:
        if self.controller.changed:
            self._journal.save(self.controller.changed.values())
            self.controller.changed.clear()


def read_part(store: Store, part: PartRecord, carrier: str) -> Part:
    # A part that no micro-batch has confirmed yet answers for nothing.
    fragment = part.fragment if part.settled else NOBODY
    times = (part.from_us, part.until_us, part.windowed, part.moved_us, part.held_us)
    return Part(store.results(carrier), fragment, part.columns, *times)


def whole(parts: Sequence[PartRecord]) -> list[PartRecord]:
    """One part for each SELECT, whatever turns its fragments took."""
    first: dict[int, PartRecord] = {}
    for part in parts:
        first.setdefault(part.branch, replace(part, moved_us=None, held_us=None))
    return list(first.values())
