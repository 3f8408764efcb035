from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.errors import StoreError
from towpath.results import ConsoleSink, MemorySink, ParquetSink, Part, SinkFeeder, SinkStep, compact

from .logs import Row, crash_at, part, values, write_batch


class Store:
    """A log, a sink and the position between them, with a new process for every feeding."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "results" / "carrier"
        self.state = folder / "sinks" / "q.json"
        self.out = folder / "out"
        self.parts: list[Part] = [part(self.root, 1)]

    def feed(self, crash: int | None = None) -> int:
        rows = 0
        with crash_at(crash):
            rows = SinkFeeder("q", ParquetSink(self.out), self.state).feed(self.parts)
        return rows

    def fill(self, numbers: range) -> None:
        for number in numbers:
            write_batch(self.root, number, [Row(1, number, number), Row(2, number, -number)])

    def fed(self) -> list[int]:
        return sorted(v for file in self.out.glob("part-*") for v in values(pq.read_table(file)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_what_is_new_is_fed_once(store: Store) -> None:
    store.fill(range(4))
    assert [store.feed(), store.feed()] == [4, 0]
    store.fill(range(4, 7))
    assert [store.feed(), store.feed()] == [3, 0]
    assert store.fed() == list(range(7))
    assert len(list(store.out.iterdir())) == 2


def test_nothing_new_writes_nothing(store: Store) -> None:
    assert store.feed() == 0
    write_batch(store.root, 0, [Row(2, 0, 0)])
    assert store.feed() == 0
    assert not store.out.exists() and not store.state.exists()


@pytest.mark.parametrize("step", range(12))
def test_a_crash_at_any_step_neither_loses_nor_repeats(store: Store, step: int) -> None:
    """More comes in and is compacted between the crash and the next start, so the next step would be another one."""
    store.fill(range(3))
    store.feed()
    store.fill(range(3, 6))
    store.feed(crash=step)
    finished = {file: file.stat().st_ino for file in store.out.glob("part-*")}
    store.fill(range(6, 9))
    compact(store.root, min_batches=1)
    store.feed()
    assert store.fed() == list(range(9))
    assert finished == {file: file.stat().st_ino for file in finished}, "a finished file was written again"
    assert not list(store.out.glob(".tmp-*"))


@pytest.mark.parametrize("step", range(12))
def test_a_fence_that_is_set_after_a_crash_takes_nothing_out_of_a_step(store: Store, step: int) -> None:
    """Of a step that was begun rows may have been given, so it is done with all of them whatever has to wait now."""
    store.fill(range(3))
    store.feed(crash=step)
    store.parts = [part(store.root, 1, pending_fence_us=0)]
    store.feed()
    store.parts = [part(store.root, 1)]
    store.feed()
    assert store.fed() == [0, 1, 2]


def test_the_crash_test_reaches_the_end(store: Store) -> None:
    store.fill(range(3))
    assert store.feed(crash=11) == 3


def test_two_queries_may_share_a_folder(store: Store) -> None:
    store.fill(range(3))
    store.feed()
    SinkFeeder("twin", ParquetSink(store.out), store.state.with_name("twin.json")).feed(store.parts)
    assert store.fed() == [0, 0, 1, 1, 2, 2]


def test_a_store_begun_anew_does_not_mistake_old_files_for_its_own(store: Store) -> None:
    store.fill(range(3))
    store.feed()
    shutil.rmtree(store.root)
    store.state.unlink()
    write_batch(store.root, 2, [Row(1, 0, 42)])
    store.feed()
    assert store.fed() == [0, 1, 2, 42]


def test_a_store_can_be_moved(store: Store, tmp_path: Path) -> None:
    store.fill(range(3))
    store.feed()
    shutil.move(tmp_path / "store", tmp_path / "moved")
    moved = Store(tmp_path / "moved")
    moved.fill(range(3, 5))
    assert moved.feed() == 2
    assert moved.fed() == list(range(5))


def test_a_fragment_that_moves_is_fed_from_both_places(store: Store) -> None:
    other = store.root.with_name("other")
    store.fill(range(5))
    store.parts = [part(store.root, 1, until_us=3)]
    store.feed()
    write_batch(other, 0, [Row(7, n, n) for n in range(5)])
    store.parts.append(part(other, 7, from_us=None, until_us=None))
    store.feed()
    assert store.fed() == [0, 0, 1, 1, 2, 2, 3, 4]


def test_the_position_shows_what_retention_has_to_keep(store: Store) -> None:
    store.fill(range(3))
    feeder = SinkFeeder("q", MemorySink(), None)
    assert feeder.position.needed_from(store.root, store.parts) == 0
    feeder.feed(store.parts)
    assert feeder.position.needed_from(store.root, store.parts) == 3


def test_a_damaged_state_is_refused(store: Store) -> None:
    store.state.parent.mkdir(parents=True)
    for damage in ("", "{", "[]", json.dumps({"id": "x", "position": 1, "steps": 0, "begun": None})):
        store.state.write_text(damage, encoding="utf-8")
        with pytest.raises(StoreError, match=r"q\.json: expected the position(.|\n)*delete it"):
            store.feed()


def test_memory(store: Store) -> None:
    store.fill(range(3))
    sink = MemorySink()
    assert sink.table().equals(pa.table({}))
    feeder = SinkFeeder("q", sink, None)
    feeder.feed(store.parts)
    store.fill(range(3, 5))
    feeder.feed(store.parts)
    assert values(sink.table()) == list(range(5))


def test_console(store: Store) -> None:
    store.fill(range(2))
    stream = io.StringIO()
    SinkFeeder("q", ConsoleSink(stream), store.state).feed(store.parts)
    assert stream.getvalue().split() == ["v", "0", "1"]


class FailingSink(MemorySink):
    def write(self, table: pa.Table, step: SinkStep) -> None:
        if not self.tables:
            self.tables.append(table.slice(0, 0))
            raise OSError("disk full")
        super().write(table, step)


def test_a_sink_that_failed_gets_the_step_again(store: Store) -> None:
    store.fill(range(3))
    sink = FailingSink()
    feeder = SinkFeeder("q", sink, None)
    with pytest.raises(OSError, match="disk full"):
        feeder.feed(store.parts)
    assert feeder.feed(store.parts) == 3
    assert values(sink.table()) == [0, 1, 2]
