"""The law of a feed: whatever arrives when, slices hold every row exactly once, aligned, and the same when repeated."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.errors import StreamError
from towpath.streams import feed as feeds
from towpath.streams.feed import Feed, FeedPosition
from towpath.streams.portions import MOST_ROWS
from towpath.streams.rejected import rejected

SECOND = 1_000_000
DELAY = 5
SCHEMA = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
STREAMS = ("a", "b", "c")

Rows = Counter[tuple[str, int, int]]  # stream, k, event time in seconds


@dataclass
class Bench:
    """Folders in which files appear, and a feed over them."""

    root: Path
    names: tuple[str, ...] = STREAMS
    idle_after_ms: int = 0
    most_rows: int = MOST_ROWS
    more: list[dict[str, Any]] = field(default_factory=list)
    written: Rows = field(default_factory=Counter)
    files: int = 0

    def __post_init__(self) -> None:
        for name in self.names:
            (self.root / name).mkdir()

    def feed(self) -> Feed:
        streams = [
            {
                "name": name,
                "source": {"type": "files", "path": str(self.root / name), "format": "parquet"},
                "idle_after_ms": self.idle_after_ms,
            }
            for name in self.names
        ]
        spec = {
            "time": "at",
            "schema": SCHEMA.serialize().to_pybytes().hex(),
            "anchor_us": 0,
            "index": str(self.root / "store" / "files"),
            "drain": str(self.root / "drain"),
            "most_rows": self.most_rows,
            "rejected": str(self.root / "rejected"),
            "streams": [*streams, *self.more],
        }
        return Feed(json.loads(json.dumps(spec)))

    def write(self, stream: str, *seconds: int) -> Path:
        ks = [sum(self.written.values()) + n for n in range(len(seconds))]
        table = pa.table([ks, [s * SECOND for s in seconds]], names=["k", "at"]).cast(SCHEMA)
        path = self.root / stream / f"{self.files:06}.parquet"
        pq.write_table(table, path)
        self.files += 1
        self.written.update((stream, k, s) for k, s in zip(ks, seconds, strict=True))
        return path

    def drain(self, at_us: int = 0, *, close: bool = True) -> None:
        (self.root / "drain").write_text(json.dumps({"at_us": at_us, "close": close}))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def rows(feed: Feed, start: FeedPosition, end: FeedPosition) -> Rows:
    found: Rows = Counter()
    for batch in feed.read(feed.slices(start, end)):
        times = batch.column("at").cast(pa.int64()).to_pylist()
        found.update(
            (stream, k, t // SECOND)
            for stream, k, t in zip(
                batch.column("_stream").to_pylist(), batch.column("k").to_pylist(), times, strict=True
            )
        )
    return found


def frontier(bench: Bench) -> int | None:
    """The event time that every stream has reached."""
    newest = [max((t for s, _, t in bench.written if s == name), default=None) for name in bench.names]
    return None if None in newest else min(t for t in newest if t is not None)


# --- the law ---------------------------------------------------------------------------------------------------------

# A step is a file of some stream (jumps from its newest row, never later than the delay), or None: the feed advances.
STEP = st.one_of(
    st.none(), st.tuples(st.sampled_from(STREAMS), st.lists(st.integers(-DELAY, 12), min_size=0, max_size=4))
)


@given(
    st.lists(STEP, max_size=25),
    st.lists(st.booleans(), min_size=25, max_size=25),
    st.sampled_from((1, 3, 10, MOST_ROWS)),
)
@settings(max_examples=80, deadline=None)
def test_slices_hold_every_row_once_aligned_and_again_the_same(
    steps: list[tuple[str, list[int]] | None], reopened: list[bool], most_rows: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), most_rows=most_rows)
        feed, position, seen = bench.feed(), FeedPosition(), Counter[tuple[str, int, int]]()
        history: list[tuple[FeedPosition, FeedPosition, Rows]] = []
        for step, reopen in zip(steps, reopened, strict=False):
            if step is not None:
                _write(bench, *step)
                continue
            feed = bench.feed() if reopen else feed
            end = feed.advance(position)
            new = rows(feed, position, end)
            _check_aligned(bench, new, seen)
            history.append((position, end, new))
            seen += new
            position = FeedPosition.from_json(json.loads(json.dumps(end.to_json())))
        bench.drain()
        while (end := feed.advance(position)) != position:
            seen += rows(feed, position, end)
            position = end
        assert seen == bench.written
        for start, stop, expected in history:
            assert rows(bench.feed(), start, stop) == expected


def _write(bench: Bench, stream: str, jumps: list[int]) -> None:
    newest = max((t for s, _, t in bench.written if s == stream), default=100)
    times = []
    for jump in jumps:
        times.append(newest + jump)
        newest = max(newest, times[-1])
    bench.write(stream, *times)


def _check_aligned(bench: Bench, new: Rows, before: Rows) -> None:
    limit = frontier(bench)
    released = max((t for _, _, t in before), default=None)
    for _, _, t in new:
        assert limit is not None and t <= limit
        assert released is None or t >= released - DELAY


# --- cases -----------------------------------------------------------------------------------------------------------


def test_a_stream_without_rows_holds_the_others_back(bench: Bench) -> None:
    bench.write("a", 10)
    bench.write("b", 10)
    feed = bench.feed()
    assert rows(feed, FeedPosition(), feed.advance(FeedPosition())) == Counter()
    bench.write("c", 7)
    end = feed.advance(FeedPosition())
    assert rows(feed, FeedPosition(), end) == Counter({("c", 2, 7): 1})


def test_a_backlog_comes_in_portions_by_event_time(bench: Bench) -> None:
    bench.most_rows = 40
    for begin in range(0, 300, 100):
        for name in STREAMS[::-1]:
            bench.write(name, *range(begin, begin + 100))
    feed, position, portions = bench.feed(), FeedPosition(), []
    while (end := feed.advance(position)) != position:
        portions.append(rows(feed, position, end))
        position = end
    assert sum(portions, Counter()) == bench.written
    assert max(portion.total() for portion in portions) <= 40 + 2 * len(STREAMS), "an estimate, and here a good one"
    newest = [max(t for _, _, t in portion) for portion in portions if portion]
    assert all(
        min(t for _, _, t in portion) > before for before, portion in zip(newest, portions[1:], strict=False) if portion
    )


def test_a_late_file_is_not_withheld(bench: Bench) -> None:
    for name in STREAMS:
        bench.write(name, 20)
    feed = bench.feed()
    first = feed.advance(FeedPosition())
    bench.write("a", 3)
    assert rows(feed, first, feed.advance(first)) == Counter({("a", 3, 3): 1})


@pytest.mark.parametrize(("newest", "late"), [(20, 3), (0, -5)])
def test_a_late_file_does_not_take_its_stream_back(bench: Bench, newest: int, late: int) -> None:
    for name in STREAMS:
        bench.write(name, newest)
    bench.write("a", late)
    feed = bench.feed()
    assert rows(feed, FeedPosition(), feed.advance(FeedPosition())) == bench.written


def test_a_silent_stream_holds_nobody_back_any_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(feeds.time, "monotonic", lambda: now)
    bench = Bench(tmp_path, idle_after_ms=10_000)
    feed = bench.feed()
    bench.write("a", 50)
    bench.write("b", 40)
    assert not rows(feed, FeedPosition(), feed.advance(FeedPosition()))
    now += 9
    bench.write("a", 60)
    feed.advance(FeedPosition())
    now += 2  # c has been silent for 11 s, b for 11 s, a for 2 s
    end = feed.advance(FeedPosition())
    assert rows(feed, FeedPosition(), end) == bench.written
    now += 20  # all are
    assert feed.advance(end) == end


def test_silence_counts_from_when_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(feeds.time, "monotonic", lambda: now)
    bench = Bench(tmp_path, ("a", "b"), idle_after_ms=10_000)
    feed = bench.feed()
    bench.write("a", 50)
    bench.write("b", 50)
    first = feed.advance(FeedPosition())
    now += 1000  # both are silent, and nobody waits
    bench.write("a", 60)
    assert feed.advance(first).released_us == 50 * SECOND
    now += 9
    bench.write("b", 55)
    second = feed.advance(first)
    assert rows(feed, first, second) == Counter({("b", 3, 55): 1}), "in order, and not too late"
    now += 9
    assert feed.advance(second).released_us == 55 * SECOND
    now += 2
    assert feed.advance(second).released_us == 60 * SECOND


def test_catching_up_waits_for_all_whatever_their_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(feeds.time, "monotonic", lambda: now)
    bench = Bench(tmp_path, ("a", "b"), idle_after_ms=10_000)
    feed = bench.feed()
    bench.write("a", 50)
    bench.write("b", 40)
    bench.drain(close=False)
    assert feed.advance(FeedPosition()).released_us == 40 * SECOND
    now += 1000
    assert feed.advance(FeedPosition()).released_us == 40 * SECOND


def test_draining_releases_what_is_there(bench: Bench) -> None:
    bench.write("a", 10, 50)
    feed = bench.feed()
    bench.drain()
    assert rows(feed, FeedPosition(), feed.advance(FeedPosition())) == bench.written


def test_a_line_that_a_crash_cut_short_is_written_again(bench: Bench) -> None:
    for name in STREAMS:
        bench.write(name, 10)
    end = bench.feed().advance(FeedPosition())
    index = bench.root / "store" / "files"
    whole = index.read_bytes()
    index.write_bytes(whole[:-7])
    again = bench.feed()
    assert again.advance(FeedPosition()) == end
    assert index.read_bytes() == whole
    assert rows(bench.feed(), FeedPosition(), end) == bench.written


def test_another_process_sees_what_was_found(bench: Bench) -> None:
    reader, planner = bench.feed(), bench.feed()
    for name in STREAMS:
        bench.write(name, 10)
    end = planner.advance(FeedPosition())
    assert rows(reader, FeedPosition(), end) == bench.written


def test_a_file_that_vanishes_stops_the_feed_and_is_named(bench: Bench) -> None:
    paths = [bench.write(name, 10) for name in STREAMS]
    feed = bench.feed()
    end = feed.advance(FeedPosition())
    paths[1].unlink()
    with pytest.raises(StreamError, match=f"{paths[1]}: .* put it back"):
        rows(feed, FeedPosition(), end)


def reported(bench: Bench) -> list[tuple[str, int | None, int]]:
    return [(Path(r.file).name, r.line, r.rows) for r in rejected(bench.root / "rejected")]


def test_a_damaged_file_stops_nobody_and_is_taken_in_when_it_is_repaired(bench: Bench) -> None:
    for name in STREAMS:
        bench.write(name, 10)
    bad = bench.root / "b" / "bad.parquet"
    bad.write_bytes(b"half of a file")
    feed = bench.feed()
    end = feed.advance(FeedPosition())
    assert rows(feed, FeedPosition(), end) == bench.written
    assert reported(bench) == [("bad.parquet", None, 0)]
    assert bench.feed().advance(end) == end
    bench.write("b", 10).replace(bad)
    again = bench.feed().advance(end)
    assert rows(bench.feed(), end, again) == Counter({("b", 3, 10): 1})
    assert reported(bench) == []
    assert rows(bench.feed(), FeedPosition(), end) + rows(bench.feed(), end, again) == bench.written


def test_a_file_that_changes_after_it_was_taken_in_is_reported(bench: Bench) -> None:
    first, *_ = [bench.write(name, 10) for name in STREAMS]
    feed = bench.feed()
    end = feed.advance(FeedPosition())
    bench.write("a", 10, 10).replace(first)
    assert feed.advance(end) == end
    assert bench.feed().advance(end) == end
    assert reported(bench) == [(first.name, None, 0)]


def test_old_files_are_read_whatever_came_before(bench: Bench) -> None:
    os.utime(bench.write("b", 5), (0, 0))
    feed = bench.feed()
    for name in STREAMS:
        bench.write(name, 10)
    end = feed.advance(FeedPosition())
    os.utime(bench.write("a", 10), (10, 10))
    again = feed.advance(end)
    assert rows(feed, FeedPosition(), end) + rows(feed, end, again) == bench.written


CELL = st.sampled_from(["1", "x", "", "7", "1.5", '"3"', "2,2"])
AT = st.sampled_from(["1970-01-01T00:00:05Z", "1970-01-01 00:00:07", "never", "", "1970-01-01 02:00:06+02:00"])
GOOD_K = {"1": 1, "": None, "7": 7, "1.5": 2, '"3"': 3}
GOOD_AT = {"1970-01-01T00:00:05Z": 5, "1970-01-01 00:00:07": 7, "1970-01-01 02:00:06+02:00": 6}


@given(st.lists(st.lists(st.tuples(CELL, AT), max_size=5), max_size=4), st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=40, deadline=None)
def test_a_row_is_either_read_once_or_refused_once(files: list[list[tuple[str, str]]], again: list[bool]) -> None:
    """Whoever looks at the files, and however often: carriers of several nodes, after a crash, in any order."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "s").mkdir()
        source = {"type": "files", "path": str(root / "s"), "format": "csv", "header": True}
        spec = {
            "time": "at",
            "schema": SCHEMA.serialize().to_pybytes().hex(),
            "anchor_us": 0,
            "drain": str(root / "drain"),
            "most_rows": MOST_ROWS,
            "rejected": str(root / "rejected"),
            "streams": [{"name": "s", "source": source, "part": None, "idle_after_ms": 0}],
        }
        positions = {name: FeedPosition() for name in ("one", "other")}
        seen: dict[str, Rows] = {name: Counter() for name in positions}
        good: Rows = Counter()
        bad = Counter[tuple[str, int]]()
        for number, file in enumerate(files):
            (root / "s" / f"{number}.csv").write_text("k,at\n" + "".join(f"{k},{at}\n" for k, at in file))
            for line, (k, at) in enumerate(file, start=2):
                if k in GOOD_K and at in GOOD_AT:
                    good["s", GOOD_K[k], GOOD_AT[at]] += 1
                else:
                    bad[f"{number}.csv", line] += 1
            for place, (name, position) in enumerate(positions.items()):
                if again[number * 2 + place] or number == len(files) - 1:
                    feed = Feed(spec | {"index": str(root / name)})
                    end = feed.advance(position)
                    seen[name] += rows(feed, position, end)
                    assert rows(Feed(spec | {"index": str(root / name)}), position, end) == rows(feed, position, end)
                    positions[name] = end
        if files:
            assert seen == {"one": good, "other": good}
        listed = Counter((Path(r.file).name, r.line) for r in rejected(root / "rejected"))
        assert listed == bad


