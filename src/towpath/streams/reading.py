"""What a file of each format means: what DuckDB takes it for, with the types of the stream's columns.

Every reader of files goes through here, so a file has one meaning. A row that DuckDB cannot take in with these types,
and a row without an event time, is refused with its line and the reason; the others are read as if it were not there.
"""

from __future__ import annotations

import atexit
import csv
import gzip
import io
import json
import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from towpath.streams.fields import (
    Decimals,
    FieldPath,
    Fields,
    alone,
    faults,
    field_value,
    pointer,
    quoted,
    sql_text,
    stored_fields,
    tree,
    type_text,
)
from towpath.streams.timeformat import EPOCHS, FIRST_US, LAST_US

TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
    pa.date32(): "DATE",
}
TEMPORAL = ("TIMESTAMPTZ", "DATE")
ENDLESS = "a time or date in it is infinite"
SHOWN = 500  # characters of a row that is refused
_LINE_END = re.compile(rb"\r\n?|\n")
BOM = b"\xef\xbb\xbf"


class BadFile(Exception):
    """A file that cannot be read as a whole; the message says why."""


class Unreadable(BadFile):
    """For reasons that are not in the file: rights, a disk. It may be read later."""


@dataclass(frozen=True)
class Reject:
    """A row that is not taken in. Without a line it says how many rows there are of the kind."""

    line: int | None  # of the file, from 1 on; of Parquet the row
    reason: str
    text: str = ""  # the row, as far as it is shown
    rows: int = 1


BROKEN = (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, csv.Error, pa.ArrowException)
UNREADABLE = (*BROKEN, OSError)
MIXED_LINE_ENDS = "its lines do not all end like the first one (CR LF, LF or CR): let them all end alike"


@dataclass(frozen=True)
class Form:
    """How files are to be understood: their format, the columns and which of them is the event time.

    What has no event time is a table: each of its columns is to be there.
    """

    format: str
    schema: pa.Schema
    time: str | None
    header: bool = True  # this and all that follow: of CSV
    delimiter: str = ","
    nulls: tuple[str, ...] = ()  # beside nothing at all
    time_format: str | None = None  # also of JSON
    fields: Fields = ()  # this and the next: of all formats: the columns that are not simply the field of their name
    decimals: Decimals = ()

    @property
    def epoch(self) -> int | None:
        """How many microseconds one of the numbers stands for that are timestamps here."""
        return EPOCHS.get(self.time_format or "")

    @property
    def written(self) -> dict[str, str]:
        """The types that JSON has for the columns."""
        moment = "TIMESTAMPTZ" if self.epoch is None else "BIGINT"
        return {name: moment if type_ == "TIMESTAMPTZ" else type_ for name, type_ in self.types.items()}

    @property
    def paths(self) -> dict[str, FieldPath]:
        """The field that each column comes from."""
        return {name: (name,) for name in self.schema.names} | dict(self.fields)

    @property
    def tree(self) -> dict[str, Any]:
        """The types that JSON has for the fields."""
        return tree({self.paths[name]: type_ for name, type_ in self.written.items()})

    @property
    def types(self) -> dict[str, str]:
        """What is read; of decimals not yet their units."""
        decimals = {name: f"DECIMAL({digits},{places})" for name, digits, places in self.decimals}
        return {field.name: decimals.get(field.name) or TYPES[field.type] for field in self.schema}

    def output(self, name: str, value: str) -> str:
        """A value of such a type as the column of it."""
        places = next((places for decimal, _, places in self.decimals if decimal == name), None)
        if places is not None:
            value = f"CAST(CAST({value} AS DECIMAL(38,{places})) * CAST({10**places} AS DECIMAL(19,0)) AS BIGINT)"
        return f"{value} AS {quoted(name)}"


