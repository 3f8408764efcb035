from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from towpath.errors import StoreError
from towpath.results import committed, compact, log, read, retain

from .logs import SCHEMA, Row, crash_at, part, values, write_batch

EVERY_STEP = range(34)


def fill(root: Path, numbers: range, rows: int = 1) -> None:
    for number in numbers:
        folder = write_batch(root, number, [Row(1, number, number * rows + n) for n in range(rows)])
        for file in folder.glob("part-*"):
            os.utime(file, ns=(number * 1000, number * 1000))


def spans(root: Path) -> list[tuple[int, int]]:
    return [(segment.first, segment.last) for segment in log.segments(root) if not segment.raw]


def everything(root: Path) -> list[int]:
    return values(read([part(root, 1)]))


def leftovers(root: Path) -> list[str]:
    """What is on the disk and does not count."""
    counting = {segment.path for segment in log.segments(root)}
    found = [*root.iterdir(), *(root / "compact").glob("*")]
    return [str(path) for path in found if path not in counting and path.name != "compact"]


def test_too_few_batches_stay(tmp_path: Path) -> None:
    fill(tmp_path, range(33))
    assert compact(tmp_path).batches == 0
    assert spans(tmp_path) == []


def test_all_but_the_newest_two_are_merged(tmp_path: Path) -> None:
    fill(tmp_path, range(100, 134))
    report = compact(tmp_path)
    assert (report.batches, spans(tmp_path), leftovers(tmp_path)) == (32, [(100, 131)], [])
    assert report.written == (committed(tmp_path)[0],)
    assert everything(tmp_path) == list(range(100, 134))


def test_a_merged_file_has_the_rows_sorted_and_their_batches(tmp_path: Path) -> None:
    for number in range(5):
        write_batch(tmp_path, number, [Row(2 - number % 2, 10 - number, number), Row(9, number, number)])
    (written,) = compact(tmp_path, min_batches=1).written
    table = pq.read_table(written)
    assert table.schema.names == [*SCHEMA.names, "_batch"]
    assert table.drop_columns("_batch").schema.types == SCHEMA.types
    rows = table.select(["_fragment", "_batch"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 1), (2, 2), (2, 0), (9, 0), (9, 1), (9, 2)]
    assert table["_batch"].to_pylist() == table["v"].to_pylist()


def test_large_batches_are_merged_in_files_of_the_wanted_size(tmp_path: Path) -> None:
    fill(tmp_path, range(12), rows=3)
    compact(tmp_path, min_batches=1, target_rows=12)
    assert spans(tmp_path) == [(0, 3), (4, 7), (8, 9)]


def test_the_number_of_files_grows_slowly(tmp_path: Path) -> None:
    counts = []
    for first in range(0, 256, 4):
        fill(tmp_path, range(first, first + 4))
        compact(tmp_path, min_batches=4)
        counts.append(len(spans(tmp_path)))
    assert max(counts) <= 9  # 3 of the smallest, then doubling: 3 + log2(64)
    assert max(counts[32:]) <= max(counts[:32]) + 1
    assert everything(tmp_path) == list(range(256))


def test_batches_without_rows_leave_nothing(tmp_path: Path) -> None:
    for number in range(3):
        write_batch(tmp_path, number, [])
    (tmp_path / "batch=3").mkdir()
    (tmp_path / "batch=3/_SUCCESS").touch()
    fill(tmp_path, range(4, 6))
    assert compact(tmp_path, min_batches=1).written == ()
    assert sorted(os.listdir(tmp_path)) == ["batch=4", "batch=5"]


def test_an_abandoned_batch_goes_with_its_neighbours(tmp_path: Path) -> None:
    fill(tmp_path, range(3))
    write_batch(tmp_path, 3, [Row(1, 3, 999)], committed=False)
    fill(tmp_path, range(4, 7))
    compact(tmp_path, min_batches=1)
    assert everything(tmp_path) == [0, 1, 2, 4, 5, 6]
    assert leftovers(tmp_path) == []


