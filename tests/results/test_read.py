from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.errors import StoreError
from towpath.results import Part, Position, batches, compact, end, follow, log, read

from .logs import Row, part, values, write_batch

ROWS = [
    Row(1, time=30, v=3, born=10),
    Row(1, time=10, v=1, born=10),
    Row(2, time=15, v=9),
    Row(1, time=20, v=2, born=20),
]


@pytest.fixture(params=["raw", "compacted"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One log in both of its forms; the name would be a pattern and a partition if it were not escaped."""
    root = tmp_path / "v=[1]*" / "it's"
    write_batch(root, 5, ROWS)
    for number in (6, 7):
        write_batch(root, number, [])
    if request.param == "compacted":
        assert compact(root, min_batches=1).batches == 1
    return root


BOUNDS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3]),
    ({"from_us": 10}, [1, 2, 3]),
    ({"from_us": 11}, [2]),
    ({"until_us": 20}, [1]),
    ({"until_us": 20, "windowed": True}, [1, 2]),
    ({"from_us": 20, "until_us": 20, "windowed": True}, [2]),
    ({"handed_over_us": 20}, [1, 3]),
    ({"ceded_us": 20}, [1, 3]),
    ({"pending_fence_us": 20}, [1, 3]),
    ({"from_us": 20, "handed_over_us": 21, "ceded_us": 21, "pending_fence_us": 21}, [2]),
]


@pytest.mark.parametrize(("bounds", "expected"), BOUNDS)
def test_a_part_is_what_lies_between_its_fences(root: Path, bounds: dict[str, Any], expected: list[int]) -> None:
    assert values(read([part(root, 1, **bounds)])) == expected


def test_parts_are_united_in_the_order_of_time(root: Path) -> None:
    assert values(read([part(root, 2), part(root, 1)])) == [1, 9, 2, 3]


def test_equal_parts_count_twice(root: Path) -> None:
    assert values(read([part(root, 1), part(root, 1)])) == [1, 1, 2, 2, 3, 3]


def test_columns_are_named_by_the_query(root: Path) -> None:
    columns = (("x", "v"), ("select", "v"), ('"', "s"), ("x", "_time"))
    table = read([part(root, 2, columns=columns)], with_time=True)
    assert table.column_names == ["x", "select", '"', "x", "_time"]
    assert [c.to_pylist()[0] for c in table.columns[:3]] == [9, 9, "row 9"]
    assert table.schema.types[3:] == [pa.timestamp("us", "UTC")] * 2
    assert [c.cast(pa.int64()).to_pylist() for c in table.columns[3:]] == [[15], [15]]


def test_a_log_without_files_gives_the_columns(tmp_path: Path) -> None:
    table = read([part(tmp_path, 1)], with_time=True)
    assert (table.column_names, table.num_rows) == (["v", "_time"], 0)


def test_no_parts_no_columns() -> None:
    assert read([]).num_columns == 0


def test_a_position_bounds_what_is_read(root: Path) -> None:
    p = part(root, 1)
    at = {n: Position().moved([(p, n)]) for n in (4, 5)}
    assert values(read([p], after=at[4])) == [1, 2, 3]
    assert values(read([p], after=at[5])) == []
    assert values(read([p], upto=at[5])) == [1, 2, 3]
    assert values(read([p], upto=at[4])) == []
    assert values(read([p], upto=Position())) == []


def test_a_file_that_vanishes_is_looked_for_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_batch(root, 8, [Row(1, 40, 4)])
    once, segments = [True], log.segments

    def overtaken(folder: Path) -> list[log.Segment]:
        found = segments(folder)
        if once and once.pop():
            for number in (9, 10):
                write_batch(folder, number, [])
            monkeypatch.setattr(log, "segments", segments)
            compact(folder, min_batches=1)
        return found

    monkeypatch.setattr(log, "segments", overtaken)
    assert values(read([part(root, 1)])) == [1, 2, 3, 4]
    assert not once


def test_a_damaged_file_is_an_error_that_names_the_log(tmp_path: Path) -> None:
    folder = write_batch(tmp_path, 0, [Row(1, 1, 1)])
    next(folder.glob("part-*")).write_bytes(b"PAR1 nonsense")
    with pytest.raises(StoreError, match=r"cannot be read.*part-(.|\n)*restore it"):
        read([part(tmp_path, 1)])


def test_a_column_that_is_not_in_the_log_is_an_error(root: Path) -> None:
    with pytest.raises(StoreError, match="nope"):
        read([part(root, 1, columns=(("v", "nope"),))])


def fill(root: Path, numbers: range) -> None:
    for number in numbers:
        write_batch(root, number, [Row(1, number, number), Row(2, number, -number)])


def test_batches_come_once_each(tmp_path: Path) -> None:
    fill(tmp_path, range(10))
    p = part(tmp_path, 1)
    (first,) = batches([p], Position())
    fill(tmp_path, range(10, 20))
    compact(tmp_path, min_batches=1)
    seen = [first, *batches([p], first.position)]
    assert [v for chunk in seen for v in values(chunk.table)] == list(range(20))
    assert list(batches([p], seen[-1].position)) == []


def test_a_long_history_comes_in_pieces(tmp_path: Path) -> None:
    fill(tmp_path, range(12))
    compact(tmp_path, min_batches=1, target_rows=8)
    pieces = [values(chunk.table) for chunk in batches([part(tmp_path, 1)], Position())]
    assert pieces == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [10, 11]]


def test_a_part_that_becomes_known_late_is_read_from_its_beginning(tmp_path: Path) -> None:
    """A move is made known when it is final; the new node may have written results by then."""
    a, b = part(tmp_path, 1, until_us=5), part(tmp_path, 2)
    fill(tmp_path, range(8))
    (before,) = batches([a], Position())
    fill(tmp_path, range(8, 9))
    (after,) = batches([a, b], before.position)
    assert values(before.table) == [0, 1, 2, 3, 4]
    assert sorted(values(after.table)) == [-n for n in range(8, -1, -1)]


def test_the_end_is_behind_everything(tmp_path: Path) -> None:
    fill(tmp_path, range(3))
    p = part(tmp_path, 1)
    position = end([p])
    fill(tmp_path, range(3, 5))
    assert [values(chunk.table) for chunk in batches([p], position)] == [[3, 4]]


def test_following_asks_for_the_parts_again(tmp_path: Path) -> None:
    other = tmp_path / "other"
    parts: list[Part] = [part(tmp_path, 1)]
    fill(tmp_path, range(2))
    waits = iter([True, True, False])

    def wait() -> bool:
        if len(parts) == 1:
            write_batch(other, 0, [Row(3, 7, 70)])
            parts.append(part(other, 3))
        return next(waits)

    assert [values(chunk.table) for chunk in follow(lambda: parts, Position(), wait)] == [[0, 1], [70]]


def test_one_fragment_is_read_from_few_row_groups(tmp_path: Path) -> None:
    for number in range(3):
        write_batch(tmp_path, number, [Row(f % 1000, f, f) for f in range(60_000)])
    (written,) = compact(tmp_path, min_batches=1).written
    metadata = pq.read_metadata(written)
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    assert max(group.num_rows for group in groups) <= 50_000
    bounds = [(group.column(0).statistics.min, group.column(0).statistics.max) for group in groups]
    assert bounds == sorted(bounds)
    assert len(bounds) > 1 and bounds[0][1] <= bounds[1][0]


def test_a_deleted_log_reads_as_empty(root: Path) -> None:
    shutil.rmtree(root)
    assert read([part(root, 1)]).num_rows == 0
