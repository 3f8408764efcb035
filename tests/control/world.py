"""Queries and streams for the controller, and a model of the carriers it decides about: no Spark, no clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from towpath.config.settings import BEGINNING, Start
from towpath.control.act.decisions import Decisions
from towpath.control.act.linkfiles import LinkFiles
from towpath.control.decide.choose_node import Places
from towpath.control.decide.controller import Controller, Instruction, Submission
from towpath.control.journal.journal import Journal
from towpath.control.state.records import PartRecord, QueryRecord, State
from towpath.lang import parse
from towpath.plan import CUT, CarrierKinds
from towpath.plan.assignment import Row, TableChange
from towpath.plan.build import build, optimise
from towpath.plan.cut import plan
from towpath.plan.pipeline import pipelines
from towpath.plan.templates import Template
from towpath.runtime.carriers import BatchDone
from towpath.runtime.fake import FakeNode
from towpath.schema import LINK, Catalog, Column, Stream, Type, in_time_from
from towpath.store.layout import Store

SECOND = 1_000_000
DELAY = 3 * SECOND


def stream(name: str, delay_us: int = DELAY) -> Stream:
    columns = (Column("k", Type.BIGINT), Column("v", Type.DOUBLE), Column("at", Type.TIMESTAMP))
    return Stream(name, columns, "at", delay_us)


CATALOG: Catalog = {name: stream(name) for name in ("s", "t")}

SQL = {
    "filter": "SELECT k FROM s WHERE v > 1",
    "same filter": "SELECT k FROM s WHERE 1 < v",
    "narrow filter": "SELECT k FROM s WHERE v > 5",
    "all columns": "SELECT k, v FROM s WHERE v > 1",
    "other filter": "SELECT k FROM t WHERE v > 2",
    "computed": "SELECT k + 1 AS n FROM s WHERE v > 1",
    "window": "SELECT k, count(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k",
    "hopping": "SELECT sum(v) AS total FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS]",
    "join": "SELECT a.k FROM s [RANGE 2 SECONDS] AS a, t [RANGE 2 SECONDS] AS b WHERE a.k = b.k",
    "other join": "SELECT a.k FROM s [RANGE 2 SECONDS] AS a, t [RANGE 2 SECONDS] AS b WHERE a.k = b.k AND a.v > 3",
    "join window": "SELECT count(*) AS n FROM s [RANGE 2 SECONDS] AS a, t [RANGE 2 SECONDS] AS b WHERE a.k = b.k",
    "narrow join window": "SELECT count(*) AS n FROM s [RANGE 2 SECONDS] AS a, t [RANGE 2 SECONDS] AS b "
    "WHERE a.k = b.k AND a.v > 5",
    "union": "SELECT k FROM s WHERE v > 7 UNION ALL SELECT k FROM t WHERE v > 8",
}


@cache
def _planned(kind: str) -> Submission:
    query = parse(SQL[kind], CATALOG, kind)
    columns = tuple(c.name for c in query.columns)
    return Submission(kind, query.sql, columns, pipelines(optimise(build(query), CATALOG), CATALOG))


def planned_of(sql: str) -> Submission:
    """Of the SQL of one of the kinds."""
    return next(p for p in map(_planned, SQL) if p.sql == sql)


def submission(name: str, kind: str, *, start: Start = BEGINNING, node: str | None = None) -> Submission:
    planned = _planned(kind)
    return Submission(name, planned.sql, planned.columns, planned.pipelines, start, node=node)


def cut(name: str, kind: str, *, node: str | None = None, start: Start = BEGINNING) -> tuple[Submission, Submission]:
    """A query in two pieces: what makes its derived stream, and itself."""
    query = parse(SQL[kind], CATALOG, name)
    made = plan(query, CATALOG, CUT)
    (derived,) = made.derived
    link = Submission(derived.stream.name, query.sql, derived.columns, (derived.pipeline,), origin=LINK, node=node)
    columns = tuple(c.name for c in query.columns)
    return link, Submission(name, query.sql, columns, made.pipelines, start, node=node, fragments=CUT, whole=made.whole)


def batch_done(
    carrier: str,
    number: int,
    version: int | None,
    newest: Sequence[int | None],
    watermark: int | None = None,
    *,
    first: bool = False,
    begins: Sequence[str] = (),
    ends: Sequence[str] = (),
    bounds: Sequence[int | None] = (),
    more: bool = False,
) -> BatchDone:
    places = (tuple(begins), tuple(ends), tuple(bounds))
    return BatchDone(carrier, number, version, tuple(newest), watermark, 1, (), 0, 0.1, {}, first, *places, more=more)


@dataclass(frozen=True)
class Table:
    version: int
    fragments: frozenset[int]


def _fragments(rows: Iterable[Row]) -> frozenset[int]:
    return frozenset(int(str(row["_fragment"])) for row in rows)


@dataclass
class Batch:
    times: tuple[tuple[int, ...], ...]  # of each input, the tuples that are in time
    fragments: frozenset[int]  # that surely have all its tuples, both in the results and in the state
    late: tuple[tuple[int, ...], ...] = ()
    ticks: tuple[int | None, ...] = ()

    def of(self, n: int) -> tuple[int, ...]:
        """All that an input brought."""
        return (*self.times[n], *(self.late[n] if self.late else ()))


@dataclass
class Carrier:
    """What a real carrier would have done. Batches and the last table survive a crash, events do not."""

    inputs: int
    tables: list[Table] = field(default_factory=list)
    read: int = 0  # the newest table that a batch has read
    batches: list[Batch] = field(default_factory=list)
    heard: int = 0  # batches
    events: list[BatchDone] = field(default_factory=list)
    running: bool = False
    starting: bool = False  # the next report is the first
    watermark: int | None = None  # the highest that a batch had
    has_times: bool = False  # its positions are event times, as those of feeds are
    ticks: dict[int, int] = field(default_factory=dict)  # by input, for the next batch
    heard_us: int | None = None  # the newest event time that was heard of
    backlog: list[int] = field(default_factory=list)  # what was there when it was started, as far as it was heard of
    caught_up: bool = False  # that is all of it

    def publish(self, version: int, change: TableChange) -> None:
        assert change.since is None or change.since == self.tables[-1].version
        before = self.tables[-1].fragments if change.since is not None else frozenset()
        self.tables.append(Table(version, (before | _fragments(change.added)) - frozenset(change.removed)))

    def newest(self, n: int) -> int | None:
        return max((t for b in self.batches for t in b.times[n]), default=None)

    def next_watermark(self) -> int | None:
        """Ticks move event time on, too."""
        ticks = [tuple(b.ticks[n] for b in self.batches if b.ticks) for n in range(self.inputs)]
        reached = [[t for t in (self.newest(n), *ticks[n]) if t is not None] for n in range(self.inputs)]
        return min(in_time_from(max(times), DELAY) for times in reached) if all(reached) else None

    def in_time(self, n: int, event_us: int) -> bool:
        newest, watermark = self.newest(n), self.next_watermark()
        late = [] if newest is None else [in_time_from(newest, DELAY)]
        return event_us >= max([*late, *([] if watermark is None else [watermark])], default=event_us)

    def run_batch(
        self, name: str, times: Sequence[Sequence[int]], oldest: int, newest: int, *, more: bool = False
    ) -> None:
        """A batch of which some parts read table `oldest`, others `newest`: it may last over a publication."""
        read = self.tables[oldest : newest + 1]
        seen = frozenset.intersection(*(t.fragments for t in read))
        good = tuple(tuple(t for t in some if self.in_time(n, t)) for n, some in enumerate(times))
        late = tuple(tuple(t for t in some if not self.in_time(n, t)) for n, some in enumerate(times))
        batch = Batch(good, seen, late, tuple(self.ticks.get(n) for n in range(self.inputs)))
        self._report(name, self.tables[oldest].version, batch, more=more)
        self.batches.append(batch)
        self.ticks.clear()
        self.read = newest

    def repeat_batch(self, name: str) -> None:
        """The last batch again with the table of now, while its results may be those of the first time."""
        last = self.batches.pop()
        seen = last.fragments & self.tables[-1].fragments
        again = replace(last, fragments=seen)
        self._report(name, self.tables[-1].version, again)
        self.batches.append(again)
        self.read = len(self.tables) - 1

    def _report(self, name: str, version: int, batch: Batch, *, more: bool = False) -> None:
        watermark, inputs = self.next_watermark(), range(self.inputs)
        newest = [max(batch.of(n), default=None) for n in inputs]
        read = [sum(len(b.of(n)) for b in self.batches) for n in inputs]
        done = batch_done(name, len(self.batches), version, newest, watermark, first=self.starting, more=more)
        self.events.append(
            replace(
                done,
                begins=tuple(map(str, read)),
                ends=tuple(str(read[n] + len(batch.of(n))) for n in inputs),
                bounds_us=tuple(self.newest(n) if self.has_times else None for n in inputs),
            )
        )
        self.starting = False
        if watermark is not None:
            self.watermark = max(watermark, self.watermark or watermark)


class ModelNode(FakeNode):
    """Lets the carriers of a world do what the engine has_times a node."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        model = self._world.model(carrier)
        model.publish(version, change)
        assert model.tables[-1].fragments == _fragments(self._world.controller.known.rows(carrier))

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        model = self._world.model(carrier)
        assert not model.running
        model.running = model.starting = True
        model.backlog, model.caught_up = [], False

    def stop(self, carrier: str) -> None:
        self._world.model(carrier).running = False


