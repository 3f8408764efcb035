"""Moves under load: fragments change nodes while 5,000 rows a second flow, and somebody follows their results.

Beside it, in the same run, what one would do without towpath: stop a streaming query on one endpoint and start it from
its checkpoint on another.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import median

import pyarrow.compute as pc

from towpath.api.running import Towpath, start
from towpath.config.settings import NOW
from towpath.control.decide.requests import Request
from towpath.control.state.fence import UNDECIDED
from towpath.errors import MoveRefused, RuntimeFailure
from towpath.lab.bench import KIND_NAMES
from towpath.lab.bench.endpoints import EndpointSize, Faults, compare, endpoints, job_on
from towpath.lab.bench.feeder import Feeder
from towpath.lab.bench.following import Follower
from towpath.lab.bench.restarting import restarts
from towpath.lab.bench.shared import SharedRequests
from towpath.lab.bench.steps import Say
from towpath.lab.bench.workloads import KINDS, streams
from towpath.lang import parse
from towpath.results import read
from towpath.runtime.carriers import BatchDone, CarrierEvent

LOOK_S = 0.3
AFTERWARDS_S = 4.0  # for so long after its fence a moved query is still followed
PATIENCE_S = 180.0
BEHIND_TRIGGERS = 5  # so far behind may a carrier be that keeps up
SEED = 1
LARGE, LARGE_MOVED = "large", 2  # queries whose state differs in size, and how many of each size move; one stays


@dataclass(frozen=True)
class MovingPlan:
    moves: int = 100
    queries: int = 300
    nodes: int = 3
    rate: int = 5000
    trigger_ms: int = 5000
    size: EndpointSize = field(default_factory=EndpointSize)
    together: int = 20  # moves under way at the same time
    restarts: int = 3  # of a query written by hand
    large_s: tuple[int, ...] = (2, 8, 16)  # windows of the queries whose state differs in size


QUICK = MovingPlan(moves=3, queries=6, nodes=2, rate=500, together=3, restarts=1, large_s=(2,))


@dataclass(frozen=True)
class MeasuredMove:
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
class MovingReport:
    plan: MovingPlan
    moves: tuple[MeasuredMove, ...]
    refused: int
    queries: int
    faults: Faults
    restarts: tuple[float, ...]  # seconds without results when a query by hand is stopped and started elsewhere
    triggers_s: tuple[float, ...]  # how long the micro-batches took meanwhile
    state_rows: dict[str, int]  # the most that a query of a kind had, of those that differ in size

    def of(self, kind: str) -> list[MeasuredMove]:
        return [move for move in self.moves if move.kind == kind]

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(move.kind for move in self.moves))

    @property
    def micro_batch_s(self) -> float:
        return median(self.triggers_s)

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for kind in self.kinds:
            moves = self.of(kind)
            found[kind] = {
                "moves": len(moves),
                "added_delay_median_s": round(median(m.added_s for m in moves), 2),
                "added_delay_worst_s": round(max(m.added_s for m in moves), 2),
                "delay_at_rest_s": round(median(m.at_rest_s for m in moves), 2),
                "until_fence_median_s": round(median(m.seconds for m in moves), 2),
                "fences_missed": sum(m.fences - 1 for m in moves),
            } | ({"state_rows": self.state_rows[kind]} if kind in self.state_rows else {})
        return found | {
            "rows_per_s": self.plan.rate,
            "trigger_s": self.plan.trigger_ms / 1000,
            "micro_batch_median_s": round(self.micro_batch_s, 2),
            "queries": self.queries,
            "queries_wrong": len(self.faults.wrong),
            "rows_lost": self.faults.lost,
            "rows_doubled": self.faults.doubled,
            "refused": self.refused,
            "stop_and_restart_s": [round(s, 2) for s in self.restarts],
        }


def run(plan: MovingPlan, say: Say) -> MovingReport:
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        data = folder / "data"
        data.mkdir()
        with (
            endpoints(plan.nodes, plan.size, say) as servers,
            Feeder(data, plan.rate, files=2) as feeder,
            start(job_on(servers, folder, data, plan.trigger_ms)) as running,
        ):
            requests = _requests(plan, list(servers), say)
            say(f"starting {len(requests)} queries on {plan.nodes} nodes")
            running.engine.submit(requests)
            running.engine.finishing.settle()  # rows that come meanwhile would take the CPU that starting carriers need
            feeder.start()
            bench = _Bench(running, requests, plan, say)
            bench.keep_up()
            bench.move()
            say("a query by hand is stopped and started elsewhere")
            by_hand = restarts(folder / "by-hand", data, servers, plan.restarts, plan.trigger_ms, bench.poll)
            feeder.stop()
            say("processing what is left")
            running.drain()
            return bench.report(compare(running, requests, data, say), by_hand)


def _requests(plan: MovingPlan, nodes: Sequence[str], say: Say) -> list[Request]:
    found = []
    for kind in KIND_NAMES:
        for n, request in enumerate(SharedRequests(KINDS[kind], say).first(plan.queries // len(KIND_NAMES))):
            found.append(replace(request, query=replace(request.query, name=f"{kind}-{n}"), node=nodes[n % len(nodes)]))
    catalog = {name: definition.stream for name, definition in streams(Path.cwd()).items()}
    for seconds in plan.large_s:
        for n in range(LARGE_MOVED + 1):
            query = parse(_large(seconds, n), catalog, f"{LARGE}{seconds}-{n}")
            found.append(Request(query, NOW, node=nodes[0]))
    return found


def _large(seconds: int, n: int) -> str:
    """A tenth of all rows, nearly each in a group of its own."""
    source = f"trades [RANGE {seconds} SECONDS]"
    return (
        f"SELECT channel, floor(price * 100) AS p, count(*) AS n FROM {source} "
        f"WHERE channel >= {n} AND channel < {n + 10} GROUP BY channel, floor(price * 100)"
    )


class _Bench:
    """A job that runs, its queries, and what was seen of them."""

    def __init__(self, running: Towpath, requests: Sequence[Request], plan: MovingPlan, say: Say) -> None:
        self._running = running
        self._engine = running.engine
        self._requests = requests
        self._plan = plan
        self._say = say
        self._rng = Random(SEED)
        self._moves: list[MeasuredMove] = []
        self._refused = 0
        self._triggers_s: list[float] = []

    def report(self, faults: Faults, by_hand: Sequence[float]) -> MovingReport:
        large = {kind: self._state_rows(f"{kind}-0") for move in self._moves if (kind := move.kind).startswith(LARGE)}
        counted = (tuple(self._moves), self._refused, len(self._requests), faults, tuple(by_hand))
        return MovingReport(self._plan, *counted, tuple(self._triggers_s), large)

    def _state_rows(self, query: str) -> int:
        """Of one window: every group is a row of the state, and of the results."""
        windows = pc.value_counts(read(self._engine.answers.parts(query), with_time=True)["_time"])
        return max((window["counts"].as_py() for window in windows), default=0)

    def poll(self) -> None:
        self._running.poll(self._hear)

    def _hear(self, events: Sequence[CarrierEvent]) -> None:
        self._triggers_s += [event.seconds for event in events if isinstance(event, BatchDone)]

    def keep_up(self) -> None:
        """Until every carrier has read what came while they were started."""
        end = time.monotonic() + PATIENCE_S
        while (behind_s := self._behind_s()) is None or behind_s > BEHIND_TRIGGERS * self._plan.trigger_ms / 1000:
            state = "not every carrier has begun" if behind_s is None else f"{behind_s:.0f} s behind"
            if time.monotonic() > end:
                rate = f"{self._plan.rate:,} rows/s"
                raise RuntimeFailure(f"after {PATIENCE_S:.0f} s: {state}; try a lower --rate than {rate}")
            self._say(f"reading what came meanwhile: {state}")
            self.poll()
            time.sleep(1)
        self._triggers_s.clear()

    def _behind_s(self) -> float | None:
        """Of the slowest carrier; None while one has read nothing yet."""
        times = [carrier.newest_us for carrier in self._engine.carriers]
        return None if None in times else time.time() - min(t for t in times if t is not None) / 1e6

    def move(self) -> None:
        small = [r for r in self._requests if not r.query.name.startswith(LARGE)]
        waiting = self._rng.sample(small, len(small))
        while len(self._moves) < self._plan.moves and waiting:
            self._say(f"{len(self._moves)} of {self._plan.moves} moves")
            count = min(self._plan.together, len(waiting), self._plan.moves - len(self._moves))
            some = [waiting.pop() for _ in range(count)]
            self._move_together(some, self._one_of_each([r for r in small if r not in some]), AFTERWARDS_S)
        large = [r for r in self._requests if r not in small]
        still = self._one_of_each(large)
        self._say(f"moving {len(large) - len(still)} queries whose state differs in size")
        afterwards_s = AFTERWARDS_S + max(self._plan.large_s, default=0)
        self._move_together([r for r in large if r not in still], still, afterwards_s)

    def _move_together(self, some: Sequence[Request], still: Sequence[Request], afterwards_s: float) -> None:
        followed = {r.query.name: Follower(self._engine.answers.parts, r.query.name) for r in (*some, *still)}
        begun = time.monotonic()
        numbers = {r.query.name: n for r in some if (n := self._begin(r.query.name)) is not None}
        passed = self._watch(numbers, followed, begun, afterwards_s)
        moves = self._engine.controller.state.moves
        for name, number in numbers.items():
            rests = [followed[r.query.name].longest_s for r in still if _kind(r.query.name) == _kind(name)]
            seen = followed[name].longest_s, max(rests, default=0.0)
            self._moves.append(MeasuredMove(_kind(name), passed[name], moves[number].fences, *seen))

    def _one_of_each(self, requests: Sequence[Request]) -> list[Request]:
        """Of each kind on each node, so that a slow node counts for those that stay, too."""
        node_of = self._engine.controller.known.node_of
        return list({(_kind(r.query.name), node_of(self._fragment(r.query.name))): r for r in requests}.values())

    def _fragment(self, name: str) -> int:
        """Of a query that has been moved, the one that answers now."""
        query = self._engine.controller.queries.running.get(name)
        assert query is not None, "it was submitted"
        return self._engine.controller.state.parts_of(query.id)[-1].fragment

    def _begin(self, name: str) -> int | None:
        fragment = self._fragment(name)
        others = [n for n in self._running.job.nodes if n != self._engine.controller.known.node_of(fragment)]
        try:
            return self._engine.move_fragment(fragment, self._rng.choice(others))
        except MoveRefused:  # it shares its fragment with one that moves
            self._refused += 1
            return None

    def _watch(
        self, numbers: Mapping[str, int], followed: Mapping[str, Follower], begun: float, afterwards_s: float
    ) -> dict[str, float]:
        """Follows until all moves have passed their fences, and longer. Returns how long each took until then."""
        passed: dict[str, float] = {}
        while len(passed) < len(numbers) or time.monotonic() < begun + max(passed.values(), default=0.0) + afterwards_s:
            if time.monotonic() > begun + PATIENCE_S:
                raise RuntimeFailure(f"moves passed no fence within {PATIENCE_S:.0f} s; the nodes are overloaded")
            self.poll()
            moves = self._engine.controller.state.moves
            for name, number in numbers.items():
                if moves[number].step not in UNDECIDED:
                    passed.setdefault(name, time.monotonic() - begun)
            for follower in followed.values():
                follower.look()
            time.sleep(LOOK_S)
        return passed


def _kind(name: str) -> str:
    return name.partition("-")[0]
