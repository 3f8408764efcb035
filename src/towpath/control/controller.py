"""Decides; does nothing. Methods return the instructions that carry a decision out and note which records changed.

How a query comes and goes without anything being restarted:
- A fragment is put into its carrier's assignment table under a new version. The first micro-batch that reports that
  version is the first that surely saw it, so the fragment answers for all event times above the highest one of the
  batches before (`from`). What a carrier has from its very first batch on answers for everything.
- A fragment that leaves is taken out. All batches heard of until then had it, so it answers for the event times that
  those had seen completely on every input: below newest - allowed delay (`until`).
- Readers of the results apply [from, until), so nothing has to be timed: no pause, no fence in the future.
- A fragment moves to another node by a fence: fence.py has the steps, moves.py takes them.
- Before a carrier is started again there may have been batches that nobody heard of, and Spark may repeat one whose
  results were written with the table of that time: runs.py says what can still be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from towpath.control.ledger import Instruction, Ledger, Publish, StartCarrier
from towpath.control.moves import Moves
from towpath.control.records import (
    BEGINNING_US,
    CarrierRecord,
    FragmentRecord,
    PartRecord,
    QueryRecord,
    Record,
    State,
    Status,
)
from towpath.plan.assignment import Row, log_columns
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Template, template_of
from towpath.runtime.carriers import BatchDone
from towpath.schema import Catalog

__all__ = ["Controller", "Instruction", "Publish", "StartCarrier", "Submission"]

EMBEDDED = "local"  # the node of a job that names none


@dataclass(frozen=True)
class Submission:
    """A query ready to run: its pipelines and the names of its output columns."""

    name: str
    sql: str
    columns: tuple[str, ...]
    pipelines: tuple[Pipeline, ...]
    from_now: bool = False
    sink: dict[str, str] | None = None
    origin: str = "api"
    node: str | None = None  # where it is to run; None: wherever it can be shared, else on the first node


class Controller:
    def __init__(self, state: State, catalog: Catalog, nodes: Sequence[str] = (EMBEDDED,)) -> None:
        self.state = state
        self._ledger = Ledger(state, catalog, nodes)
        self._moves = Moves(self._ledger)
        self._running = {q.name: q for q in state.queries.values() if q.running}
        self._query_ids = count(max(state.queries, default=0) + 1)

    @property
    def changed(self) -> dict[int, Record]:
        """The records that the journal does not have yet."""
        return self._ledger.changed

    def running(self, name: str) -> QueryRecord | None:
        return self._running.get(name)

    @property
    def running_names(self) -> Iterable[str]:
        return self._running.keys()

    # --- queries come and go -----------------------------------------------------------------------------------------

    def submit(self, submissions: Sequence[Submission]) -> list[Instruction]:
        """Takes queries in. Those that come together may share a new carrier."""
        ledger = self._ledger
        wanted: dict[str, list[Template]] = {}
        for submission in submissions:
            for pipeline in submission.pipelines:
                template = template_of(pipeline)
                known = ledger.reusable(pipeline, submission.node) or ledger.covering(template, submission.node)
                if known is None:
                    wanted.setdefault(submission.node or ledger.nodes[0], []).append(template)
        for node, templates in wanted.items():
            ledger.new_carriers(templates, node)
        touched: dict[str, None] = {}
        for submission in submissions:
            touched |= dict.fromkeys(self._submit(submission))
        return [*ledger.publish(touched), *ledger.start(touched)]

    def withdraw(self, name: str) -> list[Instruction]:
        query = self._running.pop(name, None)
        if query is None:
            return []
        query.running = False
        self._ledger.note(query)
        touched: dict[str, None] = {}
        followed: list[Instruction] = []
        for part in self.state.parts_of(query.id):
            fragment = self.state.fragments[part.fragment]
            self._end(part)
            if not self._ledger.users[fragment.id] and not self._moves.is_target(fragment):
                owed = part.windowed and part.until_us != BEGINNING_US
                self._ledger.leave(fragment, part.until_us, owed=owed)
                touched[fragment.carrier] = None
                followed += self._moves.without(fragment)
        return [*self._ledger.publish(touched), *followed]

    # --- fragments move ----------------------------------------------------------------------------------------------

    def move(self, fragment: int, pipeline: Pipeline, node: str, reason: str) -> list[Instruction]:
        """Begins to move a fragment, whose pipeline is given, to a node. Raises MoveRefused with the reason."""
        return self._moves.begin(self.state.fragments[fragment], pipeline, node, reason)

    def abandon(self, move: int) -> list[Instruction]:
        """Takes a move back. Raises an error once its fence is passed."""
        return self._moves.abandon(self.state.moves[move])

    # --- events ------------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone) -> list[Instruction]:
        carrier, run = self.state.carriers[event.carrier], self._ledger.runs[event.carrier]
        before_us, newest_before_us = run.hear(event, carrier.delay_us), carrier.newest_us
        self._observe(carrier, event)
        for fragment in list(self._ledger.waiting.get(carrier.id, {}).values()):
            if fragment.status is Status.LEAVING:
                self._let_go(fragment, event)
            elif run.sure and event.version is not None and fragment.version <= event.version:
                self._confirm(fragment, before_us)
        return self._moves.handle(event, before_us, newest_before_us)

    def resume(self) -> list[Instruction]:
        """After a start from the journal: which carriers to run."""
        needed = dict.fromkeys(f.carrier for f in self.state.fragments.values() if f.status is not Status.GONE)
        return [*self._ledger.publish(needed), *self._ledger.start(needed)]

    def rows(self, carrier: str) -> list[Row]:
        """The assignment table of a carrier."""
        return self._ledger.rows(carrier)

    # --- decisions ---------------------------------------------------------------------------------------------------

    def _submit(self, submission: Submission) -> Iterable[str]:
        number = next(self._query_ids)
        query = QueryRecord(number, submission.name, submission.sql, True, submission.sink, submission.origin)
        self.state.queries[query.id] = self._running[query.name] = query
        self._ledger.note(query)
        for branch, pipeline in enumerate(submission.pipelines):
            fragment = self._ledger.reusable(pipeline, submission.node)
            if fragment is None:
                fragment = self._ledger.new_fragment(pipeline, submission.node)
                yield fragment.carrier
            template = self._ledger.carrier_of(fragment).template
            part = PartRecord(
                query.id,
                branch,
                0,
                fragment.id,
                tuple(zip(submission.columns, log_columns(pipeline, template), strict=True)),
                pipeline.window is not None,
            )
            self.state.parts[query.id, branch, 0] = part
            self._ledger.users.setdefault(fragment.id, []).append(part)
            if fragment.status is Status.LIVE:
                self._begin(part, fragment, from_now=submission.from_now)
            self._ledger.note(part)

    def _confirm(self, fragment: FragmentRecord, before_us: int | None) -> None:
        """A micro-batch saw the table with the fragment; the batches before it had times up to `before_us`."""
        fragment.status = Status.LIVE
        fragment.from_us = None if before_us is None else before_us + 1 + fragment.lookback_us
        del self._ledger.waiting[fragment.carrier][fragment.id]
        self._ledger.note(fragment)
        for part in self._ledger.users.get(fragment.id, []):
            self._begin(part, fragment)

    def _begin(self, part: PartRecord, fragment: FragmentRecord, *, from_now: bool = False) -> None:
        newest = self._ledger.carrier_of(fragment).newest_us
        part.from_us = fragment.from_us
        if from_now and newest is not None:
            part.from_us = max(newest + 1 + fragment.lookback_us, fragment.from_us or newest)
        part.settled = True
        self._ledger.note(part)

    def _end(self, part: PartRecord) -> None:
        """What is not completely seen is not answered for, also while others use the fragment: they may leave next."""
        turns = self.state.turns(part.query, part.branch)
        until_us = self._complete(part) if part.settled else None
        for earlier in turns[:-1]:
            # Up to the fence the turn before has seen everything too, and perhaps more of it.
            seen_us = self._complete(earlier)
            if seen_us is not None and earlier.moved_us is not None:
                until_us = max(min(seen_us, earlier.moved_us), until_us or BEGINNING_US)
        for turn in turns:
            turn.until_us = BEGINNING_US if until_us is None else until_us
            turn.held_us = None
            self._ledger.note(turn)
        part.settled = True
        self._ledger.users[part.fragment].remove(part)

    def _complete(self, part: PartRecord) -> int | None:
        return self._ledger.carrier_of(self.state.fragments[part.fragment]).complete_us

    def _let_go(self, fragment: FragmentRecord, event: BatchDone) -> None:
        assert fragment.until_us is not None, "decided when it left"
        if event.watermark_us is not None and event.watermark_us >= fragment.until_us:
            fragment.status = Status.GONE
            del self._ledger.waiting[fragment.carrier][fragment.id]
            self._ledger.note(fragment)

    def _observe(self, carrier: CarrierRecord, event: BatchDone) -> None:
        before = carrier.inputs_us or (None,) * len(event.newest_us)
        carrier.inputs_us = tuple(
            max((t for t in times if t is not None), default=None)
            for times in zip(before, event.newest_us, strict=True)
        )
        carrier.watermark_us = event.watermark_us
        carrier.batches += 1
        carrier.late += event.late
        self._ledger.note(carrier)
