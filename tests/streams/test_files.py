from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from towpath.errors import StreamError
from towpath.streams.files import Folder, Listed, StoredFile
from towpath.streams.reading import Form, Reject

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("lane", pa.int32()),
        ("x", pa.float64()),
        ("tag", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", UTC),
    ]
)
TIMES = [dt.datetime(2026, 1, 1, 0, 0, second, 250_000, tzinfo=dt.UTC) for second in (3, 1, 2)]
TABLE = pa.table(
    [
        [1, None, 3],
        [1, 2, None],
        [0.5, -1e300, None],
        ["a", 'it\'s, "quoted"', None],
        [True, None, False],
        [dt.date(2026, 1, 1), None, dt.date(1969, 7, 20)],
        TIMES,
    ],
    schema=SCHEMA,
)
MICROS = [int(t.timestamp() * 1e6) for t in TIMES]
ALL = -(2**62), 2**62


def write(folder: Path, format_: str, table: pa.Table = TABLE) -> Path:
    path = folder / f"file.{format_}"
    if format_ == "parquet":
        pq.write_table(table, path)
    elif format_ == "csv":
        pa.csv.write_csv(table, path)
    else:
        lines = [
            json.dumps(row, default=lambda day_or_time: day_or_time.isoformat()) + "\n" for row in table.to_pylist()
        ]
        path.write_text("".join(lines))
    return path


class Source:
    """A folder of one stream, and what it says of single files."""

    def __init__(self, path: Path, format_: str, part: tuple[str, str] | None = None, *, header: bool = True) -> None:
        name = (part[1] if part else None, "s")
        self.folder = Folder(str(path), Form(format_, SCHEMA, "at", header), (name,), part[0] if part else None)

    def inspect(self, path: str) -> StoredFile:
        return self.folder.inspect(Listed(7, path, 9))[0]

    def rejects(self, path: Path) -> list[Reject]:
        return list(self.folder.inspect(Listed(7, str(path), 9))[1])

    def read(self, file: StoredFile, after_us: int, until_us: int) -> pa.Table:
        table = self.folder.read(file, after_us, until_us)
        assert set(table.column("_stream").to_pylist()) <= {"s"}
        return table.drop_columns(["_stream"])


folder = Source


