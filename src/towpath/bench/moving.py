"""Moves under load: fragments change nodes while 5,000 rows a second flow, and somebody follows their results.

Beside it, in the same run, what one would do without towpath: stop a streaming query on one endpoint and start it from
its checkpoint on another.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median

import duckdb

from towpath.api import Towpath, start
from towpath.bench import KIND_NAMES, plain
from towpath.bench.feeder import Feeder
from towpath.bench.following import Follower
from towpath.bench.shared import Requests, job
from towpath.bench.steps import Say
from towpath.bench.workloads import KINDS, streams
from towpath.control.engine import Request
from towpath.control.fence import UNDECIDED
from towpath.errors import MoveRefused, RuntimeFailure
from towpath.job import Job
from towpath.lang import parse
from towpath.nodes import ConnectNode
from towpath.spark import server
from towpath.spark.connect import connect, functions_of
from towpath.spark.server import Server
from towpath.verify import answer, differences

LOOK_S = 0.1
AFTERWARDS_S = 3.0  # for so long after its fence a moved query is still followed
PATIENCE_S = 180.0
SEED = 1


@dataclass(frozen=True)
class Plan:
    moves: int = 100
    queries: int = 300
    nodes: int = 3
    rate: int = 5000
    trigger_ms: int = 2000
    cores: int = 2
    memory: str = "1500m"
    together: int = 5  # moves under way at the same time
    restarts: int = 3  # of a query written by hand


QUICK = Plan(moves=3, queries=6, nodes=2, rate=500, restarts=1)


@dataclass(frozen=True)
class Move:
    """What those who followed a query saw while it moved. Delays are from a result's time to whoever follows it."""

    kind: str
    seconds: float  # from the request to the fence that was passed
    fences: int
    delay_s: float  # the longest
    at_rest_s: float  # the longest of queries of its kind that stayed, meanwhile

    @property
    def added_s(self) -> float:
        return max(0.0, self.delay_s - self.at_rest_s)


@dataclass(frozen=True)
class Report:
    plan: Plan
    moves: tuple[Move, ...]
    refused: int
    queries: int
    wrong: tuple[str, ...]  # queries whose results are not those of the batch
    restarts: tuple[float, ...]  # seconds without results when a query by hand is stopped and started elsewhere

    def added(self, kind: str) -> list[float]:
        return [move.added_s for move in self.moves if move.kind == kind]

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            kind: {
                "moves": len(added),
                "added_delay_median_s": round(median(added), 2),
                "added_delay_worst_s": round(max(added), 2),
                "until_fence_median_s": round(median(m.seconds for m in self.moves if m.kind == kind), 2),
            }
            for kind in KIND_NAMES
            if (added := self.added(kind))
        }
        found["trigger_s"] = self.plan.trigger_ms / 1000
        found["queries_wrong"] = len(self.wrong)
        found["queries"] = self.queries
        found["refused"] = self.refused
        found["stop_and_restart_s"] = [round(s, 2) for s in self.restarts]
        return found


def run(plan: Plan, say: Say) -> Report:
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        data = folder / "data"
        data.mkdir()
        with (
            _servers(plan, say) as servers,
            Feeder(data, plan.rate, plan.cores) as feeder,
            start(_job(folder, data, servers, plan)) as running,
        ):
            requests = _requests(plan, list(servers), say)
            say(f"starting {len(requests)} queries on {plan.nodes} nodes")
            running.engine.submit(requests)
            feeder.start()
            _keep_up(running, say)
            moves, refused = _move(running, requests, plan, say)
            say("a query by hand is stopped and started elsewhere")
            restarts = _restarts(folder, data, servers, plan, running)
            feeder.stop()
            say("comparing every query with DuckDB")
            running.drain()
            wrong = _wrong(running, requests, data)
        return Report(plan, tuple(moves), refused, len(requests), tuple(wrong), tuple(restarts))


@contextmanager
def _servers(plan: Plan, say: Say) -> Iterator[dict[str, Server]]:
    found: dict[str, Server] = {}
    try:
        for n in range(plan.nodes):
            name = f"bench-{os.getpid()}-{n + 1}"
            say(f"starting endpoint {n + 1} of {plan.nodes}")
            found[name] = server.start(name, plan.cores, plan.memory, None, {}, lambda: None)
        yield found
    finally:
        for name in found:
            server.stop(name)


def _job(folder: Path, data: Path, servers: dict[str, Server], plan: Plan) -> Job:
    return replace(
        job(folder, data, plan.cores, plan.trigger_ms),
        nodes={name: _node(found, plan) for name, found in servers.items()},
    )


def _node(found: Server, plan: Plan) -> ConnectNode:
    return ConnectNode.model_validate({"type": "connect", "address": found.address, "cores": plan.cores})


