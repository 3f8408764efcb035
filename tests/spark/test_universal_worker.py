"""What a worker of a universal carrier does with its batches, without Spark. Answers are worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.arrow import arrow_schema
from towpath.lang import parse
from towpath.plan.assignment import UNIVERSAL, TableChange, rows
from towpath.plan.cut import plan
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import universal_for
from towpath.schema import Column, Stream, Type
from towpath.spark import assignments, universal_worker
from towpath.spark.assignments import publish
from towpath.spark.universal_worker import FILE, closed, filtered, partials, pipeline_of, post_of

COLUMNS = {"k": Type.BIGINT, "x": Type.DOUBLE, "at": Type.TIMESTAMP}
CATALOG = {"s": Stream("s", tuple(Column(c, t) for c, t in COLUMNS.items()), "at")}
SECOND = 1_000_000
BIG, SMALL = "SELECT k FROM s WHERE x > 2", "SELECT k + 10 AS n FROM s WHERE x < 2"
COUNT = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k HAVING count(*) > 1"


def pipeline(sql: str) -> Pipeline:
    (made,) = plan(parse(sql, CATALOG), CATALOG).pipelines
    return made


def put(folder: Path, version: int, fragments: dict[int, str], left: tuple[int, ...] = ()) -> None:
    """A new version of a table, with fragments that come and some that leave."""
    added = []
    for number, sql in fragments.items():
        made = pipeline(sql)
        template = universal_for(made)
        assert template is not None
        added += rows(number, made, template)
    change = TableChange(added, left, version - 1 if version > 1 else None)
    publish(folder, version, UNIVERSAL, change, by_version=True)


def batches(version: int, *given: tuple[int, float, int]) -> Iterator[pa.RecordBatch]:
    """A batch for every row (k, x, seconds), as Spark may give them."""
    types = {f"i0_{c}": t for c, t in COLUMNS.items()}
    schema = arrow_schema({**types, "i0__stream": Type.STRING, "i0__us": Type.BIGINT, "_version": Type.INT})
    for k, x, t in given:
        values = [k, x, t * SECOND, "s", t * SECOND, version]
        yield pa.RecordBatch.from_arrays(
            [pa.array([v], f.type) for v, f in zip(values, schema, strict=True)], schema=schema
        )


def found(batches: Iterator[pa.RecordBatch]) -> list[tuple]:
    """What is not NULL in each row of the files that were written, but for its times."""
    files = [row[FILE] for batch in batches for row in batch.to_pylist()]
    seen = (row for file in files for row in pq.read_table(file).to_pylist())
    return sorted(tuple(v for n, v in row.items() if v is not None and n not in ("_time", "_born")) for row in seen)


def written(folder: Path) -> str:
    return str(folder / "written")


ROWS = ((1, 1.0, 1), (2, 3.0, 2), (1, 5.0, 3))


def test_a_batch_reads_the_version_that_it_was_given(tmp_path: Path) -> None:
    put(tmp_path, 1, {1: BIG})
    put(tmp_path, 2, {2: SMALL}, left=(1,))
    put(tmp_path, 3, {n: SMALL for n in range(3, 100)}, left=(2,))  # it is written anew by now
    assert found(filtered(str(tmp_path), False, (), written(tmp_path), batches(1, *ROWS))) == [(1, 1), (1, 2)]
    assert found(filtered(str(tmp_path), False, (), written(tmp_path), batches(2, *ROWS))) == [(2, 11)]
    assert found(filtered(str(tmp_path), False, (), written(tmp_path), batches(3, *ROWS))) == [
        (n, 11) for n in range(3, 100)
    ]


def test_of_banned_fragments_nothing_is_written(tmp_path: Path) -> None:
    put(tmp_path, 1, {1: BIG, 2: BIG})
    assert found(filtered(str(tmp_path), False, (1,), written(tmp_path), batches(1, *ROWS))) == [(2, 1), (2, 2)]


def test_versions_that_were_replaced_long_ago_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, 1, {n: BIG for n in range(100)})
    put(tmp_path, 2, {100: SMALL}, left=tuple(range(100)))
    kept = len(list(tmp_path.iterdir()))
    monkeypatch.setattr(assignments, "KEPT_S", 0.0)
    put(tmp_path, 3, {101: SMALL})
    assert len(list(tmp_path.iterdir())) < kept
    with pytest.raises(FileNotFoundError):
        found(filtered(str(tmp_path), False, (), written(tmp_path), batches(1, *ROWS)))
    assert found(filtered(str(tmp_path), False, (), written(tmp_path), batches(3, *ROWS))) == [(100, 11), (101, 11)]


def test_what_is_compiled_is_compiled_once(tmp_path: Path) -> None:
    put(tmp_path, 1, {1: BIG})
    found(filtered(str(tmp_path), False, (), written(tmp_path), batches(1, *ROWS)))
    before = universal_worker._tables[str(tmp_path)]
    put(tmp_path, 2, {2: SMALL})
    found(filtered(str(tmp_path), False, (), written(tmp_path), batches(2, *ROWS)))
    after = universal_worker._tables[str(tmp_path)]
    assert after.fragments[1] is before.fragments[1] and after.fragments.keys() == {1, 2}


def test_no_rows_need_no_table(tmp_path: Path) -> None:
    assert found(filtered(str(tmp_path / "none"), False, (), written(tmp_path), batches(1))) == []


@pytest.mark.parametrize("most", [1, 2, 100])
def test_windows_are_closed_by_what_their_rows_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(universal_worker, "MOST_ROWS", most)
    put(tmp_path, 1, {1: COUNT, 2: COUNT})
    parts = pa.Table.from_batches(list(partials(str(tmp_path), False, batches(1, *ROWS))))
    sums = [(name, "sum") for name in parts.column_names if name.startswith("sum_")]
    keys = [name for name in parts.column_names if not name.startswith(("sum_", "min_", "max_"))]
    others = [(name, name[:3]) for name in parts.column_names if name.startswith(("min_", "max_"))]
    merged = parts.group_by(keys).aggregate(sums + others)
    merged = merged.rename_columns([n[:-4] if n.endswith(("_sum", "_min", "_max")) else n for n in merged.column_names])
    whole = merged.select(parts.column_names)
    assert found(closed(False, (), written(tmp_path), iter(whole.to_batches()))) == [(1, 1, 2), (2, 1, 2)]
    assert found(closed(False, (1,), written(tmp_path), iter(whole.to_batches()))) == [(2, 1, 2)]


def test_a_post_has_all_that_closing_needs_and_nothing_of_the_conditions() -> None:
    first, second = (post_of(pipeline(COUNT.replace("GROUP", f"WHERE x > {n} GROUP"))) for n in (1, 2))
    assert first == second != post_of(pipeline(COUNT.replace("> 1", "> 2")))
    assert pipeline_of(first).having == pipeline(COUNT).having
