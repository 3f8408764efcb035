from __future__ import annotations

import datetime
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from towpath.errors import TowpathError
from towpath.results import render

UTC = pa.timestamp("us", "UTC")
TABLE = pa.table(
    {
        "id": pa.array([1, -2, None], pa.int64()),
        "price": pa.array([1.5, None, 2.0], pa.float64()),
        "text": pa.array(['a "hi" [i]', "", None], pa.string()),
        "ok": pa.array([True, False, None], pa.bool_()),
        "at": pa.array([0, 1_767_225_600_123_456, None], UTC),
        "day": pa.array([datetime.date(2026, 1, 2), None, None], pa.date32()),
    }
)
EMPTY = TABLE.slice(0, 0)

EXPECTED = {
    "json": """\
{"id": 1, "price": 1.5, "text": "a \\"hi\\" [i]", "ok": true, "at": "1970-01-01T00:00:00.000000Z", "day": "2026-01-02"}
{"id": -2, "price": null, "text": "", "ok": false, "at": "2026-01-01T00:00:00.123456Z", "day": null}
{"id": null, "price": 2.0, "text": null, "ok": null, "at": null, "day": null}
""",
    "csv": """\
"id","price","text","ok","at","day"
1,1.5,"a ""hi"" [i]",true,"1970-01-01T00:00:00.000000Z","2026-01-02"
-2,,"",false,"2026-01-01T00:00:00.123456Z",
,2,,,,
""",
    "table": """\
  id  price  text        ok     at                           day
   1    1.5  a "hi" [i]  True   1970-01-01T00:00:00.000000Z  2026-01-02
  -2   NULL              False  2026-01-01T00:00:00.123456Z  NULL
NULL    2.0  NULL        NULL   NULL                         NULL
""",
}


def text(tables: object, format: str) -> str:
    stream = io.StringIO()
    render(tables, format, stream=stream)
    return stream.getvalue()


def stripped(output: str) -> list[str]:
    return [line.rstrip() for line in output.splitlines()]


@pytest.mark.parametrize("format", EXPECTED)
def test_text_formats(format: str) -> None:
    assert stripped(text(TABLE, format)) == stripped(EXPECTED[format])


@pytest.mark.parametrize("format", EXPECTED)
def test_what_comes_in_pieces_reads_as_a_whole(format: str) -> None:
    pieces = [EMPTY, TABLE.slice(0, 1), EMPTY, TABLE.slice(1)]
    whole, joined = text(TABLE, format), text(pieces, format)
    # A table's columns grow with what comes; words and their order are the same.
    assert [line.split() for line in joined.splitlines()] == [line.split() for line in whole.splitlines()]


@pytest.mark.parametrize("format", EXPECTED)
def test_a_file_gets_what_a_stream_gets(format: str, tmp_path: Path) -> None:
    assert render(iter([TABLE]), format, out=tmp_path / "out") == 3
    assert stripped((tmp_path / "out").read_text(encoding="utf-8")) == stripped(EXPECTED[format])


@pytest.mark.parametrize("format", EXPECTED)
def test_rows_are_printed_before_the_next_come(format: str, tmp_path: Path) -> None:
    file = tmp_path / "out"

    def tables() -> Iterator[pa.Table]:
        yield TABLE
        assert "hi" in file.read_text(encoding="utf-8")

    assert render(tables(), format, out=file) == 3


def test_nothing_has_a_header_where_there_is_one() -> None:
    assert text(EMPTY, "json") == ""
    assert text(EMPTY, "csv") == EXPECTED["csv"].splitlines(keepends=True)[0]
    assert text(EMPTY, "table").split() == TABLE.column_names


def test_json_lines_are_json_whatever_the_numbers() -> None:
    values = [float("nan"), float("inf"), float("-inf"), None, 1.0]
    lines = text(pa.table({"x": values}), "json").splitlines()
    parsed = [json.loads(line, parse_constant=pytest.fail)["x"] for line in lines]
    assert parsed == ["NaN", "Infinity", "-Infinity", None, 1.0]


def test_csv_can_be_read_again(tmp_path: Path) -> None:
    render(TABLE.select(["id", "text"]), "csv", out=tmp_path / "x.csv")
    options = pa_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    assert pa_csv.read_csv(tmp_path / "x.csv", convert_options=options).equals(TABLE.select(["id", "text"]))


def test_a_wide_table_in_a_pipe_is_not_folded() -> None:
    wide = pa.table({f"column_{n}": ["x" * 30] for n in range(50)})
    assert len(text(wide, "table").splitlines()) == 2


def test_parquet(tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    untyped = pa.table({name: pa.nulls(0) for name in TABLE.column_names})
    assert render([untyped, TABLE, EMPTY, TABLE], "parquet", out=out) == 6
    assert pq.read_table(out).equals(pa.concat_tables([TABLE, TABLE]))
    assert render([EMPTY], "parquet", out=out) == 0
    assert pq.read_table(out).equals(EMPTY)


@pytest.mark.parametrize(
    ("format", "message"), [("parquet", "--out FILE"), ("xml", "table, json, csv, parquet, got 'xml'")]
)
def test_what_cannot_be_written_is_refused(format: str, message: str) -> None:
    with pytest.raises(TowpathError, match=message):
        render(TABLE, format)


@pytest.mark.parametrize("format", EXPECTED)
def test_a_reader_that_leaves_early_ends_it_quietly(format: str) -> None:
    program = f"""
import pyarrow as pa
from towpath.results import render
render((pa.table({{"x": list(range(5000))}}) for _ in iter(int, 1)), {format!r})
"""
    reading, writing = os.pipe()
    with subprocess.Popen([sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        assert os.read(reading, 100)
        os.close(reading)
        _, complaints = process.communicate(timeout=60)
    assert (process.returncode, complaints) == (0, b"")


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_file_that_cannot_be_written_is_reported_in_words(tmp_path: Path, format_: str) -> None:
    with pytest.raises(TowpathError, match=r"missing/x cannot be written: .*No such file or directory"):
        render(pa.table({"a": [1]}), format_, out=tmp_path / "missing" / "x")