def read(path: str, form: Form) -> tuple[pa.Table, list[Reject]]:
    """The rows of a file that lies on this machine, in their order, and those that are refused. Raises BadFile."""
    try:
        with _database() as database:
            rows, rejects = READERS[form.format](database, path, form)
    except BROKEN as error:
        raise BadFile(_first_line(error)) from error
    except (duckdb.Error, OSError) as error:
        if not Path(path).exists():
            raise FileNotFoundError(path) from error
        kind = Unreadable if isinstance(error, (duckdb.IOException, OSError)) else BadFile
        text = _first_line(error)
        raise kind(MIXED_LINE_ENDS if "CSV Parser state machine" in text else text) from error
    table = rows.select(form.schema.names).cast(form.schema)
    return table, sorted(rejects, key=lambda reject: (reject.line is None, reject.line))


def read_messages(values: Sequence[bytes | None], form: Form) -> tuple[pa.Table, list[int], list[Reject]]:
    """Messages of JSON: each means what it would mean as a line of a file, and one without a text is no row.

    Returns the rows, the place of each among the messages, and those that are refused; their lines are places, too.
    """
    texts = [(value or b"").removeprefix(BOM) for value in values]
    broken = {n: text for n, text in enumerate(texts) if b"\n" in text or b"\r" in text}  # they would be several lines
    with _database() as database, tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(b"\n".join(b"" if n in broken else text for n, text in enumerate(texts)))
        file.flush()
        rows, by_line = _read_json(database, file.name, form)
        rejects = [replace(reject, line=(reject.line or 0) - 1) for reject in by_line]
        if broken:
            more, refused = _read_texts(database, broken, form)
            rows, rejects = pa.concat_tables([rows, more]), [*rejects, *refused]
    out = {reject.line for reject in rejects}
    good = [n for n, text in enumerate(texts) if text.strip() and n not in out]
    places = [n for n in good if n not in broken] + [n for n in good if n in broken]
    assert len(places) == rows.num_rows, "every message is a row, or refused, or empty"
    return rows.select(form.schema.names).cast(form.schema), places, rejects


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    atexit.register(_engine.cache_clear)  # DuckDB complains on stderr about a connection that outlives Python
    # Spark runs as many readers side by side as there are cores.
    return duckdb.connect(config={"threads": 1})


