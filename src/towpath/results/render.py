"""Results as a table, JSON lines, CSV or Parquet: all at once, or as they come."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from towpath.errors import TowpathError
from towpath.schema import COMPUTED_DIGITS

FORMATS = ("table", "json", "csv", "parquet")
NULL = "NULL"
UNLIMITED = 10_000  # characters: a table that goes to a file or a pipe is never folded


def render(
    tables: pa.Table | Iterable[pa.Table], format: str, *, out: Path | None = None, stream: TextIO | None = None
) -> int:
    """Write tables of one schema to the file `out`, or to `stream` (standard output) as they come, and count the rows.

    A reader that has seen enough (`| head`) ends it quietly.
    """
    _check(format, out)
    tables = (tables,) if isinstance(tables, pa.Table) else tables
    if out:
        try:
            return _to_file(tables, format, out)
        except OSError as error:
            raise TowpathError(f"{out} cannot be written: {error.strerror or error}") from error
    stream = stream or sys.stdout
    try:
        return _text(tables, format, stream)
    except BrokenPipeError:
        _silence(stream)
        return 0


def _to_file(tables: Iterable[pa.Table], format: str, out: Path) -> int:
    if format == "parquet":
        return _parquet(tables, out)
    with out.open("w", encoding="utf-8", newline="") as file:
        return _text(tables, format, file)


def _check(format: str, out: Path | None) -> None:
    if format not in FORMATS:
        raise TowpathError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
    if format == "parquet" and out is None:
        raise TowpathError("format parquet: expected a file to write to, got none\n    -> name one with --out FILE")


def _text(tables: Iterable[pa.Table], format: str, stream: TextIO) -> int:
    write = _WRITERS[format](stream)
    rows = 0
    for table in tables:
        write(table)
        stream.flush()
        rows += table.num_rows
    return rows


def json_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The values of each row, as JSON has them."""
    for batch in table.to_batches(max_chunksize=10_000):
        yield from zip(*(_json_values(column) for column in batch.columns), strict=True)


def json_texts(table: pa.Table) -> Iterator[str]:
    """One JSON object per row."""
    for row in json_rows(table):
        yield json.dumps(dict(zip(table.column_names, row, strict=True)), ensure_ascii=False, default=_json_value)


def _json_value(value: object) -> object:
    """What only a calculation over results gives: decimals, stretches of time, bytes."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def _json(stream: TextIO) -> Callable[[pa.Table], None]:
    return lambda table: stream.writelines(f"{text}\n" for text in json_texts(table))


def _csv(stream: TextIO) -> Callable[[pa.Table], None]:
    header = True

    def write(table: pa.Table) -> None:
        nonlocal header
        text = pa.table([_flat(_readable(column)) for column in table.columns], names=table.column_names)
        buffer = pa.BufferOutputStream()
        pa_csv.write_csv(text, buffer, pa_csv.WriteOptions(include_header=header))
        stream.write(buffer.getvalue().to_pybytes().decode())
        header = False

    return write


def _table(stream: TextIO) -> Callable[[pa.Table], None]:
    width = None if stream.isatty() else UNLIMITED
    console = Console(file=stream, width=width, markup=False, emoji=False, highlight=False)
    widths: list[int] = []

    def write(table: pa.Table) -> None:
        nonlocal widths
        texts = [cells(column) for column in table.columns]
        header = not widths
        # What comes later continues the columns of what was printed before, and only ever widens them.
        widths = [
            max(len(name), before, *map(len, column), 0)
            for name, before, column in zip(table.column_names, widths or [0] * len(texts), texts, strict=True)
        ]
        grid = Table(show_header=header, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for field, least in zip(table.schema, widths, strict=True):
            grid.add_column(field.name, justify="right" if is_number(field.type) else "left", min_width=least)
        for row in zip(*texts, strict=True):
            grid.add_row(*row)
        if header or table.num_rows:
            with console.capture() as captured:  # rich itself would end the process when the pipe is closed
                console.print(grid)
            stream.write(captured.get())

    return write


_WRITERS = {"json": _json, "csv": _csv, "table": _table}


def _parquet(tables: Iterable[pa.Table], out: Path) -> int:
    """A table without rows may lack its types, so the first one with rows decides on them."""
    writer: pq.ParquetWriter | None = None
    rows = 0
    try:
        for table in tables:
            if table.num_rows:
                writer = writer or pq.ParquetWriter(out, table.schema)
                writer.write_table(table)
                rows += table.num_rows
            elif writer is None:
                pq.write_table(table, out)
    finally:
        if writer:
            writer.close()
    return rows


def _readable(column: pa.Array) -> pa.Array:
    """Times as ISO-8601 in UTC, decimals with all places; what else can be written as it is stays."""
    if pa.types.is_timestamp(column.type):
        return pc.strftime(column.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%SZ")
    if pa.types.is_date(column.type):
        return column.cast(pa.string())
    if _is_of_a_query(column.type):  # Arrow writes 1E-10
        return pa.array([None if value is None else f"{value:f}" for value in column.to_pylist()], pa.string())
    return column


def _is_of_a_query(type: pa.DataType) -> bool:
    """A decimal of the language, and not what a calculation over results gives."""
    return bool(pa.types.is_decimal(type) and type.precision == COMPUTED_DIGITS)


def _flat(column: pa.Array) -> pa.Array:
    """What CSV has no form for, as JSON."""
    if pa.types.is_nested(column.type):
        texts = (None if v is None else json.dumps(v, default=_json_value) for v in column.to_pylist())
        return pa.array(texts, pa.string())
    return pa.array(map(_text_of, column.to_pylist()), pa.string()) if _has_no_csv(column.type) else column


def _has_no_csv(type: pa.DataType) -> bool:
    return bool(pa.types.is_duration(type) or pa.types.is_interval(type))


def _text_of(value: object) -> str | None:
    return None if value is None else str(value)


def _json_values(column: pa.Array) -> list[Any]:
    values = _readable(column).to_pylist()
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
        # JSON has no such numbers; these are the words Spark uses.
        words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        return [words.get(str(value), value) for value in values]
    return values


def cells(column: pa.ChunkedArray) -> list[str]:
    """The values of a column as people read them."""
    return [NULL if value is None else str(value) for value in _readable(column).to_pylist()]


def is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def _silence(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, or Python complains about the closed pipe when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
