"""A join with a buffer of a given size, migrated between two nodes: by restart from its checkpoint, and by a fence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from towpath.api.running import Towpath, start
from towpath.control.state.fence import OPEN, UNDECIDED
from towpath.errors import RuntimeFailure
from towpath.job import QueryDef
from towpath.lab.reproduce.live.buffer_source import EVENT_BYTES, MOVED, RESIDENT, BufferSource, job, sql
from towpath.lab.reproduce.live.nodes import Machines
from towpath.runtime.carriers import BatchDone, CarrierEvent

TRIGGER_MS = 500
LOOK_S = 0.05
TRICKLE_S = 0.5
APART_S = 1.5  # between two moves of one buffer
PATIENCE_S = 120.0
FORGOTTEN_S = 3600  # of event time; joins keep tuples longer than a window, since others of their kind may need them
BEGIN_US = 1_700_000_000_000_000
MEGABYTE = 1e6


@dataclass(frozen=True)
class MigratingSeen:
    """One migration. Seconds begin when it is asked for."""

    megabytes: float
    answers_s: float  # until the other node answers
    free_s: float  # until nothing is left on the node before


class Stage:
    """A job, the streams that it reads, and what its carriers hold."""

    def __init__(self, running: Towpath, source: BufferSource, clock: Callable[[], int]) -> None:
        self.running = running
        self._source = source
        self._clock = clock
        self._trickled_at = 0.0
        self._state: dict[str, int] = {}  # rows, by carrier

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Lets time pass, and a few pairs with it."""
        end = time.monotonic() + PATIENCE_S
        while not done():
            if time.monotonic() > end:
                raise RuntimeFailure(f"{what} took longer than {PATIENCE_S:.0f} s; the nodes are overloaded")
            if time.monotonic() > self._trickled_at + TRICKLE_S:
                self._source.trickle(self._clock())
                self._trickled_at = time.monotonic()
            self.running.poll(self._hear)
            time.sleep(LOOK_S)

    def let_pass(self, seconds: float, watch: Callable[[], object]) -> None:
        end = time.monotonic() + seconds

        def over() -> bool:
            watch()
            return time.monotonic() > end

        self.wait(over, "a pause")

    def _hear(self, events: list[CarrierEvent]) -> None:
        self._state |= {event.carrier: event.state_rows for event in events if isinstance(event, BatchDone)}

    def fill(self, rows: int, query: str) -> None:
        self._source.fill(rows, self._clock())
        self.wait(lambda: self.buffered(query) >= rows, f"reading {rows:,} rows")

    def wait_until_empty(self, query: str, few: int) -> None:
        """Until what was in the buffer before is gone, but for fewer rows than these."""
        self.wait(lambda: self.buffered(query) < few, "emptying the buffer")

    def buffered(self, query: str) -> int:
        """Rows in the state of the carrier that runs a query now, both sides of its join together."""
        return self._state.get(self._carrier(query), 0)

    def wait_for(self, query: str, what: str) -> None:
        """Until the carrier of a query has finished a micro-batch."""
        self.wait(lambda: self._carrier(query) in self._state, what)

    def _carrier(self, query: str) -> str:
        state = self.running.engine.controller.state
        record = self.running.engine.controller.queries.running.get(query)
        assert record is not None, "it is in the job"
        return state.fragments[state.parts_of(record.id)[0].fragment].carrier


def restarts(
    place: Machines, sizes: Sequence[int], repetitions: int, window_s: int, step_done: Callable[[], None]
) -> list[MigratingSeen]:
    """Stops the job on one node and goes on from its checkpoint on another."""
    folder = place.folder / "restarts"
    source, clock = BufferSource(_made(folder)), _Still()
    query = {"q0": QueryDef.model_validate({"sql": sql(MOVED, 0, window_s)})}
    at = 0

    def begin() -> Stage:
        node = place.names[at % len(place.names)]
        running = start(job(folder, place.definitions([node]), query, TRIGGER_MS))
        return Stage(running, source, clock)

    found: list[MigratingSeen] = []
    stage = begin()
    try:
        for rows in sizes:
            clock.skip(FORGOTTEN_S)
            stage.wait_until_empty("q0", sizes[0])
            stage.fill(rows, "q0")
            for _ in range(repetitions):
                megabytes = _megabytes(stage.buffered("q0"))
                begun = time.monotonic()
                stage.running.stop()
                at += 1
                stage = begin()
                stage.wait_for("q0", "starting from a checkpoint")
                seconds = time.monotonic() - begun
                found.append(MigratingSeen(megabytes, seconds, seconds))
                step_done()
    finally:
        stage.running.stop()
    return found


def fences(
    place: Machines, sizes: Sequence[int], repetitions: int, window_s: int, step_done: Callable[[], None]
) -> list[MigratingSeen]:
    """Moves queries by fences while the job goes on. Event time is real time: windows close when they do for users."""
    folder = _made(place.folder / "fences")
    names = place.names
    texts = {f"q{n}": (sql(MOVED, n, window_s), names[0]) for n in range(repetitions)}
    # A node of a job with many queries runs a carrier of the same template already.
    texts |= {f"resident{n}": (sql(RESIDENT, n, window_s), name) for n, name in enumerate(names)}
    queries = {name: QueryDef.model_validate({"sql": text, "node": node}) for name, (text, node) in texts.items()}
    with start(job(folder, place.definitions(names), queries, TRIGGER_MS)) as running:
        stage = Stage(running, BufferSource(folder), lambda: time.time_ns() // 1000)
        for query in queries:
            stage.wait_for(query, "starting")
        moved = [f"q{n}" for n in range(repetitions)]
        found: list[MigratingSeen] = []
        for n, rows in enumerate((sizes[0], *sizes), start=1):
            stage.fill(rows, moved[0])
            seen = _move(stage, moved, names[n % len(names)])
            if n > 1:  # at first the code that Spark generates is being compiled
                found += seen
            step_done()
        return found


def _move(stage: Stage, queries: Sequence[str], target: str) -> list[MigratingSeen]:
    """One after the other sets out; the buffer is still full when the last one does."""
    running = stage.running
    begun: dict[int, tuple[float, float]] = {}  # by move: when, and how much there was
    answers: dict[int, float] = {}
    free: dict[int, float] = {}

    def look() -> bool:
        moves = running.engine.controller.state.moves
        for number, (at, _) in begun.items():
            if moves[number].step not in UNDECIDED:
                answers.setdefault(number, time.monotonic() - at)
            if moves[number].step not in OPEN:
                free.setdefault(number, time.monotonic() - at)
        return len(free) == len(begun)

    for query in queries:
        megabytes = _megabytes(stage.buffered(query))
        (number,) = running.move(query, target)
        begun[number] = time.monotonic(), megabytes
        stage.let_pass(APART_S, look)
    stage.wait(look, "a move")
    return [MigratingSeen(megabytes, answers[number], free[number]) for number, (_, megabytes) in begun.items()]


class _Still:
    """Event time that stands still: a buffer keeps what it has, however long a restart takes."""

    def __init__(self) -> None:
        self._now_us = BEGIN_US

    def __call__(self) -> int:
        self._now_us += 1000  # a little, or nothing would be newer than what was read
        return self._now_us

    def skip(self, seconds: int) -> None:
        self._now_us += seconds * 1_000_000


def _megabytes(rows: int) -> float:
    return rows * EVENT_BYTES / MEGABYTE


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
