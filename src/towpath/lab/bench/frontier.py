"""The frontier: rows per second against the number of standing queries, from a backlog, as fast as each system can.

The backlog comes when all queries have had a first micro-batch, so that what is measured is the work, and not the
start; the start is measured by itself. Plain Spark runs the same queries, as many as its time allows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql.streaming.query import StreamingQuery

from towpath.api.running import Towpath, start
from towpath.lab.bench import mixed, plain, shared
from towpath.lab.bench.apart import apart, new_log
from towpath.lab.bench.feeder import write
from towpath.lab.bench.quiet import Company, watched
from towpath.lab.bench.sharing import RATE, ReportStep
from towpath.lab.bench.single import SECOND_US, START_US, TRIGGER_MS
from towpath.lab.bench.steps import Say
from towpath.lab.bench.workloads import KINDS, WorkloadKind, rows
from towpath.spark.node import NodeSettings, open_session

PATIENCE_S = 300.0
FIRST_ROWS = 1000  # what the first micro-batches read
# The kinds of queries, by name: all of one shape, and five of each shape.
WORKLOADS: dict[str, Callable[[], WorkloadKind]] = {
    "alike windows": lambda: KINDS["windows"],
    "mixed shapes": lambda: mixed.workload(("filters", "windows")),
}


@dataclass(frozen=True)
class FrontierPlan:
    towpath: tuple[tuple[str, int], ...] = (
        ("alike windows", 1),
        ("alike windows", 1_000),
        ("alike windows", 10_000),
        ("mixed shapes", 10),
        ("mixed shapes", 200),
        ("mixed shapes", 1_000),
    )
    plain: tuple[tuple[str, int], ...] = (("alike windows", 1), ("alike windows", 10), ("mixed shapes", 10))
    files: int = 100
    rows: int = 100_000  # of each file
    rounds: int = 2  # the second one counts: in the first the JVM compiles
    cores: int = 2


QUICK = FrontierPlan(
    towpath=(("alike windows", 10), ("mixed shapes", 10)), plain=(("alike windows", 1),), files=2, rows=5000, rounds=1
)


@dataclass(frozen=True)
class Point:
    """One system with so many queries."""

    system: str
    workload: str
    queries: int
    rows_per_s: float
    start_s: float  # until all queries had a first micro-batch

    def __str__(self) -> str:
        return f"{self.rows_per_s:,.0f} rows/s with {self.queries:,} queries"


@dataclass(frozen=True)
class FrontierReport:
    points: tuple[Point, ...]
    rows: int
    company: Company

    def to_json(self) -> dict[str, Any]:
        points = [asdict(p) | {"rows_per_s": round(p.rows_per_s), "start_s": round(p.start_s, 1)} for p in self.points]
        return {"rows": self.rows, "points": points, "machine": self.company.to_json()}


def run(plan: FrontierPlan, report: ReportStep) -> FrontierReport:
    log = new_log()
    points = []
    with watched() as watch:
        for system, measure, numbers in (("plain", of_plain, plan.plain), ("towpath", of_towpath, plan.towpath)):
            for workload, n in numbers:
                say = partial(report, workload, system)
                points.append(apart(measure, plan, workload, n, log=log, say=say))
                say(str(points[-1]))
    log.unlink()  # of use only when something failed
    return FrontierReport(tuple(points), plan.files * plan.rows, watch.company())


class Running(Protocol):
    """Queries that read a folder."""

    def wait_for_first(self) -> None:
        """Until all have had a first micro-batch."""

    def settle(self) -> None:
        """Until all have read everything that is there."""


def of_towpath(plan: FrontierPlan, workload: str, n: int, say: Say) -> Point:
    requests = shared.SharedRequests(WORKLOADS[workload](), say)
    requests.first(n)
    return _measured("towpath", plan, workload, n, partial(_towpath, requests, n, plan.cores), say)


def of_plain(plan: FrontierPlan, workload: str, n: int, say: Say) -> Point:
    return _measured("plain", plan, workload, n, partial(_plain, WORKLOADS[workload](), n, plan.cores), say)


def _measured(
    system: str,
    plan: FrontierPlan,
    workload: str,
    n: int,
    opened: Callable[[Path], Iterator[Running]],
    say: Say,
) -> Point:
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        (folder / "data").mkdir()
        write(folder / "data", "first", rows(0, START_US - SECOND_US, SECOND_US, FIRST_ROWS))
        say(f"{n:,} queries: starting")
        begin = time.monotonic()
        with contextmanager(opened)(folder) as running:
            running.wait_for_first()
            started = time.monotonic() - begin
            seconds = [_round(folder, plan, number, running, say) for number in range(plan.rounds)]
    return Point(system, workload, n, plan.files * plan.rows / seconds[-1], started)


def _round(folder: Path, plan: FrontierPlan, number: int, running: Running, say: Say) -> float:
    say(f"writing backlog {number + 1} of {plan.rounds}")
    waiting = folder / "waiting"
    waiting.mkdir()
    length_us = plan.rows * SECOND_US // RATE
    for n in range(number * plan.files, (number + 1) * plan.files):
        write(waiting, f"{n:04}", rows(n + 1, START_US + n * length_us, length_us, plan.rows))
    say(f"reading backlog {number + 1} of {plan.rounds}")
    begin = time.monotonic()
    for file in sorted(waiting.iterdir()):
        file.rename(folder / "data" / file.name)
    waiting.rmdir()
    running.settle()
    return time.monotonic() - begin


class _Ours:
    def __init__(self, running: Towpath) -> None:
        self._running = running

    def wait_for_first(self) -> None:
        shared.wait_for_all(self._running.engine, PATIENCE_S)

    def settle(self) -> None:
        self._running.engine.finishing.settle()


def _towpath(requests: shared.SharedRequests, n: int, cores: int, folder: Path) -> Iterator[Running]:
    job = shared.job(folder, folder / "data", cores, TRIGGER_MS)
    # All other streams of the benchmark are read by joins alone.
    with start(replace(job, streams={"trades": job.streams["trades"]})) as running:
        running.engine.submit(requests.first(n))
        yield _Ours(running)


class _Theirs:
    def __init__(self, queries: Sequence[StreamingQuery]) -> None:
        self._queries = queries

    def settle(self) -> None:
        for query in self._queries:
            query.processAllAvailable()

    wait_for_first = settle


def _plain(kind: WorkloadKind, n: int, cores: int, folder: Path) -> Iterator[Running]:
    spark = open_session(NodeSettings(cores, plain.MEMORY), folder / "log")
    data = plain.read(spark, folder / "data", plain.SETTINGS[0])
    queries = []
    for number in range(n):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"q{number}")
        queries.append(plain.run(kind.by_hand(data, number), folder, f"q{number}", TRIGGER_MS))
    try:
        yield _Theirs(queries)
    finally:
        for query in queries:
            query.stop()
