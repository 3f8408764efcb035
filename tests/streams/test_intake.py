"""Files that Spark's own reader is given: all of them once, each with the stream's types."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.schema import Column, Stream, Type
from towpath.streams.definition import StreamDef
from towpath.streams.files import Folder
from towpath.streams.intake import Intake, Intakes, plain_rows
from towpath.streams.reading import Form
from towpath.streams.rejected import DeadLetters, rejected
from towpath.streams.sources import FilesSource

SCHEMA = pa.schema([("k", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
FORM = Form("parquet", SCHEMA, "at")
AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
ONE = pa.table([[1], [AT.date()], [AT]], schema=SCHEMA)


def intake(root: Path) -> Intake:
    folder = Folder(str(root / "s"), FORM, ((None, "s"),))
    return Intake(folder, root / "into", DeadLetters(root / "rejected", folder.key, ["s"]))


def given(root: Path) -> list[int | None]:
    """What Spark would read: names that do not begin with a dot."""
    files = [path for path in (root / "into").glob("*") if not path.name.startswith(".")]
    tables = [pq.read_table(path, schema=SCHEMA) for path in files]
    return sorted(k for table in tables for k in table.column("k").to_pylist())


def reported(root: Path) -> list[tuple[str, int | None]]:
    return [(Path(r.file).name, r.line) for r in rejected(root / "rejected")]


def test_good_files_are_let_in_once_whoever_looks(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    pq.write_table(ONE, tmp_path / "s" / "a.parquet")
    first = intake(tmp_path)
    first.sweep()
    pq.write_table(ONE.set_column(0, "k", pa.array([2], pa.int32())), tmp_path / "s" / "b.parquet")
    for look in (first, intake(tmp_path), intake(tmp_path), first):
        look.sweep()
        assert given(tmp_path) == [1, 2]
    assert reported(tmp_path) == []
    links = [path.is_symlink() for path in (tmp_path / "into").glob("*") if not path.name.startswith(".")]
    assert sorted(links) == [False, True], "what fits is not copied"


def test_what_is_bad_is_reported_and_let_in_when_it_is_repaired(tmp_path: Path) -> None:
    (tmp_path / "s" / "sub").mkdir(parents=True)
    (tmp_path / "s" / "a.parquet").write_bytes(b"PAR1")
    without = pa.table({"k": [2, 3], "at": pa.array([AT, None], pa.timestamp("us", "UTC"))})
    pq.write_table(without, tmp_path / "s" / "b.parquet")
    intake(tmp_path).sweep()
    assert given(tmp_path) == [2]
    assert reported(tmp_path) == [("a.parquet", None), ("b.parquet", 2), ("sub", None)]
    pq.write_table(ONE, tmp_path / "s" / "a.parquet")
    intake(tmp_path).sweep()
    assert given(tmp_path) == [1, 2]
    assert reported(tmp_path) == [("b.parquet", 2), ("sub", None)]


def test_a_file_that_changes_after_it_was_let_in_is_reported(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    pq.write_table(ONE, tmp_path / "s" / "a.parquet")
    intake(tmp_path).sweep()
    pq.write_table(pa.concat_tables([ONE, ONE]), tmp_path / "s" / "a.parquet")
    intake(tmp_path).sweep()
    assert reported(tmp_path) == [("a.parquet", None)]


def test_a_folder_that_fails_is_reported_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "s").mkdir()
    pq.write_table(ONE, tmp_path / "s" / "a.parquet")
    columns = tuple(Column(name, type_) for name, type_ in (("k", Type.BIGINT), ("at", Type.TIMESTAMP)))
    source = FilesSource(type="files", path=str(tmp_path / "s"), format="parquet")
    intakes = Intakes(tmp_path, tmp_path / "rejected", 3600)
    with monkeypatch.context() as full:
        full.setattr(Intake, "_link", lambda *_: (_ for _ in ()).throw(OSError("No space left on device")))
        into = Path(intakes.let_in([StreamDef(Stream("s", columns, "at"), source, 0)]))
        intakes.sweep()
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 's'}: new files cannot be let in, it is tried again: No space left on device"
    ]
    assert list(into.glob("*.parquet")) == []
    intakes.sweep()
    intakes.close()
    assert len(list(into.glob("*.parquet"))) == 1


def endless(time_us: int) -> pa.Array:
    """DuckDB takes the largest number for infinity, and its negative for minus infinity."""
    return pa.array([time_us], pa.int64()).view(pa.timestamp("us", "UTC"))


def endless_day(day: int) -> pa.Array:
    return pa.array([day], pa.int32()).view(pa.date32())


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        pytest.param(ONE, 1, id="the stream's types"),
        pytest.param(ONE.select(["at"]), 1, id="columns that are missing"),
        pytest.param(ONE.append_column("more", pa.array(["x"])), 1, id="more columns"),
        pytest.param(ONE.rename_columns(["K", "day", "at"]), 0, id="another case"),
        pytest.param(ONE.set_column(0, "k", pa.array([1], pa.int32())), 0, id="another number"),
        pytest.param(ONE.set_column(0, "k", pa.array([1], pa.uint64())), 0, id="without a sign"),
        pytest.param(ONE.set_column(0, "k", pa.array([[1]])), 0, id="a list"),
        pytest.param(ONE.set_column(2, "at", pa.array([AT], pa.timestamp("ns", "UTC"))), 0, id="nanoseconds"),
        pytest.param(ONE.set_column(2, "at", pa.array([AT], pa.timestamp("us"))), 0, id="no zone"),
        pytest.param(ONE.set_column(2, "at", pa.array([None], pa.timestamp("us", "UTC"))), 0, id="no time"),
        pytest.param(ONE.set_column(2, "at", endless(2**63 - 1)), 0, id="an infinite time"),
        pytest.param(ONE.set_column(2, "at", endless(1 - 2**63)), 0, id="minus infinity"),
        pytest.param(ONE.set_column(1, "day", endless_day(2**31 - 1)), 0, id="no end"),
        pytest.param(ONE.set_column(1, "day", endless_day(1 - 2**31)), 0, id="no beginning"),
        pytest.param(ONE.set_column(1, "day", pa.array([None], pa.date32())), 1, id="a date that is missing"),
        pytest.param(ONE.select(["k"]), 0, id="no column of times"),
    ],
)
def test_only_what_every_reader_takes_for_the_same_is_linked(tmp_path: Path, table: pa.Table, rows: int) -> None:
    pq.write_table(table, tmp_path / "a.parquet")
    assert plain_rows(str(tmp_path / "a.parquet"), FORM) == rows
