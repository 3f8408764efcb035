"""A month of running in minutes: queries come and go by the clock of the bench, all that is kept is real.

Journal, assignment tables, results logs and the states of sinks are written and tidied by the code that does it in a
job; only Spark is left out: its part is played by a node that writes a small micro-batch per carrier and hour. Every
hour a share of the queries is replaced, each by one that asks for something else. At the beginning and at the end it is
measured what a submit, a poll, a status and a round of the sinks cost, and how large everything is.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.api.monitor import Monitor
from towpath.control.act.engine import Engine
from towpath.control.act.housekeeping import Housekeeper
from towpath.control.decide.requests import Request
from towpath.control.journal.journal import Journal
from towpath.lab.bench.steps import Say
from towpath.lang import parse
from towpath.plan.assignment import TableChange
from towpath.plan.assignment import columns as assignment_columns
from towpath.plan.templates import Template
from towpath.runtime.carriers import BatchDone
from towpath.runtime.fake import FakeNode
from towpath.schema import Catalog, Column, Stream, Type
from towpath.spark import assignments
from towpath.spark.carrier import column_types
from towpath.store.layout import Store

HOUR_US = 3_600_000_000
TIME = pa.timestamp("us", "UTC")
CATALOG: Catalog = {
    "trades": Stream(
        "trades",
        (Column("k", Type.BIGINT), Column("price", Type.DOUBLE), Column("at", Type.TIMESTAMP)),
        "at",
        2_000_000,
    )
}
TABLES = ("queries", "parts", "fragments", "carriers", "moves")


@dataclass(frozen=True)
class MonthPlan:
    queries: int = 10_000
    hours: int = 720
    replaced: float = 0.01  # of the queries, every hour
    together: int = 10  # replacements that are submitted at once
    sinks: int = 20  # queries that have one
    rows: int = 200  # results of a micro-batch
    retention_hours: int = 168
    tidy_hours: int = 6  # between two rounds of the housekeeping
    quiet_hours: int = 40  # before anything is measured, so that logs look as they do all the time
    samples: int = 25


QUICK = MonthPlan(queries=60, hours=40, replaced=0.1, together=3, sinks=2, rows=10, retention_hours=10, samples=3)


@dataclass(frozen=True)
class MonthCost:
    """Milliseconds, in the median."""

    submit: float
    poll: float
    status: float
    sinks: float  # a round after a micro-batch, for one sink
    load: float  # of the journal, at a start


@dataclass(frozen=True)
class StoreSize:
    """What is kept."""

    bytes: dict[str, int]  # of the store, by part
    rows: dict[str, int]  # of the journal, by table
    history: int
    files: int

    @property
    def total(self) -> int:
        return sum(self.bytes.values())


@dataclass(frozen=True)
class MonthReport:
    plan: MonthPlan
    replaced: int
    seconds: float
    cost: dict[str, MonthCost]  # at the beginning, at the end
    size: dict[str, StoreSize]  # at the beginning, when the first results have reached their retention, at the end

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratios, "bytes": {name: size.total for name, size in self.size.items()}}

    @property
    def ratios(self) -> dict[str, float]:
        """End to beginning."""
        begin, end = asdict(self.cost["begin"]), asdict(self.cost["end"])
        return {name: end[name] / begin[name] for name in begin}


class MonthNode(FakeNode):
    """Spark's part: tables are published, a micro-batch of each carrier is written when it is asked for."""

    def __init__(self, store: Store, now_us: Callable[[], int], rows: int, rng: Random) -> None:
        super().__init__()
        self._store = store
        self._now_us = now_us
        self._rows = rows
        self._rng = rng

    def publish(self, carrier: str, template: Template, version: int, change: TableChange) -> None:
        columns = assignment_columns(template, column_types(template))
        assignments.publish(self._store.assignments(carrier), version, columns, change)
        super().publish(carrier, template, version, change)

    def start(self, carrier: str, template: Template, epoch: int, banned: Sequence[int] = ()) -> None:
        self._store.open_epoch(carrier, epoch)
        super().start(carrier, template, epoch, banned)

    def run(self) -> None:
        """A micro-batch of each carrier."""
        for carrier, template in self.running.items():
            number, present = self.next_batch(carrier), list(self.tables[carrier])
            self._write(carrier, template, number, self._rng.sample(present, min(self._rows, len(present))))
            now = self._now_us()
            newest = (now,) * len(template.family.classes)
            version, first = self.versions[carrier], number == 0
            done = BatchDone(carrier, number, version, newest, now - HOUR_US, self._rows, (), 0, 0.1, {}, first)
            self.news.append(done)

    def _write(self, carrier: str, template: Template, number: int, fragments: Sequence[int]) -> None:
        folder = self._store.epoch(carrier, 0) / "results" / f"batch={number}"
        folder.mkdir(parents=True)
        times = pa.array([self._now_us()] * len(fragments), TIME)
        own = {"_fragment": pa.array(fragments, pa.int32()), "_time": times, "_born": times}
        values = [f"c_i0_{name}" for _, name in template.columns] or ["g0", "a0"]
        made = {name: pa.array(range(len(fragments)), pa.int64()) for name in values}
        pq.write_table(pa.table(own | made), folder / "part-0.parquet")
        (folder / "_SUCCESS").touch()
        seconds = self._now_us() / 1e6
        os.utime(folder / "part-0.parquet", (seconds, seconds))