# --- generators ------------------------------------------------------------------------------------------------------

TRAFFIC = {"type": "traffic", "sensor": 1, "sensors": 1, "rate": 100, "seed": 3, "start_us": 0, "disorder_us": 0}


def generated(root: Path, rows: int | None, rate: int = 100) -> Bench:
    source = {**TRAFFIC, "rows": rows, "rate": rate}
    return Bench(root, (), more=[{"name": "g", "source": source, "idle_after_ms": 0}])


def count(feed: Feed, start: FeedPosition, end: FeedPosition) -> int:
    return sum(piece.rows for piece in feed.slices(start, end))


def test_a_generator_runs_with_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 3 * SECOND
    monkeypatch.setattr(feeds.time, "time_ns", lambda: now * 1000)
    feed = generated(tmp_path, None).feed()
    first = feed.advance(FeedPosition())
    assert count(feed, FeedPosition(), first) == 300
    now += SECOND
    assert count(feed, first, feed.advance(first)) == 100
    now -= 2 * SECOND  # a clock that is set back
    assert feed.advance(first) == first


def test_a_generator_catches_up_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds.time, "time_ns", lambda: 60 * SECOND * 1000)
    bench = generated(tmp_path, None)
    bench.most_rows = 1000
    feed, position, portions = bench.feed(), FeedPosition(), []
    while (end := feed.advance(position)) != position:
        portions.append(count(feed, position, end))
        position = end
    assert portions == [2000, 2000, 2000]


@pytest.mark.parametrize(("rate", "rows", "expected"), [(100, None, 500), (100, 9000, 9000), (7, 10, 10)])
def test_draining_runs_a_generator_to_its_end_in_portions(
    tmp_path: Path, rate: int, rows: int | None, expected: int
) -> None:
    bench = generated(tmp_path, rows, rate)
    bench.most_rows = 1000
    bench.drain(at_us=5 * SECOND)
    feed, position, portions = bench.feed(), FeedPosition(), []
    while (end := feed.advance(position)) != position:
        portions.append(count(feed, position, end))
        position = end
    assert sum(portions) == expected
    assert max(portions) <= 100 * feeds.CATCH_UP_US // SECOND
