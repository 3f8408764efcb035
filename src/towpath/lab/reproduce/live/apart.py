"""A job on three Spark Connect nodes that are unevenly far apart: what its planner predicts, and what is measured.

Streams enter at different nodes, pairs of them are joined, and aggregates read the joins over links. Readers wait as
long as their node is away from where a row comes from: real sleeps, as `network: {inject: true}` makes them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv

from towpath.api.running import Towpath
from towpath.config.network import Distances
from towpath.config.steering import ControlDef
from towpath.control.journal.answers import QueryVersion
from towpath.errors import RuntimeFailure
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lab.bench.following import Follower
from towpath.lab.reproduce.live.nodes import Machines
from towpath.placement.costs.hummer import duplication
from towpath.placement.costs.sbon import delays, network_usage
from towpath.placement.problem import Problem
from towpath.plan import CUT, WHOLE
from towpath.schema import Column, Stream, Type
from towpath.store import durable
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource
from towpath.verify import Oracle

NODES = 3
DISTANCES: Distances = {("n1", "n2"): 0.020, ("n1", "n3"): 0.200, ("n2", "n3"): 0.150}  # seconds one way
RATES = {"a": 200, "b": 60, "c": 20}  # rows per second
ENTRIES = {"a": "n1", "b": "n2", "c": "n3"}
PAIRS = (("a", "b"), ("b", "c"), ("c", "a"))
WINDOW_S = 4
KEYS = 1000
GROUPS = 8
# Of the column that an aggregate groups by; other types make another class of links, so another carrier reads them.
GROUP_TYPES = {"a": Type.BIGINT, "b": Type.INT, "c": Type.DOUBLE}
TRIGGER_MS = 2000
POLL_S = 0.1
PATIENCE_S = 180.0
FOLLOWED = 2  # queries of each pair of streams


@dataclass(frozen=True)
class ApartPlan:
    queries: int  # of all pairs together
    shared: int = 25  # queries that have a join in common
    warm_s: float = 40.0
    measure_s: float = 15.0  # of each of the repeated measurements


@dataclass(frozen=True)
class Seen:
    """During one stretch of time."""

    predicted_usage: float  # bytes in transit, of the placement as a problem
    usage: float  # of the rates with which readers read
    predicted_delay: float  # seconds between nodes, of the slowest query
    delay: float  # from a window's end by the clock until its result, of the slowest query that is followed
    duplicated: float  # streams that are buffered by more than one node
    buffering: float  # the same, of the carriers that really keep them
    state_rows: float


@dataclass
class ApartOutcome:
    seen: list[Seen] = field(default_factory=list)
    admitted: int = 0
    moves: int = 0
    wrong: tuple[str, ...] = ()  # queries whose answer is not that of DuckDB
    compared: int = 0
    rows: int = 0  # of all answers
    latencies: Mapping[tuple[str, str], float] = field(default_factory=dict)  # as measured over links, half of a trip

    def mean(self, name: str) -> float:
        return fmean(getattr(seen, name) for seen in self.seen)


def sql(plan: ApartPlan, pairs: Sequence[tuple[str, str]] = PAIRS) -> dict[str, str]:
    found = {}
    for n in range(plan.queries):
        left, right = pairs[n % len(pairs)]
        number = n // len(pairs)
        # Joins differ in what they leave out, the aggregates over one of them in the groups that they report.
        least, more = 0.5 * (number // plan.shared) / (1 + plan.queries // plan.shared), number % plan.shared
        window = f"[RANGE {WINDOW_S} SECONDS]"
        found[f"q{n}"] = (
            f"SELECT x.g_{left} AS g, count(*) AS n, sum(y.v_{right}) AS total FROM {left} {window} AS x, "
            f"{right} {window} AS y WHERE x.k_{left} = y.k_{right} AND x.v_{left} >= {least:.4f} "
            f"GROUP BY x.g_{left} HAVING count(*) > {more}"
        )
    return found


def job(
    place: Machines,
    folder: Path,
    queries: Mapping[str, str],
    control: Mapping[str, object],
    *,
    cut: bool,
    homes: Mapping[str, str] | None = None,
) -> Job:
    homes = homes or {}
    defined = {
        name: QueryDef.model_validate({"sql": text, **({"node": homes[name]} if name in homes else {})})
        for name, text in queries.items()
    }
    streams = {name: _stream(folder / "data" / name, name) for name in RATES}
    return Job(
        folder / "store",
        TRIGGER_MS,
        streams,
        place.definitions(place.names),
        defined,
        None,
        ResultsDef.model_validate({}),
        ControlDef.model_validate(control),
        CUT if cut else WHOLE,
        distances=DISTANCES,
        inject=True,
    )


def _stream(folder: Path, name: str) -> StreamDef:
    folder.mkdir(parents=True)
    columns = (
        Column(f"k_{name}", Type.BIGINT),
        Column(f"g_{name}", GROUP_TYPES[name]),
        Column(f"v_{name}", Type.DOUBLE),
        Column("at", Type.TIMESTAMP),
    )
    # Not Parquet: what Spark's own reader takes does not wait for distances.
    source = FilesSource(type="files", path=str(folder), format="csv")
    return StreamDef(Stream(name, columns, "at", rate=float(RATES[name])), source, 0, node=ENTRIES[name])


class Rows:
    """Writes what comes by the clock, and keeps it for the comparison."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder / "data"
        self._rng = np.random.default_rng(seed)
        self._kept: dict[str, list[pa.Table]] = {name: [] for name in RATES}
        self._at = float(int(time.time()))  # everything before is written
        self._files = 0

    def write(self) -> None:
        """All that has come until now, in whole seconds."""
        while self._at + 1 <= time.time():
            for name, rate in RATES.items():
                self._write(name, rate)
            self._at += 1
            self._files += 1

    def _write(self, name: str, rate: int) -> None:
        us = int(self._at * 1e6) + np.arange(rate) * 1_000_000 // rate
        kinds = {Type.BIGINT: np.int64, Type.INT: np.int32, Type.DOUBLE: np.float64}
        table = pa.table(
            {
                f"k_{name}": self._rng.integers(0, KEYS, rate),
                f"g_{name}": self._rng.integers(0, GROUPS, rate).astype(kinds[GROUP_TYPES[name]]),
                # Halves add up to the same in whatever order.
                f"v_{name}": self._rng.integers(0, 3, rate) / 2,
                "at": pa.array(us, pa.timestamp("us", "UTC")),
            }
        )
        self._kept[name].append(table)
        with durable.writing(self._folder / name / f"{self._files:06}.csv", lasting=False) as scratch:
            pyarrow.csv.write_csv(table, scratch)

    def everything(self) -> dict[str, pa.Table]:
        return {name: pa.concat_tables(tables) for name, tables in self._kept.items()}