class Month:
    def __init__(self, plan: MonthPlan, root: Path) -> None:
        self._plan = plan
        self._rng = Random(1)
        self._numbers = 0
        self._us = 1_800_000_000_000_000
        self._out = root / "out"
        self._store = Store(root / "store")
        self._node = MonthNode(self._store, lambda: self._us, plan.rows, self._rng)
        retention_us = plan.retention_hours * HOUR_US
        self._engine = Engine(
            self._store,
            Journal(self._store.journal, now_us=lambda: self._us),
            {"local": self._node},
            CATALOG,
            retention_us=retention_us,
            clock=lambda: self._us / 1e6,
        )
        self._monitor = Monitor(self._engine.controller, self._store)
        self._keeper = Housekeeper(self._store, retention_us, lambda: self._us)
        self.replaced = 0

    def run(self, say: Say) -> MonthReport:
        begun = time.monotonic()
        for first in range(0, self._plan.queries, 500):
            self._submit(range(first, min(first + 500, self._plan.queries)))
        for _ in range(self._plan.quiet_hours):
            self._hour(0)
        cost, size = {"begin": self._cost()}, {"begin": self._size()}
        for hour in range(1, self._plan.hours + 1):
            self._hour(hour)
            if hour == self._plan.retention_hours + 1:
                size["retention"] = self._size()
            if hour % 24 == 0:
                say(f"day {hour // 24}: {self.replaced:,} queries replaced")
        cost["end"], size["end"] = self._cost(), self._size()
        self._engine.close()
        return MonthReport(self._plan, self.replaced, time.monotonic() - begun, cost, size)

    def _hour(self, hour: int) -> None:
        self._us += HOUR_US
        count = round(self._plan.queries * self._plan.replaced) if hour else 0
        chosen = self._rng.sample(range(self._plan.queries), count)
        for first in range(0, count, self._plan.together):
            self._submit(chosen[first : first + self._plan.together])
        self.replaced += count
        self._node.run()
        self._poll()
        if hour % self._plan.tidy_hours == 0:
            self._keeper.feed_sinks()
            self._keeper.tidy()

    def _poll(self) -> None:
        self._monitor.hear(self._engine.poll())
        self._engine.memory.fed(self._keeper.finished())

    def _submit(self, names: Sequence[int]) -> None:
        """Queries that ask for what nobody has asked for before."""
        self._engine.submit([self._request(number) for number in names])

    def _request(self, name: int) -> Request:
        self._numbers += 1
        constant = self._numbers
        sql = (
            f"SELECT k, count(*) AS n FROM trades [RANGE 1 MINUTE] WHERE k = {constant} GROUP BY k"
            if name % 5 == 4
            else f"SELECT k, price FROM trades WHERE k = {constant} AND price > 1.5"
        )
        sink = {"type": "parquet", "path": str(self._out / f"q{name}")} if name < self._plan.sinks else None
        return Request(parse(sql, CATALOG, f"q{name}"), sink=sink)

    # --- measuring ---------------------------------------------------------------------------------------------------

    def _cost(self) -> MonthCost:
        requests = [[self._request(number)] for number in range(self._plan.samples)]
        submit = [_ms(partial(self._engine.submit, request)) for request in requests]
        poll = [_ms(self._engine.poll) for _ in requests]
        status = [_ms(self._monitor.figures) for _ in requests]
        with_journal = [_ms(self._load) for _ in range(3)]
        sinks = []
        for _ in range(3):
            self._node.run()
            self._poll()
            sinks.append(_ms(self._keeper.feed_sinks) / max(1, self._plan.sinks))
        return MonthCost(median(submit), median(poll), median(status), median(sinks), median(with_journal))

    def _load(self) -> None:
        journal = Journal(self._store.journal, read_only=True)
        journal.load()
        journal.close()

    def _size(self) -> StoreSize:
        sizes = {"journal": 0, "assignments": 0, "results": 0, "sinks": 0, "other": 0}
        files = 0
        for folder, _, names in os.walk(self._store.root):
            parts = Path(folder).relative_to(self._store.root).parts
            for name in names:
                part = "journal" if name.startswith("journal") else next((p for p in parts if p in sizes), "other")
                sizes[part] += (Path(folder) / name).stat().st_size
                files += 1
        journal = Journal(self._store.journal, read_only=True)
        known, entries = journal.load(ended=True), len(journal.history())
        journal.close()
        return StoreSize(sizes, {table: len(getattr(known, table)) for table in TABLES}, entries, files)


def _ms(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def run(plan: MonthPlan, say: Say) -> MonthReport:
    with tempfile.TemporaryDirectory(prefix="towpath-month-") as folder:
        return Month(plan, Path(folder)).run(say)
