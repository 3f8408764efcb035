"""Random histories of a log against a list: whatever happens in whatever order, nothing is lost or doubled."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from towpath.results import ParquetSink, Part, Position, SinkFeeder, batches, compact, read, retain

from .logs import Row, crash_at, part, values, write_batch

FRAGMENTS = (1, 2, 3)
BATCH = st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.integers(0, 9)), max_size=5)
STEP = st.none() | st.integers(0, 40)


class LogMachine(RuleBasedStateMachine):
    """A batch's number is also the wall-clock time it was written at. Every value occurs once and so names its row."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.root = self.folder / "log"
        self.next_batch = 0
        self.next_value = 0
        self.written: dict[int, list[Row]] = {}  # by batch; what retention removed is taken out
        self.ever: list[Row] = []
        self.position = Position()
        self.followed: list[int] = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(contents=st.lists(BATCH, min_size=1, max_size=4))
    def write_several(self, contents: list[list[tuple[int, int]]]) -> None:
        for content in contents:
            self.write(content, gap=0, committed=True)

    @rule(content=BATCH, gap=st.integers(0, 2), committed=st.booleans())
    def write(self, content: list[tuple[int, int]], gap: int, committed: bool) -> None:
        number = self.next_batch + gap
        self.next_batch = number + 1
        rows = [Row(fragment, time, self.next_value + n) for n, (fragment, time) in enumerate(content)]
        self.next_value += len(rows)
        folder = write_batch(self.root, number, rows, committed=committed)
        for file in folder.glob("part-*"):
            os.utime(file, ns=(number * 1000, number * 1000))
        if committed:
            self.written[number] = rows
            self.ever += rows

    @rule(step=STEP, min_batches=st.integers(1, 4), target_rows=st.sampled_from([3, 10, 1000]))
    def compact(self, step: int | None, min_batches: int, target_rows: int) -> None:
        with crash_at(step):
            compact(self.root, min_batches=min_batches, target_rows=target_rows)

    @rule(step=STEP, age=st.integers(0, 6))
    def retain(self, step: int | None, age: int) -> None:
        """Only batches that are old, and that follower and sink have seen, may go; and each of them as a whole."""
        older_than = self.next_batch - age
        needed = min(self.position.needed_from(self.root, self.parts()), self.sink_needs())
        with crash_at(step):
            retain(self.root, older_than, keep_from_batch=needed)
        left = set(values(read(self.parts())))
        for number, rows in list(self.written.items()):
            gone = {row.v for row in rows} - left
            assert not gone or (number < min(older_than, needed) and len(gone) == len(rows))
            if gone:
                del self.written[number]

    @rule()
    def follow(self) -> None:
        for chunk in batches(self.parts(), self.position):
            self.followed += values(chunk.table)
            self.position = chunk.position
        assert sorted(self.followed) == [row.v for row in self.ever]

    @rule(step=STEP)
    def feed(self, step: int | None) -> None:
        with crash_at(step):
            self.feeder().feed(self.parts())

    @rule()
    def feed_to_the_end(self) -> None:
        self.feeder().feed(self.parts())
        fed = [v for file in (self.folder / "out").glob("part-*") for v in values(pq.read_table(file))]
        assert sorted(fed) == [row.v for row in self.ever]

    @invariant()
    def reads_what_was_written(self) -> None:
        for p in self.parts():
            expected = {r.v: r.time for rows in self.written.values() for r in rows if r.fragment == p.fragment}
            table = read([p], with_time=True)
            times = table["_time"].cast("int64").to_pylist()
            assert times == sorted(times)
            assert sorted(zip(values(table), times, strict=True)) == sorted(expected.items())

    def parts(self) -> list[Part]:
        return [part(self.root, fragment) for fragment in FRAGMENTS]

    def feeder(self) -> SinkFeeder:
        return SinkFeeder("q", ParquetSink(self.folder / "out"), self.folder / "sinks" / "q.json")

    def sink_needs(self) -> int:
        return self.feeder().position.needed_from(self.root, self.parts()) or 0


LogMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestLog = LogMachine.TestCase
