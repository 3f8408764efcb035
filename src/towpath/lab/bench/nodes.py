"""Two nodes against one, and the loss of a node: what it costs those who follow results."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from towpath.api.running import Towpath, start
from towpath.config.settings import NOW
from towpath.control.decide.requests import Request
from towpath.errors import RuntimeFailure
from towpath.job import Job
from towpath.lab.bench.endpoints import EndpointSize, endpoints, job_on
from towpath.lab.bench.feeder import Feeder, write
from towpath.lab.bench.following import Follower
from towpath.lab.bench.steps import Say
from towpath.lab.bench.workloads import MOST, rows
from towpath.lang import parse
from towpath.schema import Column, Stream, Type
from towpath.spark.capped import capped
from towpath.spark.server import Server
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource

SECOND_US = 1_000_000
START_US = 1_767_225_600 * SECOND_US  # 2026-01-01
BACKLOG_RATE = 5000  # rows for a second of event time
SOON_MS = 10  # trigger while a backlog is processed
# Streams of the backlog: the column that is grouped by, with about a hundred values, and the one that is averaged.
GROUPED = {"trades": ("channel", "price"), "readings": ("stream", "a")}
ALONE, TWICE, FOLLOWED = "alone", "twice", 3  # queries with one copy, with two, and how many of each
WARM_UP_S = 15.0
LOOK_S = 0.1
PATIENCE_S = 120.0


@dataclass(frozen=True)
class NodesPlan:
    size: EndpointSize = field(default_factory=EndpointSize)
    share: float = 0.7  # of a core, for each node while throughput is measured
    files: int = 20  # of the backlog
    rows: int = 50_000  # of each file
    queries: int = 20
    rate: int = 1000  # while a node is killed
    trigger_ms: int = 1000
    calm_s: float = 30.0  # before the kill
    after_s: float = 30.0  # for so long those with two copies are followed afterwards


QUICK = NodesPlan(share=0.9, files=2, rows=2000, queries=4, calm_s=5, after_s=5)


@dataclass(frozen=True)
class Throughput:
    """Rows of the backlog a second."""

    one: float
    two: float

    @property
    def ratio(self) -> float:
        return self.two / self.one


@dataclass(frozen=True)
class Loss:
    """A node is killed; seconds from then on."""

    noticed_s: float
    again_s: float  # until a result came whose time lies after the kill, of the last of its queries
    before_s: float  # what results took to their readers before
    pause_s: float  # of queries with two copies, the longest between results
    pause_before_s: float  # the median before
    longest_before_s: float
    trigger_s: float

    @property
    def gap_s(self) -> float:
        return max(0.0, self.pause_s - self.pause_before_s - self.trigger_s)


@dataclass(frozen=True)
class NodesReport:
    plan: NodesPlan
    throughput: dict[str, Throughput]
    loss: Loss

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            name: {
                "one_node_rows_per_s": round(t.one),
                "two_nodes_rows_per_s": round(t.two),
                "ratio": round(t.ratio, 2),
            }
            for name, t in self.throughput.items()
        }
        loss = {name: round(value, 2) for name, value in vars(self.loss).items()}
        return found | {"share_of_a_core": self.plan.share, "loss": loss | {"gap_s": round(self.loss.gap_s, 2)}}


def run(plan: NodesPlan, say: Say) -> NodesReport:
    with (
        tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch,
        endpoints(2, plan.size, say) as servers,
    ):
        folder = Path(scratch)
        throughput = {
            "two streams": _throughput(folder / "two", servers, plan, list(GROUPED), say),
            "one stream": _throughput(folder / "one", servers, plan, list(GROUPED)[:1], say),
        }
        return NodesReport(plan, throughput, _lose(folder / "loss", servers, plan, say))


# --- throughput ------------------------------------------------------------------------------------------------------


def _throughput(
    folder: Path, servers: Mapping[str, Server], plan: NodesPlan, tables: Sequence[str], say: Say
) -> Throughput:
    found = []
    for count in (1, 2):
        say(f"a backlog of {' and '.join(tables)}, nodes: {count}")
        some = dict(list(servers.items())[:count])
        found.append(_process(folder / f"{count}", some, plan, tables))
    return Throughput(*found)


def _process(folder: Path, servers: Mapping[str, Server], plan: NodesPlan, tables: Sequence[str]) -> float:
    """Rows a second. The queries run already and have seen a first file, so that nothing is started meanwhile."""
    data, staged = folder / "data", folder / "staged"
    data.mkdir(parents=True)
    staged.mkdir()
    length_us = plan.rows * SECOND_US // BACKLOG_RATE
    for n in range(plan.files + 1):
        write(staged, f"{n:04}", rows(n, START_US + n * length_us, length_us, plan.rows))
    first, *others = sorted(staged.iterdir())
    job = replace(job_on(servers, folder, data, SOON_MS), streams=_streams(data, tables))
    with start(job) as running:
        running.engine.submit(_requests(job, list(servers), plan.queries))
        first.rename(data / first.name)
        running.engine.finishing.settle()
        with capped({server.pid: plan.share for server in servers.values()}):
            begun = time.monotonic()
            for file in others:
                file.rename(data / file.name)
            running.engine.finishing.settle()
            return len(tables) * plan.files * plan.rows / (time.monotonic() - begun)


def _streams(data: Path, tables: Sequence[str]) -> dict[str, StreamDef]:
    """Streams of different columns are read by carriers of their own."""
    found = {}
    for table in tables:
        group, value = GROUPED[table]
        columns = (Column(group, Type.INT), Column(value, Type.DOUBLE), Column("at", Type.TIMESTAMP))
        source = FilesSource(type="files", path=str(data), format="parquet")
        found[table] = StreamDef(Stream(table, columns, "at", SECOND_US), source, idle_after_ms=0)
    return found


def _requests(job: Job, nodes: Sequence[str], count: int) -> list[Request]:
    """Averages by group over what lies above a threshold; those over one stream are spread over the nodes."""
    tables = list(job.streams)
    each = count // len(tables)
    found = []
    for n in range(count):
        table = tables[n * len(tables) // count]
        group, value = GROUPED[table]
        sql = (
            f"SELECT {group}, avg({value}) AS mean, count(*) AS n FROM {table} [RANGE 10 SECONDS] "
            f"WHERE {value} > {MOST * (n % each) / each} GROUP BY {group}"
        )
        node = nodes[n * len(nodes) // count] if len(tables) > 1 else nodes[n % len(nodes)]
        found.append(Request(parse(sql, job.catalog, f"q{n}"), node=node))
    return found


# --- a node dies -----------------------------------------------------------------------------------------------------


def _lose(folder: Path, servers: Mapping[str, Server], plan: NodesPlan, say: Say) -> Loss:
    data = folder / "data"
    data.mkdir(parents=True)
    victim = list(servers)[-1]
    job = job_on(servers, folder, data, plan.trigger_ms)
    with Feeder(data, plan.rate, files=1) as feeder, start(job) as running:
        say("starting queries with one copy and with two")
        running.engine.submit([*_alerts(job, ALONE, victim, 1), *_alerts(job, TWICE, None, 2)])
        running.engine.finishing.settle()
        feeder.start()
        watch = _Watch(running, [f"{kind}-{n}" for kind in (ALONE, TWICE) for n in range(FOLLOWED)])
        watch.until(lambda: all(follower.arrivals for follower in watch.followers.values()))
        say(f"following them for {plan.calm_s:.0f} s")
        begun = time.time()
        watch.until(lambda: time.time() > begun + WARM_UP_S + plan.calm_s)
        say("killing a node")
        killed = time.time()
        os.killpg(servers[victim].pid, signal.SIGKILL)
        watch.until(lambda: victim in running.engine.controller.known.lost)
        noticed_s = time.time() - killed
        watch.until(lambda: watch.all_since(killed) and time.time() > killed + plan.after_s)
        return watch.loss(begun + WARM_UP_S, killed, noticed_s, plan)


def _alerts(job: Job, kind: str, node: str | None, copies: int) -> list[Request]:
    sql = "SELECT channel, price FROM trades WHERE channel = {channel} AND price >= {least}"
    # Different thresholds: equal queries would share a fragment, and with it the node.
    texts = [sql.format(channel=n, least=copies) for n in range(FOLLOWED)]
    return [
        Request(parse(text, job.catalog, f"{kind}-{n}"), NOW, node=node, copies=copies) for n, text in enumerate(texts)
    ]


class _Watch:
    """Those who follow the queries, and the job."""

    def __init__(self, running: Towpath, queries: Sequence[str]) -> None:
        self._running = running
        self.followers = {name: Follower(running.engine.answers.parts, name) for name in queries}

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not happened():
            if time.monotonic() > end:
                raise RuntimeFailure(f"nothing came within {PATIENCE_S:.0f} s; the nodes are overloaded")
            self._running.poll()
            for follower in self.followers.values():
                follower.look()
            time.sleep(LOOK_S)

    def all_since(self, result_s: float) -> bool:
        return all(follower.first_since(result_s) is not None for follower in self.followers.values())

    def loss(self, calm: float, killed: float, noticed_s: float, plan: NodesPlan) -> Loss:
        alone, twice = self._of(ALONE), self._of(TWICE)
        again = [at_s - killed for follower in alone if (at_s := follower.first_since(killed)) is not None]
        delays = [a.delay_s for follower in alone for a in follower.arrivals if calm <= a.at_s < killed]
        before = [pause for follower in twice for pause in follower.pauses_s(calm, killed)]
        around = [pause for follower in twice for pause in follower.pauses_s(killed, killed + plan.after_s)]
        trigger_s = plan.trigger_ms / 1000
        return Loss(noticed_s, max(again), median(delays), max(around), median(before), max(before), trigger_s)

    def _of(self, kind: str) -> list[Follower]:
        return [follower for name, follower in self.followers.items() if name.startswith(kind)]
