"""What files mean: to every reader what they mean to DuckDB, asked here in words of this test's own."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from towpath.streams.reading import BadFile, Form, read, read_messages

SCHEMA = pa.schema(
    [
        ("s", pa.string()),
        ("n", pa.int64()),
        ("i", pa.int32()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
COLUMNS = (
    "{'s': 'VARCHAR', 'n': 'BIGINT', 'i': 'INTEGER', 'd': 'DOUBLE', 'b': 'BOOLEAN', 'day': 'DATE', 'at': 'TIMESTAMPTZ'}"
)
GOOD = "2026-01-01 00:00:01"
HEADER = "s,n,i,d,b,day,at\n"

Row = tuple[Any, ...]

DATABASE = duckdb.connect(config={"threads": 1})
DATABASE.execute("SET TimeZone = 'UTC'")


def values(table: pa.Table) -> list[Row]:
    """Comparable: NaN equals NaN."""
    return [tuple(map(repr, row.values())) for row in table.to_pylist()]


def asked(sql: str) -> list[Row]:
    return values(DATABASE.sql(sql).to_arrow_table().cast(SCHEMA))


def by_duckdb(path: Path, format_: str) -> list[Row]:
    """The rows of a file, which must be good as a whole; none if DuckDB refuses it, or if there is no time."""
    source = (
        f"read_csv('{path}', columns = {COLUMNS}, header = true, auto_detect = false)"
        if format_ == "csv"
        else f"read_json('{path}', columns = {COLUMNS}, format = 'newline_delimited')"
    )
    try:
        return asked(f'SELECT * FROM {source} WHERE isfinite("at") AND coalesce(isfinite(day), true)')
    except duckdb.Error:
        return []


def check_lines(lines: list[bytes], format_: str) -> None:
    """Every line is read as it is alone, or refused with its number if DuckDB refuses it alone."""
    before = HEADER.encode() if format_ == "csv" else b""
    with tempfile.TemporaryDirectory() as folder:
        expected: list[Row] = []
        refused = []
        place = 1 + len(before.splitlines())
        for line in lines:
            alone = Path(folder) / f"alone.{format_}"
            alone.write_bytes(before + line + b"\n")
            rows = by_duckdb(alone, format_)
            expected += rows
            if not rows and line.strip():
                refused.append(place)
            place += line.count(b"\n") + 1
        together = Path(folder) / f"together.{format_}"
        together.write_bytes(before + b"".join(line + b"\n" for line in lines))
        table, rejects = read(str(together), Form(format_, SCHEMA, "at"))
        assert values(table) == expected
        assert [reject.line for reject in rejects] == refused
        assert all(reject.reason for reject in rejects)


JSON_VALUES = [
    '"12"',
    "12",
    "1.5",
    "1e3",
    '"1e3"',
    '"1.5"',
    "true",
    "false",
    '"true"',
    '"t"',
    '"TRUE"',
    "1",
    "0",
    "null",
    '""',
    '" 7 "',
    '{"a": 1}',
    "[1, 2]",
    '"NaN"',
    "NaN",
    "Infinity",
    '"inf"',
    '"abc"',
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "3000000000",
    "1e400",
    "123456789012345678901234567890",
    '"2026-01-01"',
    '"2026-01-01T10:00:00.123456789Z"',
    '"2026-01-01 10:00:00+02:00"',
    '"2026-01-01 10:00:00"',
    "1767225600",
    "1767225600000",
    '"2026-02-30"',
    '"1969-07-20T20:17:40"',
    '"é"',
    '"\\u00e9"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"a\\"b\\\\c"',
]
JSON_LINES = [
    "",
    "   ",
    "null",
    "[1]",
    "12",
    '"text"',
    "{",
    "{}",
    f'{{"at": "{GOOD}"}} {{}}',
    f'{{"at": "{GOOD}",}}',
    f"{{'at': '{GOOD}'}}",
    f'{{"at": "{GOOD}", "n": 1, "n": 2}}',
    f'{{"at": "{GOOD}", "other": 1, "other": 2}}',
    f'{{"at": "{GOOD}", "N": 1}}',
    f'{{"at": "{GOOD}", "extra": {{"n": [1]}}}}',
    f'{{"AT": "{GOOD}"}}',
    f'{{"at": "{GOOD}"}}\r',
]
json_line = st.one_of(
    st.sampled_from(JSON_LINES),
    st.builds(
        lambda column, value, time: (
            f'{{"{column}": {value}, "at": {time}}}' if column != "at" else f'{{"at": {value}}}'
        ),
        st.sampled_from(SCHEMA.names),
        st.sampled_from(JSON_VALUES),
        st.just(f'"{GOOD}"'),
    ),
).map(str.encode)


@given(st.lists(st.one_of(json_line, st.just(b'{"s": "\xe9", "at": "2026-01-01"}')), max_size=8))
@settings(max_examples=40, deadline=None)
def test_a_line_of_json_means_what_it_means_to_duckdb(lines: list[bytes]) -> None:
    check_lines(lines, "json")


@pytest.mark.parametrize("column", SCHEMA.names)
def test_every_value_of_json_in_every_column(column: str) -> None:
    extra = "" if column == "at" else f', "at": "{GOOD}"'
    check_lines([f'{{"{column}": {value}{extra}}}'.encode() for value in JSON_VALUES], "json")


CSV_VALUES = [
    "",
    '""',
    "x",
    '"a ""b"" c"',
    'a\\"b',
    "it's",
    '"two\nlines"',
    '"two\r\nlines"',
    '"a,b"',
    "NA",
    "null",
    "NULL",
    "NaN",
    "nan",
    "inf",
    "-inf",
    " 7 ",
    '" 7 "',
    "7",
    "+7",
    "1.5",
    "1e3",
    "1_000",
    "0x10",
    "9223372036854775807",
    "9223372036854775808",
    "3000000000",
    "1e400",
    "true",
    "TRUE",
    "t",
    "T",
    "1",
    "0",
    "yes",
    "f",
    "2026-01-01",
    "2026-01-01T10:00:00Z",
    "2026-01-01 10:00:00.123456789",
    "2026-01-01 10:00:00+02:00",
    "2026-01-01 10:00",
    "1767225600",
    "2026-02-30",
    "1969-07-20 20:17:40",
    "01/02/2026",
    "é",
]
csv_line = st.one_of(
    st.sampled_from(["", "x", "a,1", f"x,1,1,1,1,2026-01-01,{GOOD},more"]),
    st.builds(
        lambda column, value: ",".join(
            value if name == column else GOOD if name == "at" else "" for name in SCHEMA.names
        ),
        st.sampled_from(SCHEMA.names),
        st.sampled_from(CSV_VALUES),
    ),
).map(str.encode)


@given(st.lists(st.one_of(csv_line, st.just(f"\xe9,1,1,1,1,2026-01-01,{GOOD}".encode("latin-1"))), max_size=8))
@example([b'"two\nlines",,,,,,2026-01-01', b"x,bad,,,,,2026-01-01", b"", b"x,1,,,,,", b"y,,,,,,2026-01-01"])
@settings(max_examples=40, deadline=None)
def test_a_line_of_csv_means_what_it_means_to_duckdb(lines: list[bytes]) -> None:
    check_lines(lines, "csv")


@pytest.mark.parametrize("column", SCHEMA.names)
def test_every_value_of_csv_in_every_column(column: str) -> None:
    lines = [",".join(v if c == column else GOOD if c == "at" else "" for c in SCHEMA.names) for v in CSV_VALUES]
    check_lines([line.encode() for line in lines], "csv")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"at,n,s\n{GOOD},7,x\n", id="another order"),
        pytest.param(f"\ufeffat,n,s\n{GOOD},7,x\n", id="byte order mark"),
        pytest.param(f"At,N,S\n{GOOD},7,x\n", id="another case"),
        pytest.param(f"at,new,n,newer,s\n{GOOD},-,7,-,x\n", id="more columns"),
        pytest.param(f'"at","n","s"\r\n"{GOOD}","7","x"\r\n', id="quotes and CRLF"),
        pytest.param(f"at,n,s\n\n{GOOD},7,x", id="an empty line and no end of line"),
    ],
)
def test_the_header_decides_which_column_is_which(tmp_path: Path, content: str) -> None:
    for name, data in (("plain.csv", content.encode()), ("packed.csv.gz", gzip.compress(content.encode()))):
        (tmp_path / name).write_bytes(data)
        table, rejects = read(str(tmp_path / name), Form("csv", SCHEMA, "at"))
        assert [(row["s"], row["n"], row["d"]) for row in table.to_pylist()] == [("x", 7, None)]
        assert rejects == []


def test_names_of_files_are_just_names(tmp_path: Path) -> None:
    for name, k in (("it's [1]*?.csv", 1), ("it's 1.csv", 2)):
        (tmp_path / name).write_text(f"at,n\n{GOOD},{k}\n")
        table, _ = read(str(tmp_path / name), Form("csv", SCHEMA, "at"))
        assert table.column("n").to_pylist() == [k]


def test_endless_times_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"at,day,n\ninfinity,,1\n{GOOD},-infinity,2\n{GOOD},,3\n")
    table, rejects = read(str(tmp_path / "a.csv"), Form("csv", SCHEMA, "at"))
    assert table.column("n").to_pylist() == [3]
    assert [reject.line for reject in rejects] == [2, 3]


# --- Parquet ---------------------------------------------------------------------------------------------------------

AT = dt.datetime(2026, 1, 1, 0, 0, 1, 123456, dt.UTC)
LATER = pa.array([AT, AT], pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("column", "found", "expected"),
    [
        ("n", pa.array([7, -1], pa.int32()), [7, -1]),
        ("n", pa.array([7, 2**63], pa.uint64()), [7]),
        ("i", pa.array([7, 2**40], pa.int64()), [7]),
        ("n", pa.array([1.5, 2.5], pa.float64()), [2, 2]),
        ("n", pa.array(["7", "x"]), [7]),
        ("n", pa.array([True, None]), [1, None]),
        ("d", pa.array([decimal.Decimal("1.5"), None]), [1.5, None]),
        ("d", pa.array([1.5, None], pa.float32()), [1.5, None]),
        ("s", pa.array([7, None]), ["7", None]),
        ("s", pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        ("s", pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        ("day", pa.array([AT, None], pa.timestamp("us")), [AT.date(), None]),
        ("b", pa.array([1, 0]), [True, False]),
        ("d", pa.array([[1.0], None]), [None]),
    ],
)
def test_other_types_of_parquet_are_cast_as_duckdb_does(
    tmp_path: Path, column: str, found: pa.Array, expected: list[object]
) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({column: found, "at": LATER}), path)
    table, rejects = read(str(path), Form("parquet", SCHEMA, "at"))
    assert table.column(column).to_pylist() == expected
    assert len(rejects) == 2 - len(expected)
    type_ = {"n": "BIGINT", "i": "INTEGER", "d": "DOUBLE", "s": "VARCHAR", "b": "BOOLEAN", "day": "DATE"}[column]
    with duckdb.connect() as database:
        cast = f"TRY_CAST({column} AS {type_})"
        same = f"SELECT {cast} FROM '{path}' WHERE {column} IS NULL OR {cast} IS NOT NULL"
        assert [value for (value,) in database.sql(same).fetchall()] == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_of_parquet(tmp_path: Path, unit: str, zone: str | None) -> None:
    path = tmp_path / "file.parquet"
    at = AT.replace(microsecond=0)
    column = pa.array([at, None], pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, zone))
    pq.write_table(pa.table({"at": column, "n": [1, 2]}), path)
    table, (reject,) = read(str(path), Form("parquet", SCHEMA, "at"))
    assert table.column("at").to_pylist() == [at]
    assert (reject.line, reject.reason) == (2, "it has no event time in the column at")


def test_a_part_of_a_parquet_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"at": LATER}), path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BadFile, match="No magic bytes"):
        read(str(path), Form("parquet", SCHEMA, "at"))


NARROW = pa.schema([("id", pa.int64()), ("s", pa.string()), ("at", pa.timestamp("us", "UTC"))])


def narrow(tmp_path: Path, text: str, *, header: bool = True) -> tuple[list[tuple[int, str | None]], list[int | None]]:
    """Ids and texts of the rows, and the lines that are refused."""
    (tmp_path / "a.csv").write_text(text, newline="")
    rows, rejects = read(str(tmp_path / "a.csv"), Form("csv", NARROW, "at", header))
    return [(row["id"], row["s"]) for row in rows.to_pylist()], [reject.line for reject in rejects]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id,at,s", "{id},{at},{s}"),
        ("x,id,at,s", "j,{id},{at},{s}"),
        ("x,y,at,s,id", "j,k,{at},{s},{id}"),
        ("x,s,y,at,id,z", ",{s},k,{at},{id},"),
        ("s,id,at,x", "{s},{id},{at},j"),
    ],
)
def test_columns_that_the_stream_does_not_have_change_nothing(tmp_path: Path, header: str, row: str) -> None:
    lines = [row.format(id=1, at=GOOD, s=""), row.format(id=2, at="", s="b"), row.format(id=3, at=GOOD, s="c")]
    assert narrow(tmp_path, "\n".join([header, *lines])) == ([(1, None), (3, "c")], [3])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("within", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", [True, False])
def test_line_ends_within_quotes_are_not_those_of_the_file(tmp_path: Path, end: str, within: str, header: bool) -> None:
    lines = [f'1,"a{within}b",{GOOD}', f"2,c,{GOOD}", ""]
    text = end.join(['id,"s",at', *lines] if header else lines)
    assert narrow(tmp_path, text, header=header) == ([(1, f"a{within}b"), (2, "c")], [])


def test_a_file_whose_lines_end_in_several_ways_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="its lines do not all end like the first one"):
        narrow(tmp_path, f"id,s,at\r\n1,a,{GOOD}\n2,b,{GOOD}\n")


def test_an_open_quote_says_how_much_it_takes_in(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'id,s,at\n1,a,{GOOD}\n2,"b,{GOOD}\n3,c,{GOOD}\n4,d,{GOOD}\n')
    rows, (reject,) = read(str(tmp_path / "a.csv"), Form("csv", NARROW, "at"))
    assert rows["id"].to_pylist() == [1]
    assert reject.line == 3
    assert reject.reason.endswith("It takes in the 2 lines behind it, up to the end of the file.")


FEW = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def places(path: Path, content: str, schema: pa.Schema = FEW) -> list[tuple[int | None, str]]:
    path.write_text(content, newline="")
    return [(reject.line, reject.text) for reject in read(str(path), Form("csv", schema, "at"))[1]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
def test_a_row_that_is_refused_has_its_line_and_its_text(tmp_path: Path, end: str) -> None:
    lines = ["id,at", f"1,{GOOD}", "", "1,infinity", "", "", f"z,{GOOD}", "2,-infinity", "", "3,"]
    found = places(tmp_path / "a.csv", end.join(lines) + end)
    assert found == [(4, "1,infinity"), (7, f"z,{GOOD}"), (8, "2,-infinity"), (10, "3,")]


def test_a_row_of_several_lines_has_the_text_of_all(tmp_path: Path) -> None:
    schema = FEW.append(pa.field("s", pa.string()))
    assert places(tmp_path / "a.csv", 'id,s,at\n\n1,"a\n\nb",infinity\n2,c,infinity\n', schema) == [
        (3, '1,"a\n\nb",infinity'),
        (6, "2,c,infinity"),
    ]


def test_an_empty_line_is_no_row_where_there_is_one_column(tmp_path: Path) -> None:
    only = pa.schema([("at", pa.timestamp("us", "UTC"))])
    assert places(tmp_path / "a.csv", f"at\n\n{GOOD}\n\n\nz\n\n", only) == [(6, "z")]


@pytest.mark.parametrize("header", [" id,at", "id ,at", '"  id ", at'])
def test_blanks_around_a_name_of_the_header_do_not_count(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1,{GOOD}\n")
    assert DATABASE.sql(f"SELECT * FROM read_csv('{path}')").columns == FEW.names
    assert read(str(path), Form("csv", FEW, "at"))[0].column("id").to_pylist() == [1]


def test_a_column_whose_name_has_blanks_is_found_by_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f" id,at\n1,{GOOD}\n")
    schema = pa.schema([(" id", pa.int64()), FEW.field("at")])
    assert read(str(path), Form("csv", schema, "at"))[0].column(" id").to_pylist() == [1]


def test_csv_of_other_countries(tmp_path: Path) -> None:
    """By hand: semicolons, words for NULL, and days before months."""
    path = tmp_path / "a.csv"
    path.write_text(
        "s;n;d;at\n"
        '"a;b";1;1.5;31.12.2026 13:00:01\n'
        "NA;NA;;01.02.2026 00:00:00\n"
        "c;2;null;2026-12-31 13:00:00\n"
        "d;3;2;NA\n"
        "e;4;2;\n"
    )
    form = Form("csv", SCHEMA, "at", delimiter=";", nulls=("NA", "null"), time_format="%d.%m.%Y %H:%M:%S")
    table, rejects = read(str(path), form)
    found = table.select(["s", "n", "d", "at"]).to_pylist()
    moments = [dt.datetime(2026, 12, 31, 13, 0, 1, tzinfo=dt.UTC), dt.datetime(2026, 2, 1, tzinfo=dt.UTC)]
    assert [tuple(row.values()) for row in found] == [("a;b", 1, 1.5, moments[0]), (None, None, None, moments[1])]
    assert [reject.line for reject in rejects] == [4, 5, 6]
    assert [reject.text for reject in rejects] == ["c;2;null;2026-12-31 13:00:00", "d;3;2;NA", "e;4;2;"]


def test_a_format_holds_also_where_every_column_is_as_it_is_read(tmp_path: Path) -> None:
    """DuckDB reads another type where all that is asked of a file is casts."""
    path = tmp_path / "a.csv"
    path.write_text("id,made,at\n1,31.12.2025,01.01.2026\n")
    table, rejects = read(str(path), Form("csv", NUMBERED, "at", time_format="%d.%m.%Y"))
    moments = (dt.datetime(2025, 12, 31, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    assert [tuple(row.values()) for row in table.to_pylist()] == [(1, *moments)] and not rejects


def test_a_format_with_an_offset_is_a_moment_of_utc(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("at\n2026-12-31 13:00:00 +0200\n")
    table, rejects = read(str(path), Form("csv", SCHEMA, "at", time_format="%Y-%m-%d %H:%M:%S %z"))
    assert table["at"].to_pylist() == [dt.datetime(2026, 12, 31, 11, tzinfo=dt.UTC)] and not rejects


NUMBERED = pa.schema([("id", pa.int64()), ("made", pa.timestamp("us", "UTC")), ("at", pa.timestamp("us", "UTC"))])
LAST_MS = 253_402_300_799_999
EPOCH_LINES = [
    '{"id": 1, "at": 1767225600000, "made": -1}',
    f'{{"id": 2, "at": {LAST_MS}, "made": null}}',
    f'{{"id": 3, "at": {LAST_MS + 1}}}',
    '{"id": 4, "at": 9223372036854775807}',
    '{"id": 5, "made": 1}',
    '{"id": 6, "at": "2026-01-01"}',
    f'{{"id": 7, "at": 0, "made": {-(10**17)}}}',
]
EPOCH_MOMENTS = [
    (1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
    (2, None, dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, dt.UTC)),
]


def test_times_of_json_may_be_numbers(tmp_path: Path) -> None:
    """By hand; those that are good alone and those that are not together with others that are bad."""
    path, form = tmp_path / "a.json", Form("json", NUMBERED, "at", time_format="epoch ms")
    for lines in (EPOCH_LINES[:2], EPOCH_LINES):
        path.write_text("\n".join(lines))
        table, rejects = read(str(path), form)
        assert table.schema == NUMBERED
        assert [tuple(row.values()) for row in table.to_pylist()] == EPOCH_MOMENTS
    beyond = "as epoch ms beyond the years 1 to 9999"
    assert [(reject.line, reject.reason.partition(": ")[2] or reject.reason) for reject in rejects] == [
        (3, f"{beyond}: {LAST_MS + 1}"),
        (4, f"{beyond}: 9223372036854775807"),
        (5, "it has no event time in the column at"),
        (6, 'no BIGINT: "2026-01-01"'),
        (7, f"{beyond}: {-(10**17)}"),
    ]


@pytest.mark.parametrize(("unit", "number"), [("seconds", 1_767_225_601), ("us", 1_767_225_601_000_000)])
def test_messages_count_time_in_other_units_too(unit: str, number: int) -> None:
    form = Form("json", NUMBERED, "at", time_format=f"epoch {unit}")
    rows, places, rejects = read_messages([b'{"at": %d}' % number, b'{"at":\n %d}' % number, b"{}"], form)
    assert rows["at"].to_pylist() == [dt.datetime(2026, 1, 1, 0, 0, 1, tzinfo=dt.UTC)] * 2
    assert (places, [reject.line for reject in rejects]) == ([0, 1], [2])
