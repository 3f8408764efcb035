"""What a link costs: aggregates over joins, each in one piece and cut in two, on one node inside this process.

Throughput is that of a backlog. The cost of a hop shows in a steady stream: how much later results come, and how much
CPU time the process and all that it started take.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from towpath.api.running import Towpath, start
from towpath.control.decide.requests import Request
from towpath.job import Job
from towpath.lab.bench.feeder import Feeder, write
from towpath.lab.bench.following import Follower
from towpath.lab.bench.shared import job
from towpath.lab.bench.steps import Say
from towpath.lab.bench.workloads import MOST, rows
from towpath.lab.usage import cpu_seconds
from towpath.lang import parse
from towpath.plan import CUT, WHOLE
from towpath.runtime.carriers import BatchDone
from towpath.schema import Column, Stream, Type, is_link
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource

SECOND_US = 1_000_000
START_US = 1_767_225_600 * SECOND_US  # 2026-01-01
BACKLOG_RATE = 2000  # rows for a second of event time
SOON_MS = 10  # trigger while a backlog is processed
LOOK_S = 0.1
WAYS = {"whole": WHOLE, "cut": CUT}
SHARED, APART = "one join for all", "a join for each"


@dataclass(frozen=True)
class LinksPlan:
    queries: int = 20
    files: int = 10  # of the backlog
    rows: int = 20_000  # of each file
    rate: int = 1000  # of the steady stream
    trigger_ms: int = 1000
    warm_s: float = 20.0
    steady_s: float = 20.0


QUICK = LinksPlan(queries=2, files=1, rows=2000, rate=200, warm_s=4, steady_s=3)


@dataclass(frozen=True)
class LinkCost:
    rows_per_s: float  # of the backlog
    delay_s: float  # from a result's time to its reader, median
    cpu: float  # cores
    micro_batch_s: float  # of all carriers, median
    hop_s: float | None  # of those that read links


@dataclass(frozen=True)
class LinksReport:
    plan: LinksPlan
    costs: dict[str, dict[str, LinkCost]]  # by what the queries share, and the way they run

    def to_json(self) -> dict[str, object]:
        return {
            name: {way: {key: value and round(value, 3) for key, value in vars(c).items()} for way, c in ways.items()}
            | {"throughput_ratio": round(ways["cut"].rows_per_s / ways["whole"].rows_per_s, 2)}
            for name, ways in self.costs.items()
        }


def run(plan: LinksPlan, say: Say) -> LinksReport:
    costs: dict[str, dict[str, LinkCost]] = {}
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        for name in (SHARED, APART):
            for way, fragments in WAYS.items():
                say(f"{plan.queries} aggregates, {name}, {way}")
                folder = Path(scratch) / f"{way}-{len(costs)}"
                speed = _backlog(folder / "backlog", plan, name, fragments)
                steady = _steady(folder / "steady", plan, name, fragments)
                costs.setdefault(name, {})[way] = replace(steady, rows_per_s=speed)
    return LinksReport(plan, costs)


def _job(folder: Path, data: Path, trigger_ms: int) -> Job:
    data.mkdir(parents=True)
    columns = {
        "trades": (Column("channel", Type.INT), Column("price", Type.DOUBLE), Column("at", Type.TIMESTAMP)),
        "readings": (Column("k", Type.INT), Column("a", Type.DOUBLE), Column("at", Type.TIMESTAMP)),
    }
    source = FilesSource(type="files", path=str(data), format="parquet")
    streams = {
        name: StreamDef(Stream(name, some, "at", SECOND_US), source, idle_after_ms=0) for name, some in columns.items()
    }
    return replace(job(folder, data, cores=2, trigger_ms=trigger_ms), streams=streams)


def _requests(job: Job, plan: LinksPlan, name: str, fragments: str) -> list[Request]:
    """Counts and averages of pairs, by channel; either the join's condition differs or what is asked of the groups."""
    found = []
    for n in range(plan.queries):
        least, most = (0.0, n) if name == SHARED else (MOST * n / plan.queries, 0)
        sql = (
            "SELECT t.channel, count(*) AS n, avg(r.a) AS mean FROM trades [RANGE 2 SECONDS] AS t, "
            f"readings [RANGE 2 SECONDS] AS r WHERE t.channel = r.k AND r.a >= {least} "
            f"GROUP BY t.channel HAVING count(*) > {most}"
        )
        found.append(Request(parse(sql, job.catalog, f"q{n}"), fragments=fragments))
    return found


def _backlog(folder: Path, plan: LinksPlan, name: str, fragments: str) -> float:
    """Rows a second. The queries run already and have seen a first file, so that nothing is started meanwhile."""
    data, staged = folder / "data", folder / "staged"
    made = _job(folder, data, SOON_MS)
    staged.mkdir()
    length_us = plan.rows * SECOND_US // BACKLOG_RATE
    for n in range(plan.files + 1):
        write(staged, f"{n:04}", rows(n, START_US + n * length_us, length_us, plan.rows))
    first, *others = sorted(staged.iterdir())
    with start(made) as running:
        running.engine.submit(_requests(made, plan, name, fragments))
        first.rename(data / first.name)
        running.engine.finishing.catch_up()
        begun = time.monotonic()
        for file in others:
            file.rename(data / file.name)
        running.engine.finishing.catch_up()
        return plan.files * plan.rows / (time.monotonic() - begun)


def _steady(folder: Path, plan: LinksPlan, name: str, fragments: str) -> LinkCost:
    data = folder / "data"
    made = _job(folder, data, plan.trigger_ms)
    with Feeder(data, plan.rate, files=1) as feeder, start(made) as running:
        running.engine.submit(_requests(made, plan, name, fragments))
        feeder.start()
        _watch(running, plan.warm_s, [])
        followers = [Follower(running.engine.answers.parts, f"q{n}") for n in range(0, plan.queries, 5)]
        before = cpu_seconds()
        batches = _watch(running, plan.steady_s, followers)
        cpu = (cpu_seconds() - before) / plan.steady_s
        classes = {c.id: c.template.family.classes for c in running.engine.carriers}
        hops = [b.seconds for b in batches if any(map(is_link, classes[b.carrier]))]
        delays = [arrival.delay_s for follower in followers for arrival in follower.arrivals]
        spent = [b.seconds for b in batches]
        return LinkCost(0.0, median(delays or [0.0]), cpu, median(spent or [0.0]), median(hops) if hops else None)


def _watch(running: Towpath, seconds: float, followers: Sequence[Follower]) -> list[BatchDone]:
    found: list[BatchDone] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        running.poll(lambda events: found.extend(e for e in events if isinstance(e, BatchDone)))
        for follower in followers:
            follower.look()
        time.sleep(LOOK_S)
    return found