def test_a_batch_that_is_being_written_is_not_touched(tmp_path: Path) -> None:
    fill(tmp_path, range(5))
    folder = write_batch(tmp_path, 5, [Row(1, 5, 5)], committed=False)
    compact(tmp_path, min_batches=1)
    (folder / "_SUCCESS").touch()
    assert everything(tmp_path) == list(range(6))


@pytest.mark.parametrize("step", EVERY_STEP)
def test_a_crash_at_any_step_leaves_the_same_log(tmp_path: Path, step: int) -> None:
    """Three merges of batches, then one of their files with the small ones before: all kinds of steps."""
    for first in range(0, 9, 3):
        fill(tmp_path, range(first, first + 3))
        compact(tmp_path, min_batches=1)
    fill(tmp_path, range(9, 12))
    with crash_at(step):
        compact(tmp_path, min_batches=1)
    assert everything(tmp_path) == list(range(12))
    compact(tmp_path, min_batches=1)
    assert everything(tmp_path) == list(range(12))
    assert leftovers(tmp_path) == []


def test_the_steps_of_the_crash_test_reach_the_end(tmp_path: Path) -> None:
    for first in range(0, 12, 3):
        fill(tmp_path, range(first, first + 3))
        with crash_at(max(EVERY_STEP)):
            compact(tmp_path, min_batches=1)
    assert leftovers(tmp_path) == []
    assert spans(tmp_path) == [(0, 9)]


@pytest.mark.parametrize(
    ("older_than", "keep_from", "kept"),
    [(0, None, 0), (3, None, 0), (4, None, 4), (99, None, 10), (99, 4, 4), (99, 3, 0), (99, 0, 0), (5, 99, 4)],
)
def test_retention_removes_whole_files(tmp_path: Path, older_than: int, keep_from: int | None, kept: int) -> None:
    fill(tmp_path, range(12))
    compact(tmp_path, min_batches=1, target_rows=4)
    assert spans(tmp_path) == [(0, 3), (4, 7), (8, 9)]
    removed = retain(tmp_path, older_than, keep_from_batch=keep_from)
    assert everything(tmp_path) == list(range(kept, 12))
    assert not any(path.exists() for path in removed)


@pytest.mark.parametrize("step", EVERY_STEP)
def test_retention_after_a_crashed_compaction_brings_nothing_back(tmp_path: Path, step: int) -> None:
    fill(tmp_path, range(6))
    with crash_at(step):
        compact(tmp_path, min_batches=1)
    retain(tmp_path, 99)
    assert everything(tmp_path) in (list(range(6)), [4, 5])
    retain(tmp_path, 99)
    assert leftovers(tmp_path) == []


def test_merging_keeps_the_age_of_the_rows(tmp_path: Path) -> None:
    for first in range(0, 16, 4):
        fill(tmp_path, range(first, first + 4))
        compact(tmp_path, min_batches=1)
    assert spans(tmp_path) == [(0, 13)]
    assert retain(tmp_path, 13) == ()
    assert len(retain(tmp_path, 14)) == 1


def test_damage_stops_a_compaction_with_a_message_and_leaves_the_rest(tmp_path: Path) -> None:
    fill(tmp_path, range(5))
    damaged = next((tmp_path / "batch=1").glob("part-*"))
    damaged.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"batch=1: expected a Parquet file"):
        compact(tmp_path, min_batches=1)
    assert len(os.listdir(tmp_path)) == 5


def test_damage_inside_a_file_stops_a_compaction_too(tmp_path: Path) -> None:
    fill(tmp_path, range(5), rows=100)
    damaged = next((tmp_path / "batch=1").glob("part-*"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:4] + bytes(200) + content[204:])
    with pytest.raises(StoreError, match=r"cannot be merged(.|\n)*nothing is lost"):
        compact(tmp_path, min_batches=1)
    assert spans(tmp_path) == []


def test_what_somebody_has_yet_to_read_by_its_time_stays(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [Row(1, 10, 1), Row(1, 20, 2)])
    for number in (1, 2):
        write_batch(tmp_path, number, [])
    compact(tmp_path, min_batches=1)
    later = time.time_ns() // 1000 + 1_000_000
    assert retain(tmp_path, later, keep_after_us=19) == ()
    assert len(retain(tmp_path, later, keep_after_us=20)) == 1