@contextmanager
def _database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of its own for each file, because DuckDB keeps the rows it refused with the connection."""
    with _engine().cursor() as database:
        database.execute("SET TimeZone = 'UTC'")  # a time without a zone is UTC
        yield database


# --- CSV -------------------------------------------------------------------------------------------------------------


def _read_csv(database: duckdb.DuckDBPyConnection, path: str, form: Form) -> tuple[pa.Table, list[Reject]]:
    names = _header(path, form) if form.header else _in_files(form)
    if names is None:
        return form.schema.empty_table(), []
    places = _places(names, form)
    # DuckDB knows formats of timestamps without a zone only. They are in UTC, as everywhere, and Arrow says so later: a
    # CAST here would go down into DuckDB's reader, which then reads another type, and without the format.
    plain = {"TIMESTAMPTZ": "TIMESTAMP"} if form.time_format else {}
    types = {place: plain.get(form.types[column], form.types[column]) for column, place in places.items()}
    columns = {f"c{n}": types.get(n, "VARCHAR") for n in range(len(names))}
    source = (
        f"read_csv({sql_text(_literally(path))}, auto_detect = false, header = {str(form.header).lower()}, "
        f"delim = {sql_text(form.delimiter)}, quote = '\"', escape = '\"', columns = {_struct(columns)}, "
        f"store_rejects = true, new_line = {sql_text(_line_end(path))}{_nulls(form)}{_time_format(form)}"
        + ("" if form.time is None else f", force_not_null = ['c{places[form.time]}']")
        + ")"
    )
    # DuckDB refuses only for columns that are asked for, so all of the stream's are, always. And it counts the columns
    # of force_not_null among those that are asked for, so all that stand before the event time are, too.
    outputs = _outputs(form, {column: f"c{place}" for column, place in places.items()})
    before_time = 0 if form.time is None else places[form.time]
    others = "".join(f", c{n}" for n in range(before_time) if n not in types)
    rows = database.sql(f"SELECT {outputs}{others} FROM {source}").to_arrow_table().select(form.schema.names)
    refused = database.execute(
        "SELECT line_byte_position, any_value(column_name ORDER BY column_idx), "
        "any_value(error_message ORDER BY column_idx), any_value(csv_line) FROM reject_errors GROUP BY 1"
    ).fetchall()
    rejects = _csv_rejects(path, refused, names)
    if (endless := _endless(rows, form)) is not None:
        rejects += _endless_lines(path, form, rejects, endless)
        rows = rows.filter(pc.invert(endless))
    return rows, rejects


def _nulls(form: Form) -> str:
    words = ", ".join(map(sql_text, ("", *form.nulls)))
    return f", nullstr = [{words}]" if form.nulls else ""


def _time_format(form: Form) -> str:
    return f", timestampformat = {sql_text(form.time_format)}" if form.time_format else ""


def _header(path: str, form: Form) -> list[str] | None:
    """The names in the first line; None if the file is empty.

    Blanks around a name do not count, as to DuckDB, unless the stream has a column with these blanks.
    """
    wanted = {name.lower() for name in _in_files(form)}
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
        names = next(csv.reader(text, strict=True, delimiter=form.delimiter), None)
    return None if names is None else [name if name.lower() in wanted else name.strip(" ") for name in names]


def missing_columns(path: str, form: Form) -> list[str]:
    """Columns of the stream that a CSV file with a header does not have. Raises OSError, or what a bad file raises."""
    names = {name.lower() for name in _header(path, form) or _in_files(form)}
    return [name for name in _in_files(form) if name.lower() not in names]


def _in_files(form: Form) -> list[str]:
    """What the columns are called in a file of CSV."""
    return [path[-1] for path in form.paths.values()]


def _line_end(path: str) -> str:
    """As DuckDB is given it: by itself it takes the first one that it sees, also within quotes."""
    quoted = False
    with _opened(path) as file:
        while piece := file.read(1 << 16):
            for found in re.finditer(rb'"|\r\n?|\n', piece if piece[-1:] != b"\r" else piece + file.read(1)):
                if found[0] == b'"':
                    quoted = not quoted
                elif not quoted:
                    return repr(found[0].decode())[1:-1]
    return "\\n"


def _csv_rejects(path: str, refused: Sequence[tuple[int, str | None, str, str]], names: Sequence[str]) -> list[Reject]:
    if not refused:
        return []
    with _opened(path) as file:
        content = file.read()
    found, line, counted = [], 1, 0
    for position, column, message, text in sorted(refused):
        if not text.strip("\r\n"):
            continue  # to DuckDB an empty line of a file with one column is a row of NULL; it is no row
        begin = position - 1 + len(text) - len(text.lstrip("\r\n"))  # empty lines before it count as part of it
        line += len(_LINE_END.findall(content, counted, begin))
        counted = max(counted, begin)
        name = names[int(column[1:])] if column else ""
        problem = _first_line(message).replace(f'column "{column}"', f'column "{name}"')
        reason = _timeless(name) if 'string ""' in problem else problem
        if "unterminated quote" in problem and (taken := text.strip("\r\n").count("\n")):
            reason += f" It takes in the {taken:,} lines behind it, up to the end of the file."
        found.append(Reject(line, reason, text.strip("\r\n")[:SHOWN]))
    return found


def _endless_lines(path: str, form: Form, rejects: Sequence[Reject], endless: pa.ChunkedArray) -> list[Reject]:
    """Where these rows are: DuckDB says it only of rows that it refuses itself."""
    with _opened(path) as file:
        lines = list(io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline=""))
    records, begin, texts = csv.reader(lines, delimiter=form.delimiter), 1, {}
    for record in records:
        if record:
            texts[begin] = "".join(lines[begin - 1 : records.line_num]).strip("\r\n")
        begin = records.line_num + 1
    refused = {reject.line for reject in rejects}
    good = [line for line in list(texts)[form.header :] if line not in refused]
    if len(good) != len(endless):  # Python takes a quote for something else
        return [Reject(None, ENDLESS, rows=pc.sum(endless).as_py())]
    bad = (line for line, is_endless in zip(good, endless.to_pylist(), strict=True) if is_endless)
    return [Reject(line, ENDLESS, texts[line][:SHOWN]) for line in bad]


# --- JSON ------------------------------------------------------------------------------------------------------------


def _read_json(database: duckdb.DuckDBPyConnection, path: str, form: Form) -> tuple[pa.Table, list[Reject]]:
    if _is_empty(path):
        return form.schema.empty_table(), []
    columns = {name: type_text(type_) for name, type_ in form.tree.items()}
    if form.decimals:  # DuckDB makes doubles of the numbers in a file first, but not of those in a text
        return _read_lines(database, path, form)
    source = f"read_json({sql_text(_literally(path))}, format = 'newline_delimited', columns = {_struct(columns)})"
    try:
        rows = database.sql(f"SELECT {_fields(form, 'row')} FROM {source} AS row").to_arrow_table()
    except duckdb.Error:
        return _read_lines(database, path, form)  # to find out which lines it is
    if _timeless_rows(rows, form) or _endless(rows, form) is not None or not _within(rows, form):
        return _read_lines(database, path, form)
    return _moments(rows, form), []


def _fields(form: Form, row: str) -> str:
    """The columns, of what stands for a row of JSON."""
    return ", ".join(form.output(name, field_value(path, row)) for name, path in form.paths.items())


def _numbered(form: Form) -> list[str]:
    return [name for name, type_ in form.types.items() if form.epoch and type_ == "TIMESTAMPTZ"]


def _reach(form: Form) -> tuple[int, int]:
    """The first and the last number that is a moment."""
    unit = form.epoch or 1
    return -(-FIRST_US // unit), LAST_US // unit


def _within(rows: pa.Table, form: Form) -> bool:
    first, last = _reach(form)
    spans = [pc.min_max(rows.column(name)) for name in _numbered(form)]
    return all(first <= span["min"].as_py() and span["max"].as_py() <= last for span in spans if span["min"].is_valid)


def _moments(rows: pa.Table, form: Form) -> pa.Table:
    """Numbers become the moments they stand for."""
    for name in _numbered(form):
        us = pc.multiply(rows.column(name), form.epoch)
        rows = rows.set_column(rows.schema.get_field_index(name), name, us.cast(pa.timestamp("us", "UTC")))
    return rows


def _read_lines(database: duckdb.DuckDBPyConnection, path: str, form: Form) -> tuple[pa.Table, list[Reject]]:
    with _opened(path) as file:
        lines = file.read().removeprefix(BOM).split(b"\n")
    return _read_texts(database, dict(enumerate(lines, start=1)), form)


def _read_texts(
    database: duckdb.DuckDBPyConnection, lines: Mapping[int, bytes], form: Form
) -> tuple[pa.Table, list[Reject]]:
    """The same line by line: `json_transform` is what `read_json` does with a line, with NULL for what does not fit."""
    numbers, texts, rejects = [], [], []
    for number, line in lines.items():
        if not line.strip():
            continue
        try:
            texts.append(line.decode())
            numbers.append(number)
        except UnicodeDecodeError as error:
            rejects.append(Reject(number, f"not UTF-8: {error.reason}", line.decode(errors="replace")[:SHOWN]))
    database.register("lines", pa.table({"n": pa.array(numbers, pa.int64()), "line": pa.array(texts, pa.string())}))
    types = sql_text(json.dumps(form.tree))
    made = f"TRY(json_transform(line, {types})) AS row, TRY(json_type(line)) AS kind"
    # A row that has every column, each as it should be: most are like that, and need no closer look.
    whole = f"TRY(json_transform_strict(line, {types})) IS NOT NULL AS whole"
    database.execute(f"CREATE OR REPLACE TEMP TABLE made AS SELECT n, line, {made}, {whole} FROM lines")
    database.execute(f"CREATE OR REPLACE TEMP TABLE judged AS SELECT *, {_fault(form)} AS fault FROM made")
    outputs = _fields(form, "row")
    rows = _moments(
        database.sql(f"SELECT {outputs} FROM judged WHERE fault IS NULL ORDER BY judged.n").to_arrow_table(), form
    )
    bad = database.execute("SELECT n, fault, line FROM judged WHERE fault IS NOT NULL ORDER BY n").fetchall()
    return rows, [*rejects, *(Reject(number, fault, line[:SHOWN]) for number, fault, line in bad)]


def _fault(form: Form) -> str:
    """What is wrong with a line, as SQL; NULL if nothing is."""
    values = {name: field_value(path, "row") for name, path in form.paths.items()}
    times = [f"isfinite({values[name]})" for name, type_ in form.written.items() if type_ in TEMPORAL]
    first, last = _reach(form)
    within = {name: f"{values[name]} BETWEEN {first} AND {last}" for name in _numbered(form)}
    times += within.values()
    has_time = [] if form.time is None else [f"{values[form.time]} IS NOT NULL"]
    sound = " AND ".join([*has_time, *(f"coalesce({test}, true)" for test in times)]) or "true"
    tests = [
        f"WHEN whole AND {sound} THEN NULL",
        "WHEN kind IS NULL THEN 'not JSON'",
        "WHEN kind <> 'OBJECT' THEN 'expected an object, got ' || lower(kind)",
    ]
    for name, type_ in form.written.items():
        path = form.paths[name]
        tests += [f"WHEN {test} THEN {reason}" for test, reason in faults("line", [path]).items()]
        key, typed = sql_text(pointer(path)), alone(path, type_)
        # Strictly, because the mild one takes more for a number than `read_json` does.
        misfit = f"json_type(line, {key}) <> 'NULL' AND TRY(json_transform_strict(line, {typed})) IS NULL"
        tests.append(f"WHEN {misfit} THEN {sql_text(f'column {name}: no {type_}: ')} || json_extract(line, {key})")
        if type_ in TEMPORAL:
            tests.append(f"WHEN NOT isfinite({values[name]}) THEN {sql_text(ENDLESS)}")
        if name in within:
            beyond = sql_text(f"column {name}: as {form.time_format} beyond the years 1 to 9999: ")
            tests.append(f"WHEN NOT {within[name]} THEN {beyond} || {values[name]}")
    if form.time is not None:
        tests.append(f"WHEN {values[form.time]} IS NULL THEN {sql_text(_timeless(form.time))}")
    return f"CASE {' '.join(dict.fromkeys(tests))} END"


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _read_parquet(database: duckdb.DuckDBPyConnection, path: str, form: Form) -> tuple[pa.Table, list[Reject]]:
    source = f"read_parquet({sql_text(_literally(path))})"
    relation = database.sql(f"SELECT * FROM {source}")
    _places(relation.columns, form)
    stored = stored_fields(dict(zip(relation.columns, relation.types, strict=True)), form.paths)
    columns, found = stored.values, stored.types
    if form.time is not None and form.time not in found:
        raise BadFile(f"it has no column {form.time}, which is the event time; it has {', '.join(relation.columns)}")
    rows = database.sql(f"SELECT {_outputs(form, columns, found)} FROM {source}").to_arrow_table()
    tests = [(reason, test) for test, reason in stored.faults.items()]
    if form.time is not None:
        tests.append((_timeless(form.time), f"{_cast(form.time, columns, form, found)} IS NULL"))
    for column, type_ in form.types.items():
        if column in found and not _same(found[column], type_):
            misfit = f"{columns[column]} IS NOT NULL AND {_cast(column, columns, form, found)} IS NULL"
            tests.insert(0, (f"column {column}: not a value of type {type_}", misfit))
        if column in found and type_ in TEMPORAL:
            tests.append((ENDLESS, f"NOT isfinite({_cast(column, columns, form, found)})"))
    if not tests:
        return rows, []
    fault = "CASE " + " ".join(f"WHEN {test} THEN {sql_text(reason)}" for reason, test in tests) + " END"
    alike = not stored.faults and all(_same(found[column], form.types[column]) for column in found)
    if alike and not _timeless_rows(rows, form) and _endless(rows, form) is None:
        return rows, []
    fields = ", ".join(f"{quoted(name)} := {value}" for name, value in columns.items())
    shown = f"to_json(struct_pack({fields}))::VARCHAR"
    judged = database.sql(
        f"SELECT fault, CASE WHEN fault IS NOT NULL THEN shown END AS shown "
        f"FROM (SELECT {fault} AS fault, {shown} AS shown FROM {source})"
    ).to_arrow_table()
    bad = pc.indices_nonzero(pc.is_valid(judged.column("fault")))
    refused = zip(bad.to_pylist(), judged.take(bad).to_pylist(), strict=True)
    rejects = [Reject(row + 1, about["fault"], about["shown"][:SHOWN]) for row, about in refused]
    return rows.filter(pc.is_null(judged.column("fault"))), rejects


def _same(found: str, wanted: str) -> bool:
    return found == {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}.get(wanted, wanted)


# --- all -------------------------------------------------------------------------------------------------------------


def _places(names: Sequence[str], form: Form) -> dict[str, int]:
    """Where each column of the stream is. One that a file does not have is NULL in it, but for the event time."""
    lower = [name.lower() for name in names]
    found: dict[str, int] = {}
    for column, (name, *_) in form.paths.items():
        match lower.count(name.lower()):
            case 1:
                found[column] = lower.index(name.lower())
            case n if n > 1:
                raise BadFile(f"it has {n} columns {name}; names do not depend on case")
    if form.time is None and (missing := [name for name in form.schema.names if name not in found]):
        raise BadFile(f"it has no column {', '.join(missing)}; it has {', '.join(names) or 'none'}")
    if form.time is not None and form.time not in found:
        raise BadFile(f"it has no column {form.time}, which is the event time; it has {', '.join(names) or 'none'}")
    return found


def _outputs(form: Form, columns: dict[str, str], found: dict[str, str] | None = None) -> str:
    """`columns` are where the file has them, `found` their types there if they may be others."""

    def output(name: str, type_: str) -> str:
        value = _cast(name, columns, form, found or form.types) if name in columns else f"CAST(NULL AS {type_})"
        return form.output(name, value)

    return ", ".join(output(name, type_) for name, type_ in form.types.items())


def _endless(rows: pa.Table, form: Form) -> pa.ChunkedArray | None:
    """Which rows have an infinite time or date; None if none has. DuckDB knows them, and nobody else does."""
    found = None
    for column in (name for name, type_ in form.types.items() if type_ in TEMPORAL):
        number = pa.int32() if pa.types.is_date32(rows.schema.field(column).type) else pa.int64()
        last = 2 ** (number.bit_width - 1) - 1
        values = rows.column(column).cast(number)
        reach = pc.min_max(values)
        if last in (reach["max"].as_py(), -(reach["min"].as_py() or 0)):
            endless = pc.is_in(values, pa.array([-last, last], number))
            found = endless if found is None else pc.or_(found, endless)
    return found


def _cast(column: str, columns: dict[str, str], form: Form, found: dict[str, str]) -> str:
    value, type_ = columns[column], form.types[column]
    return value if found[column] == type_ or _same(found[column], type_) else f"TRY_CAST({value} AS {type_})"


def _timeless_rows(rows: pa.Table, form: Form) -> int:
    return 0 if form.time is None else rows.column(form.time).null_count


def _timeless(time: str) -> str:
    return f"it has no event time in the column {time}"


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """The content; DuckDB too goes by the name to find out whether a file is compressed."""
    with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
        yield cast(IO[bytes], file)


def _is_empty(path: str) -> bool:
    with open(path, "rb") as file:
        return not file.read(1)


def _struct(types: dict[str, str]) -> str:
    return "{" + ", ".join(f"{sql_text(name)}: {sql_text(type_)}" for name, type_ in types.items()) + "}"


def _literally(path: str) -> str:
    """A path in which nothing stands for other characters."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _first_line(error: object) -> str:
    """What DuckDB says, without the kind of its error and without advice about its own options."""
    text = str(error).strip().splitlines()[0].strip() if str(error).strip() else type(error).__name__
    return text.partition("Error: ")[2] or text


READERS = {"csv": _read_csv, "json": _read_json, "parquet": _read_parquet}
