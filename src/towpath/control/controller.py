"""Decides; does nothing. Methods return the instructions that carry a decision out and note which records changed.

How a query comes and goes without anything being restarted:
- A fragment is put into its carrier's assignment table under a new version. The first micro-batch that reports that
  version is the first that surely saw it, so the fragment answers for all event times above the highest one of the
  batches before (`from`). What a carrier has from its very first batch on answers for everything.
- A fragment that leaves is taken out. All batches heard of until then had it, so it answers for the event times that
  those had seen completely on every input: below newest - allowed delay (`until`).
- Readers of the results apply [from, until), so nothing has to be timed: no pause, no fence in the future.
- Before a carrier is started again there may have been batches that nobody heard of, and Spark may repeat one whose
  results were written with the table of that time: runs.py says what can still be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

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
from towpath.control.runs import Run
from towpath.plan.assignment import Row, log_columns, rows
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Family, Template, merge_all, template_of
from towpath.runtime.carriers import BatchDone
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
        self._runs: dict[str, Run] = {}
        # Fragments by number: those in a carrier's table, those of a signature, those that a batch will decide about.
        self._present: dict[str, dict[int, FragmentRecord]] = {}
        self._by_signature: dict[str, dict[int, FragmentRecord]] = {}
        self._waiting: dict[str, dict[int, FragmentRecord]] = {}
        self._users: dict[int, list[PartRecord]] = {}
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
        self._new_carriers(t for t in wanted if self._covering(t) is None)
        touched: dict[str, None] = {}
        for submission in submissions:
            touched |= dict.fromkeys(self._submit(submission))
        return [*self._publish(touched), *self._start(touched)]

    def withdraw(self, name: str) -> list[Instruction]:
        query = self._running.pop(name, None)
        if query is None:
            return []
        query.running = False
        self._note(query)
        touched: dict[str, None] = {}
        for part in self.state.parts_of(query.id):
            fragment = self.state.fragments[part.fragment]
            self._end(part, self.state.carriers[fragment.carrier])
            if not self._users[fragment.id]:
                self._leave(fragment, part)
                touched[fragment.carrier] = None
        return self._publish(touched)

    # --- events ------------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone) -> None:
        carrier, run = self.state.carriers[event.carrier], self._runs[event.carrier]
        before_us = run.hear(event, carrier.delay_us)
        self._observe(carrier, event)
        for fragment in list(self._waiting.get(carrier.id, {}).values()):
            if fragment.status is Status.LEAVING:
                self._let_go(fragment, event)
            elif run.sure and event.version is not None and fragment.version <= event.version:
                self._confirm(fragment, before_us)

    def resume(self) -> list[Instruction]:
        """After a start from the journal: which carriers to run."""
        needed = dict.fromkeys(f.carrier for f in self.state.fragments.values() if f.status is not Status.GONE)
        return [*self._publish(needed), *self._start(needed)]

    def rows(self, carrier: str) -> list[Row]:
        """The assignment table of a carrier."""
        return [row for fragment in self._present.get(carrier, {}).values() for row in fragment.rows]

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
            )
            self.state.parts[query.id, branch] = part
            self._users.setdefault(fragment.id, []).append(part)
            if fragment.status is Status.LIVE:
                self._begin(part, fragment, from_now=submission.from_now)
            self._note(part)

    def _reusable(self, pipeline: Pipeline) -> FragmentRecord | None:
        """A fragment with an equal signature, in a carrier that also has the columns asked for."""
        for fragment in self._by_signature.get(pipeline.signature, {}).values():
            if self.state.carriers[fragment.carrier].template.covers(template_of(pipeline)):
                return fragment
        return None

    def _covering(self, template: Template) -> CarrierRecord | None:
        return next((c for c in self.state.carriers.values() if c.template.covers(template)), None)

    def _new_carriers(self, templates: Iterable[Template]) -> None:
        """Carriers for shapes nobody covers yet; each also covers what its family had, so that they stay few."""
        for template in merge_all(templates):
            wide = template
            for existing in self.state.carriers.values():
                if existing.template.family == template.family and (wider := wide.merge(existing.template)).fits:
                    wide = wider
            carrier = CarrierRecord(f"c{len(self.state.carriers)}", wide, self._delay(wide.family))
            self.state.carriers[carrier.id] = carrier
            self._note(carrier)

    def _delay(self, family: Family) -> int:
        return max((s.delay_us for s in self._catalog.values() if s.schema_class in family.classes), default=0)

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
            Status.JOINING if carrier.version else Status.LIVE,
            carrier.version + 1,
        )
        self.state.fragments[number] = fragment
        self._index(fragment)
        self._note(fragment)
        return fragment

    def _confirm(self, fragment: FragmentRecord, before_us: int | None) -> None:
        """A micro-batch saw the table with the fragment; the batches before it had times up to `before_us`."""
        fragment.status = Status.LIVE
        fragment.from_us = None if before_us is None else before_us + 1 + fragment.lookback_us
        del self._waiting[fragment.carrier][fragment.id]
        self._note(fragment)
        for part in self._users[fragment.id]:
            self._begin(part, fragment)

    def _begin(self, part: PartRecord, fragment: FragmentRecord, *, from_now: bool = False) -> None:
        newest = self.state.carriers[fragment.carrier].newest_us
        part.from_us = fragment.from_us
        if from_now and newest is not None:
            part.from_us = max(newest + 1 + fragment.lookback_us, fragment.from_us or newest)
        part.settled = True
        self._note(part)

    def _end(self, part: PartRecord, carrier: CarrierRecord) -> None:
        """What is not completely seen is not answered for, also while others use the fragment: they may leave next."""
        complete = carrier.complete_us
        part.until_us = complete if part.settled and complete is not None else BEGINNING_US
        part.settled = True
        self._users[part.fragment].remove(part)
        self._note(part)

    def _leave(self, fragment: FragmentRecord, last: PartRecord) -> None:
        """Out of the table. Windows that are still open are owed, so the carrier is needed until they are closed."""
        del self._present[fragment.carrier][fragment.id]
        del self._by_signature[fragment.signature][fragment.id]
        self._waiting.get(fragment.carrier, {}).pop(fragment.id, None)
        owed = last.windowed and last.until_us != BEGINNING_US
        fragment.status = Status.LEAVING if owed else Status.GONE
        fragment.until_us = last.until_us
        self._index(fragment)
        self._note(fragment)

    def _let_go(self, fragment: FragmentRecord, event: BatchDone) -> None:
        assert fragment.until_us is not None, "decided when it left"
        if event.watermark_us is not None and event.watermark_us >= fragment.until_us:
            fragment.status = Status.GONE
            del self._waiting[fragment.carrier][fragment.id]
            self._note(fragment)

    def _observe(self, carrier: CarrierRecord, event: BatchDone) -> None:
        before = carrier.inputs_us or (None,) * len(event.newest_us)
        carrier.inputs_us = tuple(
            max((t for t in times if t is not None), default=None)
            for times in zip(before, event.newest_us, strict=True)
        )
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

    def _start(self, carriers: Iterable[str]) -> list[Instruction]:
        """Those that do not run, among them carriers that had no queries left when the job was last stopped."""
        stopped = [self.state.carriers[name] for name in carriers if name not in self._runs]
        for carrier in stopped:
            # The streams of a job may have changed since; what was read before came with the delay of then.
            carrier.delay_us = max(carrier.delay_us, self._delay(carrier.template.family))
            self._runs[carrier.id] = Run(len(carrier.template.family.classes))
        return [StartCarrier(c.id) for c in stopped]

    def _index(self, fragment: FragmentRecord) -> None:
        if fragment.status in (Status.JOINING, Status.LIVE):
            self._present.setdefault(fragment.carrier, {})[fragment.id] = fragment
            self._by_signature.setdefault(fragment.signature, {})[fragment.id] = fragment
        if fragment.status in (Status.JOINING, Status.LEAVING):
            self._waiting.setdefault(fragment.carrier, {})[fragment.id] = fragment

    def _note(self, record: Record) -> None:
        self.changed[id(record)] = record