class World:
    """An engine without Spark: it decides, writes the journal and acts as the engine does, on carriers of the model."""

    def __init__(
        self, journal: Path, nodes: Sequence[str] = ("local",), carriers: CarrierKinds = CarrierKinds.COMPILED
    ) -> None:
        self.places = Places(CATALOG, carriers=carriers)
        self.carriers: dict[str, Carrier] = {}
        self.journal = Journal(journal)
        self._everything, self.unread = State(), True  # what the journal has, and whether it has more by now
        self.nodes = nodes
        # Parts that were set aside, and where their inputs had come: what comes later is not theirs.
        self.given_up: dict[tuple[int, int, int], int | None] = {}
        self._links = LinkFiles(Store(journal.parent))
        self.controller = Controller(self.journal.load(), CATALOG, nodes, self.places)

    @property
    def controller(self) -> Controller:
        return self._decisions.controller

    @controller.setter
    def controller(self, controller: Controller) -> None:
        """Another one, as after a crash: it knows nothing of what was still to be done."""
        node = ModelNode(self)
        self._decisions = Decisions(controller, self.journal, defaultdict(lambda: node), self._links)

    def model(self, carrier: str) -> Carrier:
        record = self.controller.state.carriers[carrier]
        made = Carrier(len(record.template.family.classes), has_times=int(record.id[1:]) % 2 == 0)
        return self.carriers.setdefault(record.id, made)

    @contextmanager
    def deciding(self) -> Iterator[list[Instruction]]:
        """What is decided inside is written down; what is put into the list is done afterwards."""
        with self._decisions.decision() as todo:
            yield todo
            self.unread |= bool(self.controller.changed)
        assert not self._decisions.guard.troubles

    def act(self, instructions: Iterable[Instruction]) -> None:
        """What was decided a moment ago."""
        with self.deciding() as todo:
            todo += instructions

    def save(self) -> None:
        self.act([])

    def submit(self, *submissions: Submission) -> None:
        """Who needs the past gets it in the same step."""
        with self.deciding() as todo:
            todo += self.controller.queries.submit(submissions)
            todo += self.controller.queries.catch_up()

    def poll(self, now_s: float = 0.0) -> None:
        """What the engine does between events."""
        with self.deciding() as todo:
            todo += self.controller.go_on(now_s)

    def query_of(self, part: PartRecord) -> QueryRecord:
        return self.controller.state.queries[part.query]

    def withdraw(self, name: str) -> None:
        with self.deciding() as todo:
            todo += self.controller.queries.withdraw(name)

    def move(self, name: str, node: str) -> None:
        """Begins to move every fragment of a query."""
        for part in self.parts(name):
            with self.deciding() as todo:
                todo += self.controller.move(part.fragment, node, "asked for")

    def change_carrier(self, name: str, carriers: CarrierKinds) -> None:
        """Begins to move every fragment of a query to a carrier of that kind where it is."""
        for part in self.parts(name):
            with self.deciding() as todo:
                node = self.controller.known.node_of(part.fragment)
                todo += self.controller.move(part.fragment, node, "asked for", carriers)

    def abandon(self, move: int) -> None:
        with self.deciding() as todo:
            todo += self.controller.moves.abandon(self.controller.state.moves[move], "asked for")

    @property
    def everything(self) -> State:
        """All that the journal has: the controller does not know any more what is over."""
        if self.unread:
            self._everything, self.unread = self.journal.load(ended=True), False
        return self._everything

    def turns(self, name: str) -> list[PartRecord]:
        return self._state_of(name).turns(self.query(name).id, 0)

    def hear(self, name: str, events: int | None = None) -> None:
        carrier = self.carriers[name]
        for event in carrier.events[:events]:
            newest = [us for us in event.newest_us if us is not None]
            carrier.heard_us = max([*newest, *([] if carrier.heard_us is None else [carrier.heard_us])], default=None)
            if not carrier.caught_up:
                carrier.backlog += newest
                carrier.caught_up = not event.more
            with self.deciding() as todo:
                todo += self.controller.handle(event)
            carrier.heard = event.batch + 1
        del carrier.events[:events]

    def batch(self, name: str, *times: Sequence[int], more: bool = False) -> None:
        """A batch that reads the table of now and is heard at once."""
        carrier = self.carriers[name]
        carrier.run_batch(name, times, len(carrier.tables) - 1, len(carrier.tables) - 1, more=more)
        self.hear(name)

    def crash(self) -> None:
        """The process dies and comes back; what it had not saved is gone."""
        for carrier in self.carriers.values():
            carrier.events.clear()
            carrier.running = False
        self.controller = Controller(self.journal.load(), CATALOG, self.nodes, self.places)
        with self.deciding() as todo:
            todo += self.controller.resume()

    def lose(self, node: str) -> list[str]:
        """A node does not answer any more. Returns which carriers it ran."""
        taken = [c.id for c in self.controller.state.carriers.values() if c.node == node and c.id in self.carriers]
        for name in taken:
            self.carriers[name].events.clear()
            self.carriers[name].running = False
        with self.deciding() as todo:
            todo += self.controller.failover.lose(node, "it does not answer")
        return taken

    def back(self, node: str) -> None:
        with self.deciding() as todo:
            todo += self.controller.failover.back(node)

    def set_aside(self, name: str, fragments: Iterable[int]) -> None:
        """A carrier fails with these fragments, and goes on without them."""
        answering = {key: part for key, part in self.controller.state.parts.items() if not part.done}
        with self.deciding() as todo:
            for fragment in fragments:
                todo += self.controller.failing.set_aside(fragment, "a fault")
            for key, part in answering.items():
                if part.done:
                    seat = self.controller.state.fragments[part.fragment]
                    self.given_up[key] = self.carriers[seat.carrier].next_watermark()
            todo += self.controller.failing.restart(name)

    def query(self, name: str) -> QueryRecord:
        """The newest of that name."""
        state = self._state_of(name)
        return max((q for q in state.queries.values() if q.name == name), key=lambda q: q.id)

    def _state_of(self, name: str) -> State:
        known = any(query.name == name for query in self.controller.state.queries.values())
        return self.controller.state if known else self.everything

    def parts(self, name: str) -> list[PartRecord]:
        return self._state_of(name).parts_of(self.query(name).id)

    def part(self, name: str) -> PartRecord:
        (part,) = self.parts(name)
        return part

    def validity(self, name: str) -> tuple[bool, int | None, int | None]:
        part = self.part(name)
        return part.settled, part.from_us, part.until_us


def losses(world: World) -> list[str]:
    """Every tuple that a query answers for and that its fragment has not seen, in words for people."""
    found = []
    state = world.everything
    for part in state.parts.values():
        fragment = state.fragments[part.fragment]
        if not part.settled or fragment.carrier not in world.carriers:
            continue
        first = -(2**62) if part.from_us is None else part.from_us - fragment.lookback_us
        last = 2**62 if part.until_us is None else part.until_us
        key = (part.query, part.branch, part.turn)
        if key in world.given_up:
            complete_us = world.given_up[key]
            last = first if complete_us is None else min(last, complete_us)
        for fence_us in (part.handed_over_us, part.ceded_us):
            if fence_us is not None:
                last = min(last, fence_us + fragment.span_us)
        for number, batch in enumerate(world.carriers[fragment.carrier].batches):
            missed = [t for times in batch.times for t in times if first <= t < last]
            if missed and fragment.id not in batch.fragments:
                name = state.queries[part.query].name
                found.append(
                    f"{name} [{part.from_us}, {part.until_us}): batch {number} of {fragment.carrier}, {missed}"
                )
    return found