@pytest.fixture(params=["parquet", "csv", "json"])
def format_(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_all_formats_give_the_same_table(tmp_path: Path, format_: str) -> None:
    path = write(tmp_path, format_)
    source = folder(tmp_path, format_)
    file = source.inspect(str(path))
    assert file == StoredFile(str(path), 3, min(MICROS), max(MICROS), 9, 7)
    assert source.read(file, *ALL).equals(TABLE)


def test_rows_are_chosen_by_time(tmp_path: Path, format_: str) -> None:
    source = folder(tmp_path, format_)
    file = source.inspect(str(write(tmp_path, format_)))
    assert source.read(file, MICROS[1], MICROS[2]).equals(TABLE.slice(2))
    assert source.read(file, MICROS[0], MICROS[0]).num_rows == 0
    assert source.read(file, MICROS[1], MICROS[0])["lane"].to_pylist() == [1, None], "without the row of the first time"
    assert source.read(file, MICROS[1] - 1, MICROS[0] - 1)["lane"].to_pylist() == [2, None], "or of the last"
    assert source.read(file, MICROS[1] - 1, MICROS[0]).equals(TABLE)


def test_rows_without_a_time_are_refused(tmp_path: Path, format_: str) -> None:
    table = TABLE.set_column(6, "at", pa.array([None, *TIMES[1:]], UTC))
    source, path = folder(tmp_path, format_), write(tmp_path, format_, table)
    assert source.read(source.inspect(str(path)), *ALL).equals(TABLE.slice(1))
    (reject,) = source.rejects(path)
    assert (reject.line, reject.reason) == (2 if format_ == "csv" else 1, "it has no event time in the column at")


def test_a_part_of_a_folder_has_the_rows_with_one_value(tmp_path: Path, format_: str) -> None:
    source = folder(tmp_path, format_, part=("k", "3"))
    file = source.inspect(str(write(tmp_path, format_)))
    assert (file.oldest_us, file.newest_us) == (MICROS[2], MICROS[2])
    assert source.read(file, *ALL).equals(TABLE.slice(2))


def test_a_file_without_rows(tmp_path: Path, format_: str) -> None:
    source = folder(tmp_path, format_)
    path = tmp_path / "empty"
    if format_ == "parquet":
        pq.write_table(TABLE.slice(0, 0), path)
    else:
        path.touch()
    file = source.inspect(str(path))
    assert file.rows == 0
    assert source.read(file, *ALL).equals(TABLE.slice(0, 0))


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:01Z", "2026-01-01 00:00:01", "2026-01-01T02:00:01+02:00", "2026-01-01T00:00:01.000"]
)
@pytest.mark.parametrize("line", ["k,at\n1,{}\n", '{{"k": 1, "at": "{}"}}\n'])
def test_a_time_without_a_zone_is_utc(tmp_path: Path, line: str, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(line.format(text))
    source = folder(tmp_path, "csv" if line.startswith("k") else "json")
    assert source.inspect(str(path)).newest_us == 1_767_225_601_000_000


def test_columns_nobody_asked_for_and_columns_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_text("new,at,k\nx,2026-01-01T00:00:01Z,7\n")
    source = folder(tmp_path, "csv")
    (row,) = source.read(source.inspect(str(tmp_path / "file.csv")), *ALL).to_pylist()
    assert (row["k"], row["tag"]) == (7, None)


def test_a_csv_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_text("7,,,,,,2026-01-01T00:00:01Z\n")
    source = folder(tmp_path, "csv", header=False)
    (row,) = source.read(source.inspect(str(tmp_path / "file.csv")), *ALL).to_pylist()
    assert row["k"] == 7


def test_unfinished_files_are_not_listed_and_folders_are_refused(tmp_path: Path) -> None:
    for name in (".hidden.csv", "_temporary.csv", "ready.csv"):
        (tmp_path / name).touch()
    (tmp_path / "more.csv").mkdir()
    (tmp_path / "_spark_metadata").mkdir()
    source = folder(tmp_path, "csv").folder
    listed = {Path(found.path).name: found for found in source.list()}
    assert listed.keys() == {"ready.csv", "more.csv"}
    file, (reject,) = source.inspect(listed["more.csv"])
    assert (file.rows, reject.line) == (0, None)
    assert "it is a folder" in reject.reason
    assert list(folder(tmp_path / "nowhere", "csv").folder.list()) == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("parquet", b"PAR1 and then nothing of the kind PAR1", "not a parquet file of these columns: Footer"),
        ("parquet", b"", "not a parquet file of these columns: .* too small"),
        ("csv", b"k,x\n1,2\n", "not a csv file of these columns: it has no column at"),
        ("csv", b"at,AT\n", "it has 2 columns at"),
        ("csv", b"at\xe9\n", "it has no column at"),
    ],
)
def test_a_file_that_is_none_is_refused_as_a_whole(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    source = folder(tmp_path, name)
    assert source.inspect(str(path)).rows == 0
    (reject,) = source.rejects(path)
    assert (reject.line, reject.rows) == (None, 0)
    assert re.search(said, reject.reason)


def test_streams_of_one_folder_are_distinguished_and_may_ask_for_the_same_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "csv")
    streams = (("1", "one"), ("3", "three"), ("1", "uno"), ("9", "nobody"))
    found = Folder(str(tmp_path), Form("csv", SCHEMA, "at"), streams, "k")
    file, _ = found.inspect(Listed(7, str(path), 9))
    table = found.read(file, *ALL)
    rows = list(zip(table.column("_stream").to_pylist(), table.column("k").to_pylist(), strict=True))
    assert sorted(rows) == [("one", 1), ("three", 3), ("uno", 1)]


def test_a_file_that_is_gone_is_named(tmp_path: Path, format_: str) -> None:
    path = write(tmp_path, format_)
    source = folder(tmp_path, format_)
    file = source.inspect(str(path))
    path.unlink()
    with pytest.raises(StreamError, match=f"{path.name}: this file was taken in and is gone.* put it back"):
        source.read(file, *ALL)


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
@pytest.mark.parametrize(("part", "keys"), [(("tag", "a"), [1]), (("lane", "2"), [None]), (("flag", "false"), [3])])
def test_only_the_rows_of_its_part_belong_to_a_stream(
    tmp_path: Path, format_: str, part: tuple[str, str], keys: list[int | None]
) -> None:
    path = write(tmp_path, format_)
    found = folder(tmp_path, format_, part=part)
    file = found.inspect(str(path))
    assert found.read(file, *ALL).column("k").to_pylist() == keys


def test_a_folder_with_a_glob_has_the_files_of_such_names(tmp_path: Path) -> None:
    for name in ("2026-01.csv", "2026-02.csv", "2025-12.csv", "notes.txt", ".2026-03.csv"):
        (tmp_path / name).touch()
    form, streams = Form("csv", SCHEMA, "at"), ((None, "s"),)
    every, some = (Folder(str(tmp_path), form, streams, None, glob) for glob in ("*", "2026-*.csv"))
    assert sorted(Path(listed.path).name for listed in some.list()) == ["2026-01.csv", "2026-02.csv"]
    assert len(list(every.list())) == 4
    assert every.key != some.key
