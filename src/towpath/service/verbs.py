"""The verbs of the service: what a request does to the job that runs, and what is answered.

All but `history` are called by the loop that runs the job.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from towpath.api.figures import Durations, Figures, QueryCost
from towpath.api.monitor import Monitor
from towpath.api.running import Towpath
from towpath.config.settings import close_to
from towpath.control.journal.answers import share_read, state_of
from towpath.control.journal.journal import Journal
from towpath.control.observe.situation import LinkFlow
from towpath.control.state.records import MoveRecord, QueryRecord
from towpath.errors import Mistake, MoveRefused, ProblemsError, StoreError, UnknownQueryError
from towpath.plan import CarrierKinds
from towpath.service.messages import (
    Drain,
    HistoryEntry,
    JobStatus,
    LookRequest,
    Migrate,
    MoveStatus,
    NodeStatus,
    QueryStatus,
    Readiness,
    Submit,
    WayStatus,
    Withdraw,
)
from towpath.store.layout import Store

log = logging.getLogger(__name__)

WRITABLE = "can be written"
LONGEST_NUMBER = 18  # digits of a fragment's number


class Verbs(Protocol):
    def status(self) -> JobStatus: ...

    def queries(self) -> list[QueryStatus]: ...

    def costs(self) -> list[QueryCost]: ...

    def durations(self) -> Durations: ...

    def ready(self) -> Readiness: ...

    def submit(self, asked: Submit) -> list[QueryStatus]: ...

    def withdraw(self, asked: Withdraw) -> list[str]: ...

    def migrate(self, asked: Migrate) -> list[MoveStatus]: ...

    def moves(self, numbers: list[int]) -> list[MoveStatus]: ...

    def drain(self, asked: Drain) -> NodeStatus: ...

    def history(self, asked: LookRequest) -> list[HistoryEntry]: ...


class JobVerbs:
    """The verbs on a real job."""

    def __init__(self, running: Towpath, monitor: Monitor, store: Store) -> None:
        self._running = running
        self._controller = running.engine.controller
        self._monitor = monitor
        self._store = store

    # --- looking -----------------------------------------------------------------------------------------------------

    def status(self) -> JobStatus:
        figures = self._monitor.figures()
        under_way = sorted(self._controller.known.moves.values(), key=lambda move: move.id)
        return JobStatus(
            **vars(figures),
            store=str(self._store.root),
            pid=os.getpid(),
            nodes=[self._node(name, figures) for name in self._controller.known.nodes],
            ways=self._ways(),
            moves=[self._move(move) for move in under_way],
            troubles=self._running.engine.guard.troubles,
            aside={query.name: query.failed or "" for query in self._aside()},
        )

    def queries(self) -> list[QueryStatus]:
        running = sorted(self._controller.queries.running.values(), key=lambda query: query.name)
        return [self._query(query) for query in (*running, *self._aside())]

    def costs(self) -> list[QueryCost]:
        return self._monitor.costs()

    def durations(self) -> Durations:
        return self._monitor.durations()

    def ready(self) -> Readiness:
        nodes = self._controller.known.nodes
        answering = sum(self._controller.node_state(name) != "lost" for name in nodes)
        try:
            self._running.engine.probe_journal()
            journal = WRITABLE
        except StoreError as error:
            log.warning("not ready: %s", error)
            journal = "cannot be written"
        return Readiness(answering > 0 and journal == WRITABLE, "turns", f"{answering} of {len(nodes)} answer", journal)

    def _aside(self) -> list[QueryRecord]:
        return sorted(self._controller.queries.aside.values(), key=lambda query: query.name)

    def moves(self, numbers: list[int]) -> list[MoveStatus]:
        known = self._controller.state.moves
        return [self._move(known[number]) for number in numbers if number in known]

    def history(self, asked: LookRequest) -> list[HistoryEntry]:
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            entries = journal.history(**asdict(asked))
        return [HistoryEntry(t.number, t.at_us, t.kind, t.text, t.query, t.fragment, list(t.nodes)) for t in entries]

    # --- doing -------------------------------------------------------------------------------------------------------

    def submit(self, asked: Submit) -> list[QueryStatus]:
        definitions = self._running.definitions(asked.queries, Path(asked.folder))
        self._running.submit_all(definitions)
        running = self._controller.queries.running
        return [self._query(running[name]) for name in definitions if name in running]

    def withdraw(self, asked: Withdraw) -> list[str]:
        names = list(dict.fromkeys(asked.names))
        unknown = [name for name in names if self._controller.queries.running.get(name) is None]
        if unknown:
            raise ProblemsError("nothing was withdrawn:", [self._unknown(name) for name in unknown])
        for name in names:
            self._running.engine.withdraw(name)
        return names

    def migrate(self, asked: Migrate) -> list[MoveStatus]:
        engine = self._running.engine
        if asked.to is None and asked.carriers is None:
            raise MoveRefused("nothing says where to: name a node (`to`), or a kind of carrier (`carriers`)")
        carriers = None if asked.carriers is None else CarrierKinds(asked.carriers)
        if self._controller.queries.running.get(asked.subject) is not None:
            return self.moves(engine.move(asked.subject, asked.to, asked.reason, carriers))
        if asked.subject.isdecimal() and len(asked.subject) <= LONGEST_NUMBER:
            return self.moves([engine.move_fragment(int(asked.subject), asked.to, asked.reason, carriers)])
        raise UnknownQueryError(str(self._unknown(asked.subject)))

    def drain(self, asked: Drain) -> NodeStatus:
        if asked.undo:
            self._running.engine.reopen_node(asked.node)
        else:
            self._running.engine.drain_node(asked.node)
        return self._node(asked.node, self._monitor.figures())

    # --- in words ----------------------------------------------------------------------------------------------------

    def _node(self, name: str, figures: Figures) -> NodeStatus:
        here = [carrier for carrier in figures.carriers if carrier.node == name]
        definition = self._running.job.nodes.get(name)
        return NodeStatus(
            name,
            "added" if definition is None else definition.type,
            self._controller.node_state(name),
            sum(carrier.runs for carrier in here),
            sum(carrier.fragments for carrier in here),
            sum(carrier.rows_per_s for carrier in here),
        )

    def _ways(self) -> list[WayStatus]:
        loop = self._running.loop
        if loop is None:
            return []
        topology, situation = loop.topology, loop.situation
        cluster = situation.cluster
        flows: dict[tuple[str, str], list[LinkFlow]] = {}
        for flow in situation.flows:
            flows.setdefault((flow.source, flow.target), []).append(flow)
        return [
            WayStatus(
                source,
                target,
                cluster.latency(source, target),
                topology.how(source, target),
                sum(flow.bytes for flow in found),
                len({flow.stream for flow in found}),
                topology.delays.get((source, target)),
            )
            for (source, target), found in sorted(flows.items())
        ]

    def _query(self, query: QueryRecord) -> QueryStatus:
        parts = self._controller.state.parts_of(query.id)
        fragments = list(dict.fromkeys(part.fragment for part in parts))
        nodes = list(dict.fromkeys(self._controller.known.node_of(fragment) for fragment in fragments))
        state = state_of(parts, self._past(fragments)) if query.failed is None else "set aside"
        begun = [t[0].from_us for part in parts if (t := self._controller.state.turns(query.id, part.branch))]
        from_us = max((us for us in begun if us is not None), default=None)
        return QueryStatus(query.name, state, query.sql, fragments, nodes, query.failed, from_us)

    def _past(self, fragments: Iterable[int]) -> dict[int, float]:
        """For fragments that catch up, how much of the past they have."""
        state = self._controller.state
        seats = {f: state.carriers[state.fragments[f].carrier] for f in fragments}
        return {f: share_read(carrier, state.carriers.values()) for f, carrier in seats.items() if carrier.past}

    def _move(self, move: MoveRecord) -> MoveStatus:
        node_of = self._controller.known.node_of
        answering = move.source if self._controller.users(move.source) else move.target
        return MoveStatus(
            move.id,
            move.source,
            self._controller.used_by(answering),
            node_of(move.source),
            node_of(move.target),
            [self._carrier(fragment) for fragment in (move.source, move.target)],
            move.step,
            move.fence_us,
            move.fences,
            move.reason,
        )

    def _carrier(self, fragment: int) -> str:
        known = self._controller.known
        carrier = known.carrier_of(known.state.fragments[fragment])
        return f"{carrier.id} ({carrier.template.family.carriers})"

    def _unknown(self, name: str) -> Mistake:
        close = close_to(name, self._controller.queries.running)
        hint = f"did you mean {close}?" if close else "`towpath status --queries` lists those that do"
        return Mistake("", f"no query named {name!r} is running", hint)