class Watch:
    """Lets a job run on what comes, and measures it."""

    def __init__(self, running: Towpath, rows: Rows) -> None:
        self._running = running
        self._rows = rows
        self._followers: dict[str, Follower] = {}

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._rows.write()
            self._running.poll()
            for follower in self._followers.values():
                follower.look()
            time.sleep(POLL_S)

    def until_all_answer(self, queries: Sequence[str]) -> None:
        """Every one of these has had results."""
        self._followers = {name: Follower(self._running.engine.answers.parts, name) for name in queries}
        end = time.monotonic() + PATIENCE_S
        while not all(follower.arrivals for follower in self._followers.values()):
            if time.monotonic() > end:
                raise RuntimeFailure(f"no results came within {PATIENCE_S:.0f} s; see what keeps the machine busy")
            self.run(1.0)

    def seen(self, seconds: float) -> Seen:
        for follower in self._followers.values():
            follower.arrivals.clear()
        self.run(seconds)
        assert self._running.loop is not None, "the job has a control section"
        situation = self._running.loop.situation
        problem = situation.problem
        assert problem.current is not None, "a situation knows where everything is"
        usage = sum(f.bytes * problem.cluster.latency(f.source, f.target) for f in situation.flows)
        return Seen(
            network_usage(problem, problem.current),
            usage,
            max(delays(problem, problem.current).values(), default=0.0),
            max(follower.longest_s for follower in self._followers.values()),
            duplication(problem, problem.current),
            *self._buffered(problem),
        )

    def _buffered(self, problem: Problem) -> tuple[float, float]:
        """The nodes beyond the first whose carriers keep rows of a stream, over all streams; and the rows kept."""
        assert self._running.loop is not None
        situation, nodes, rows = self._running.loop.situation, dict[str, set[str]](), 0.0
        present = {record.carrier for record in situation.fragments.values()}
        for carrier in (situation.state.carriers[name] for name in present):
            measured = situation.measures.carrier(carrier.id)
            if measured is not None and measured.state_rows:
                rows += measured.state_rows
                for stream in problem.streams:
                    if situation.catalog[stream.name].schema_class in carrier.template.family.classes:
                        nodes.setdefault(stream.name, set()).add(carrier.node)
        return float(sum(len(there) - 1 for there in nodes.values())), rows


def finish(running: Towpath, rows: Rows, queries: Mapping[str, str]) -> ApartOutcome:
    """Everything that came is processed, and all answers are compared."""
    admitted = sum(name in running.engine.controller.queries.running for name in queries)
    moves = len(running.engine.controller.state.moves)
    running.drain()
    wrong, results = [], 0
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, table in rows.everything().items():
            database.register(name, table)
        oracle = Oracle(running.job.catalog, lambda _: database)
        for name, text in queries.items():
            found = running.results(name)
            results += found.num_rows
            asked = [QueryVersion(text, running.engine.answers.validity(name))]
            if oracle.check(name, asked, found).difference is not None:
                wrong.append(name)
    assert running.loop is not None
    ways = {pair: s for pair in DISTANCES if (s := running.loop.topology.measured(*pair)) is not None}
    return ApartOutcome([], admitted, moves, tuple(wrong), len(queries), results, ways)


def followed(queries: Mapping[str, str]) -> list[str]:
    """Some of each pair of streams: names begin with the pairs in turn."""
    return list(queries)[: FOLLOWED * len(PAIRS)]
