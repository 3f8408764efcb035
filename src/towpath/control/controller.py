"""Decides; does nothing. Every method returns the instructions that carry the decision out and notes which records changed.

How a query comes and goes without anything being restarted:
- A fragment is put into its carrier's assignment table under a new version. The first micro-batch that reports that version is the
  first that saw it, so the fragment answers for all event times above the highest one of the batches before (`from`).
- A fragment that leaves is taken out. The first micro-batch that reports a table without it was preceded by batches that had it;
  it answers for event times below what those had completely seen, newest - allowed delay (`until`).
- Readers of the results apply [from, until), so nothing has to be timed: no pause, no fence in the future.
- After a crash Spark may repeat a micro-batch whose results were already written with the table of that time. Therefore the first
  batch after a start confirms nothing, except what the carrier's very first start already had.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from towpath.control.records import (
    CarrierRecord,
    FragmentRecord,
    PartRecord,
    QueryRecord,
    Record,
    State,
    Status,
)
from towpath.plan.assignment import Row, log_columns, rows
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Family, Template, merge_all, template_of
from towpath.runtime import BatchDone
from towpath.schema import Catalog


@dataclass(frozen=True)
class StartCarrier:
    carrier: str


@dataclass(frozen=True)
class Publish:
    carrier: str


Instruction = StartCarrier | Publish


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


class Controller:
    def __init__(self, state: State, catalog: Catalog) -> None:
        self.state = state
        self.changed: dict[int, Record] = {}  # by identity, for the journal
        self._catalog = catalog
        self._running = {q.name: q for q in state.queries.values() if q.running}
        self._query_ids = count(max(state.queries, default=0) + 1)
        self._fragment_ids = count(max(state.fragments, default=0) + 1)
        self._by_signature: dict[str, list[FragmentRecord]] = {}
        self._users: dict[int, list[PartRecord]] = {}
        self._waiting: dict[str, list[FragmentRecord]] = {}  # joining or leaving, by carrier
        for fragment in state.fragments.values():
            self._index(fragment)
        for part in state.parts.values():
            if part.until_us is None:
                self._users.setdefault(part.fragment, []).append(part)

    def running(self, name: str) -> QueryRecord | None:
        return self._running.get(name)

    @property
    def running_names(self) -> Iterable[str]:
        return self._running.keys()

    # --- queries come and go -----------------------------------------------------------------------------------------

    def submit(self, submissions: Sequence[Submission]) -> list[Instruction]:
        """Takes queries in. Those that come together may share a new carrier."""
        wanted = [template_of(p) for s in submissions for p in s.pipelines if self._reusable(p) is None]
        started = self._new_carriers(t for t in wanted if self._covering(t) is None)
        touched: dict[str, None] = {}
        for submission in submissions:
            touched |= dict.fromkeys(self._submit(submission))
        for carrier in started:
            carrier.started_version = carrier.version + 1
        return [*self._publish(touched), *(StartCarrier(c.id) for c in started)]

    def withdraw(self, name: str) -> list[Instruction]:
        query = self._running.pop(name, None)
        if query is None:
            return []
        query.running = False
        self._note(query)
        touched = {}
        for part in self.state.parts_of(query.id):
            fragment = self.state.fragments[part.fragment]
            if self._users[fragment.id] == [part]:
                self._leave(fragment)
                touched[fragment.carrier] = None
            else:
                newest = self.state.carriers[fragment.carrier].newest_us
                self._end(part, 0 if newest is None else newest + 1)
        return self._publish(touched)

    # --- events ------------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone) -> list[Instruction]:
        carrier = self.state.carriers[event.carrier]
        before = carrier.newest_us
        self._observe(carrier, event)
        instructions: list[Instruction] = []
        if event.first and carrier.batches > 1 and any(f.status is Status.LEAVING for f in self._pending(carrier)):
            # They were put back for the batch that may have been a repetition; now they can go.
            for fragment in self._pending(carrier):
                if fragment.status is Status.LEAVING:
                    fragment.version = carrier.version + 1
            instructions = self._publish([carrier.id])
        elif event.version is not None:
            for fragment in self._pending(carrier):
                if fragment.version <= event.version:
                    self._confirm(fragment, carrier, event, before)
        return instructions

    def resume(self) -> list[Instruction]:
        """After a start from the journal: which carriers to run, with everything that was in their tables when the last run ended."""
        needed = dict.fromkeys(f.carrier for f in self.state.fragments.values() if f.status is not Status.GONE)
        return [*self._publish(needed), *(StartCarrier(c) for c in needed)]

    def rows(self, carrier: str, *, resuming: bool = False) -> list[Row]:
        """The assignment table of a carrier. While resuming, fragments on their way out are in it once more."""
        kept = {Status.JOINING, Status.LIVE} | ({Status.LEAVING} if resuming else set())
        return [r for f in self.state.fragments.values() if f.carrier == carrier and f.status in kept for r in f.rows]

    # --- decisions ---------------------------------------------------------------------------------------------------

    def _submit(self, submission: Submission) -> Iterable[str]:
        number = next(self._query_ids)
        query = QueryRecord(number, submission.name, submission.sql, True, submission.sink, submission.origin)
        self.state.queries[query.id] = self._running[query.name] = query
        self._note(query)
        for branch, pipeline in enumerate(submission.pipelines):
            fragment = self._reusable(pipeline)
            if fragment is None:
                fragment = self._new_fragment(pipeline)
                yield fragment.carrier
            template = self.state.carriers[fragment.carrier].template
            part = PartRecord(
                query.id,
                branch,
                fragment.id,
                tuple(zip(submission.columns, log_columns(pipeline, template), strict=True)),
                pipeline.window is not None,
                submission.from_now,
            )
            self.state.parts[query.id, branch] = part
            self._users.setdefault(fragment.id, []).append(part)
            if fragment.status is Status.LIVE:
                self._begin(part, fragment)
            self._note(part)

    def _reusable(self, pipeline: Pipeline) -> FragmentRecord | None:
        """A running fragment with an equal signature, in a carrier that also has the columns asked for."""
        for fragment in self._by_signature.get(pipeline.signature, ()):
            alive = fragment.status in (Status.JOINING, Status.LIVE)
            if alive and self.state.carriers[fragment.carrier].template.covers(template_of(pipeline)):
                return fragment
        return None

    def _covering(self, template: Template) -> CarrierRecord | None:
        return next((c for c in self.state.carriers.values() if c.template.covers(template)), None)

    def _new_carriers(self, templates: Iterable[Template]) -> list[CarrierRecord]:
        """Carriers for shapes nobody covers yet; each also covers what its family had, so that their number stays small."""
        created = []
        for template in merge_all(templates):
            wide = template
            for existing in self.state.carriers.values():
                if existing.template.family == template.family and (wider := wide.merge(existing.template)).fits:
                    wide = wider
            carrier = CarrierRecord(f"c{len(self.state.carriers)}", wide, self._delay(wide.family))
            self.state.carriers[carrier.id] = carrier
            self._note(carrier)
            created.append(carrier)
        return created

    def _delay(self, family: Family) -> int:
        return max(s.delay_us for s in self._catalog.values() if s.schema_class in family.classes)

    def _new_fragment(self, pipeline: Pipeline) -> FragmentRecord:
        carrier = self._covering(template_of(pipeline))
        assert carrier is not None, "carriers were made before fragments"
        number = next(self._fragment_ids)
        joined = pipeline.window is not None and len(pipeline.sources) > 1
        fragment = FragmentRecord(
            number,
            pipeline.signature,
            carrier.id,
            tuple(rows(number, pipeline, carrier.template)),
            max(s.range_us for s in pipeline.sources) if joined else 0,
            version=carrier.version + 1,
        )
        self.state.fragments[number] = fragment
        self._index(fragment)
        self._note(fragment)
        return fragment

    def _confirm(self, fragment: FragmentRecord, carrier: CarrierRecord, event: BatchDone, before: int | None) -> None:
        """A micro-batch has seen the table with (or without) the fragment."""
        original = carrier.started_version is not None and fragment.version <= carrier.started_version
        if event.first and not (fragment.status is Status.JOINING and original):
            return
        if fragment.status is Status.JOINING:
            fragment.status = Status.LIVE
            fragment.from_us = None if original or before is None else before + 1 + fragment.lookback_us
            for part in self._users.get(fragment.id, ()):
                self._begin(part, fragment)
        else:
            fragment.status = Status.GONE
            for part in self._users.pop(fragment.id, []):
                self._end(part, 0 if before is None else before - carrier.delay_us)
        self._waiting[carrier.id].remove(fragment)
        self._note(fragment)

    def _begin(self, part: PartRecord, fragment: FragmentRecord) -> None:
        carrier = self.state.carriers[fragment.carrier]
        newest = carrier.newest_us
        if part.from_now and newest is not None and carrier.batches > 1:
            part.from_us = max(newest + 1 + fragment.lookback_us, fragment.from_us or newest)
        else:
            part.from_us = fragment.from_us
        part.settled = True
        self._note(part)

    def _end(self, part: PartRecord, until_us: int) -> None:
        part.until_us = until_us if part.settled else 0
        part.settled = True
        users = self._users.get(part.fragment, [])
        if part in users:
            users.remove(part)
        self._note(part)

    def _leave(self, fragment: FragmentRecord) -> None:
        if fragment.status is Status.LIVE:
            self._waiting.setdefault(fragment.carrier, []).append(fragment)
        fragment.status = Status.LEAVING
        fragment.version = self.state.carriers[fragment.carrier].version + 1
        self._note(fragment)

    def _observe(self, carrier: CarrierRecord, event: BatchDone) -> None:
        times = [t for t in event.newest_us if t is not None]
        if event.first and carrier.batches:
            # What the batches before the restart had seen may be a little more than was written down: never more than the delay.
            times = [t + carrier.delay_us for t in times]
        known = [carrier.newest_us] if carrier.newest_us is not None else []
        carrier.newest_us = max([*times, *known], default=None)
        carrier.watermark_us = event.watermark_us
        carrier.batches += 1
        carrier.late += event.late
        self._note(carrier)

    def _publish(self, carriers: Iterable[str]) -> list[Instruction]:
        instructions: list[Instruction] = []
        for name in carriers:
            carrier = self.state.carriers[name]
            carrier.version += 1
            self._note(carrier)
            instructions.append(Publish(name))
        return instructions

    def _pending(self, carrier: CarrierRecord) -> list[FragmentRecord]:
        return list(self._waiting.get(carrier.id, ()))

    def _index(self, fragment: FragmentRecord) -> None:
        self._by_signature.setdefault(fragment.signature, []).append(fragment)
        if fragment.status in (Status.JOINING, Status.LEAVING):
            self._waiting.setdefault(fragment.carrier, []).append(fragment)

    def _note(self, record: Record) -> None:
        self.changed[id(record)] = record