def _requests(plan: Plan, nodes: Sequence[str], say: Say) -> list[Request]:
    found = []
    for kind in KIND_NAMES:
        made = Requests(KINDS[kind], say).first(plan.queries // len(KIND_NAMES))
        for n, request in enumerate(made):
            name = f"{kind}-{n}"
            query = replace(request.query, name=name)
            found.append(replace(request, query=query, node=nodes[n % len(nodes)]))
    return found


def _keep_up(running: Towpath, say: Say) -> None:
    """Until every carrier has read what came while they were started."""
    end = time.monotonic() + PATIENCE_S
    behind = PATIENCE_S
    while behind > 3 * running.job.trigger_ms / 1000:
        if time.monotonic() > end:
            raise RuntimeFailure(f"the nodes are {behind:.0f} s behind after {PATIENCE_S:.0f} s; they are overloaded")
        running.poll()
        times = [carrier.newest_us for carrier in running.engine.carriers]
        behind = time.time() - min(t or 0 for t in times) / 1e6
        say(f"reading what came meanwhile, {min(behind, PATIENCE_S):.0f} s behind")
        time.sleep(0.5)


def _move(running: Towpath, requests: Sequence[Request], plan: Plan, say: Say) -> tuple[list[Move], int]:
    rng = Random(SEED)
    waiting = rng.sample(list(requests), len(requests))
    nodes = list(running.job.nodes)
    found: list[Move] = []
    refused = 0
    while len(found) < plan.moves and waiting:
        say(f"{len(found)} of {plan.moves} moves")
        some = [waiting.pop() for _ in range(min(plan.together, len(waiting), plan.moves - len(found)))]
        still = [r for r in requests if r not in some][: 3 * plan.together]
        made, gone = _move_together(running, some, still, nodes, rng)
        found += made
        refused += gone
    return found, refused


def _move_together(
    running: Towpath, some: Sequence[Request], still: Sequence[Request], nodes: Sequence[str], rng: Random
) -> tuple[list[Move], int]:
    followed = {r.query.name: Follower(running.engine.parts, r.query.name) for r in (*some, *still)}
    numbers: dict[str, int] = {}
    begun = time.monotonic()
    for request in some:
        fragment = running.engine.controller.state.parts_of(_id(running, request.query.name))[0].fragment
        here = running.engine.controller.node_of(fragment)
        try:
            target = rng.choice([name for name in nodes if name != here])
            numbers[request.query.name] = running.engine.move_fragment(fragment, target)
        except MoveRefused:  # it shares its fragment with one that moves
            continue
    passed = _watch(running, numbers, followed, begun)
    at_rest = {kind: _longest(followed, [r for r in still if _kind(r) == kind]) for kind in KIND_NAMES}
    moves = running.engine.controller.state.moves
    found = [
        Move(_kind(r), passed[name], moves[numbers[name]].fences, followed[name].longest_s, at_rest[_kind(r)])
        for r in some
        if (name := r.query.name) in numbers
    ]
    return found, len(some) - len(numbers)


def _watch(running: Towpath, numbers: dict[str, int], followed: dict[str, Follower], begun: float) -> dict[str, float]:
    """Follows until all moves have passed their fences, and a little longer. Returns how long each took until then."""
    passed: dict[str, float] = {}
    end = begun + PATIENCE_S
    while len(passed) < len(numbers) or time.monotonic() < begun + max(passed.values(), default=0) + AFTERWARDS_S:
        if time.monotonic() > end:
            raise RuntimeFailure(f"moves did not pass their fences within {PATIENCE_S:.0f} s; the nodes are overloaded")
        running.poll()
        state = running.engine.controller.state
        for name, number in numbers.items():
            if state.moves[number].step not in UNDECIDED:
                passed.setdefault(name, time.monotonic() - begun)
        for follower in followed.values():
            follower.look()
        time.sleep(LOOK_S)
    return passed


def _longest(followed: dict[str, Follower], requests: Sequence[Request]) -> float:
    return max((followed[r.query.name].longest_s for r in requests), default=0.0)


def _kind(request: Request) -> str:
    return request.query.name.partition("-")[0]


def _id(running: Towpath, name: str) -> int:
    query = running.engine.controller.running(name)
    assert query is not None, "it was submitted"
    return query.id


def _restarts(folder: Path, data: Path, servers: dict[str, Server], plan: Plan, running: Towpath) -> list[float]:
    """Seconds from the stop on one endpoint to the first results from the next one."""
    names = [list(servers)[n % len(servers)] for n in range(plan.restarts + 1)]
    work = folder / "by-hand"
    found: list[float] = []
    stopped: float | None = None
    for name in names:
        session = connect(name, _node(servers[name], plan), work)
        with functions_of(session):
            rows = KINDS["windows"].by_hand(plain.read(session, data, plain.SETTINGS[0]), 0)
        before = _outputs(work)
        query = plain.run(rows, work, "q", plan.trigger_ms)
        end = time.monotonic() + PATIENCE_S
        while _outputs(work) == before and time.monotonic() < end:
            running.poll()
            time.sleep(LOOK_S)
        if stopped is not None:
            found.append(time.monotonic() - stopped)
        stopped = time.monotonic()
        query.stop()
    return found


def _outputs(work: Path) -> int:
    """Commits of the Parquet sink that has written a file."""
    return len(list((work / "out" / "q").glob("*.parquet")))


def _wrong(running: Towpath, requests: Sequence[Request], data: Path) -> list[str]:
    catalog = running.job.catalog
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        pattern = str(data / "*.parquet")
        for name, definition in streams(data).items():
            columns = ", ".join(c.name for c in definition.stream.columns)
            where = f"WHERE stream = {name[1:]}" if name.startswith("s") else ""
            table = "trades" if name == "trades" else name
            database.execute(f"CREATE VIEW {table} AS SELECT {columns} FROM read_parquet('{pattern}') {where}")
        found = []
        for request in requests:
            name = request.query.name
            query = parse(request.query.sql, catalog, name)
            expected = answer(database, query, catalog, running.engine.validity(name))
            if differences(expected, running.results(name)) is not None:
                found.append(name)
        return found
