"""Parts of a problem in tables beside its file (.parquet or .csv), for problems too big to write by hand.

A column that is not required may be left out, and so may single values; then the default holds. Numbers in columns of
durations, bytes and bandwidths are seconds, bytes and bytes per second; texts have a unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from pydantic_core import PydanticCustomError

from towpath.config.settings import listed, meant, refusal, shown
from towpath.errors import Mistake
from towpath.placement.problem import OperatorKind
from towpath.problems import units

MOST_MISTAKES = 10  # mistakes of one column; a wrong column would fill the screen
KINDS = (".parquet", ".csv")
PROPERTY = "properties."  # a column of nodes with this prefix is a property of theirs

Convert = Callable[[object], Any]


def _text(value: object) -> str:
    return str(value)


def _number(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise refusal(f"expected a number, got {shown(value)}")
    return number


def _whole(value: object) -> int:
    number = _number(value)
    if number != int(number):
        raise refusal(f"expected a whole number, got {shown(value)}")
    return int(number)


def _kind(value: object) -> str:
    if value not in get_args(OperatorKind):
        raise refusal(f"{shown(value)} is not a known kind", meant(str(value), get_args(OperatorKind)))
    return str(value)


def _names(value: object) -> tuple[str, ...]:
    names = tuple(str(value).split()) if isinstance(value, str) else tuple(map(str, value))  # type: ignore[call-overload]
    if not names:
        raise refusal("expected names with spaces between them, got nothing")
    return names


@dataclass(frozen=True)
class TableColumn:
    name: str
    convert: Convert = _text
    default: Any = None
    required: bool = False
    least: float = 0.0
    above: bool = False  # more than `least`, not only as much

    @property
    def numeric(self) -> bool:
        return self.convert not in (_text, _names, _kind)


NODES = (
    TableColumn("name", required=True),
    TableColumn("cpu", _number, 1.0),
    TableColumn("memory", units.size, math.inf, above=True),
    TableColumn("bandwidth_in", units.bandwidth, math.inf, above=True),
    TableColumn("bandwidth_out", units.bandwidth, math.inf, above=True),
    TableColumn("transfer_cost", units.seconds, 0.0),
)
LINKS = (
    TableColumn("from", required=True),
    TableColumn("to", required=True),
    TableColumn("latency", units.seconds, 0.0),
    TableColumn("bandwidth", units.bandwidth, math.inf, above=True),
)
STREAMS = (
    TableColumn("name", required=True),
    TableColumn("node", required=True),
    TableColumn("rate", _number, required=True),
    TableColumn("tuple_bytes", units.size, 100.0, above=True),
)
QUERIES = (TableColumn("name", required=True), TableColumn("sink"), TableColumn("copies", _whole, 1, least=1))
FRAGMENTS = (
    TableColumn("fragment", required=True),
    TableColumn("query", required=True),
    TableColumn("native"),
    TableColumn("operator", required=True),
    TableColumn("inputs", _names, required=True),
    TableColumn("kind", _kind, "filter"),
    TableColumn("cost", units.seconds, 0.0),
    TableColumn("selectivity", _number, 1.0),
    TableColumn("state_bytes", units.size, 0.0),
    TableColumn("tuple_bytes", units.size, 100.0, above=True),
    TableColumn("signature"),
)
PLACES = (TableColumn("fragment", required=True), TableColumn("node", required=True))


@dataclass
class ProblemTable:
    """Its rows as columns of values, and what is wrong with them."""

    name: str
    columns: list[list[Any]] = field(default_factory=list)
    properties: dict[str, list[Any]] = field(default_factory=dict)
    problems: list[Mistake] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.columns, strict=True)

    def where(self, row: int, column: str = "") -> str:
        return f"{self.name}, row {row + 1}" + (f", {column}" if column else "")


def read(path: Path, expected: Sequence[TableColumn]) -> ProblemTable:
    table = ProblemTable(path.name)
    found = _found(path, expected, table)
    if found is None:
        return table
    known = {column.name for column in expected}
    for name in found.column_names:
        if name.startswith(PROPERTY) and expected is NODES:
            table.properties[name.removeprefix(PROPERTY)] = found[name].to_pylist()
        elif name not in known:
            table.problems.append(Mistake(f"{path.name}, {name}", "is not a known column", meant(name, sorted(known))))
    for column in expected:
        if column.name in found.column_names:
            table.columns.append(_values(found[column.name], column, table))
        elif column.required:
            required = listed(c.name for c in expected if c.required)
            table.problems.append(Mistake(f"{path.name}, {column.name}", "is missing", f"it needs columns {required}"))
        else:
            table.columns.append([column.default] * found.num_rows)
    if table.problems:
        table.columns = [[] for _ in expected]
    return table


def _found(path: Path, expected: Sequence[TableColumn], table: ProblemTable) -> pa.Table | None:
    try:
        if path.suffix == ".parquet":
            return pa.parquet.read_table(path)
        texts = {column.name: pa.string() for column in expected if not column.numeric}
        options = pa.csv.ConvertOptions(column_types=texts, strings_can_be_null=True, null_values=[""])
        return pa.csv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowException) as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else str(error).splitlines()[0]
        hint = f"a table is a {' or '.join(KINDS)} file beside the problem file"
        table.problems.append(Mistake(path.name, f"cannot be read: {reason}", hint))
        table.columns = [[] for _ in expected]
        return None


def _values(data: pa.ChunkedArray, column: TableColumn, table: ProblemTable) -> list[Any]:
    given = data.to_pylist()
    mistakes: list[Mistake] = []
    if column.numeric and (
        pa.types.is_integer(data.type) or (pa.types.is_floating(data.type) and column.convert is not _whole)
    ):
        values, wrong = given, _out_of_range(data, column)
        mistakes += (_range_problem(table, row, column, given[row]) for row in wrong)
    elif (at_once := _texts(data, given, column)) is not None:
        values = at_once
    else:
        values, mistakes = _converted(given, column, table)
    if data.null_count:
        if column.required:
            rows = (row for row, value in enumerate(given) if value is None)
            mistakes += (Mistake(table.where(row, column.name), "is missing") for row in rows)
        values = [column.default if value is None else value for value in values]
    table.problems += _some(mistakes, table.name, column.name)
    return values


def _texts(data: pa.ChunkedArray, given: list[Any], column: TableColumn) -> list[Any] | None:
    """The values of a column of texts that can be taken as a whole; None if each has to be looked at."""
    if pa.types.is_null(data.type):
        return given
    if not pa.types.is_string(data.type):
        return None
    if column.convert is _text:
        return given
    if column.convert is _kind and {*pa.compute.unique(data).to_pylist()} <= {*get_args(OperatorKind), None}:
        return given
    if column.convert is _names and not data.null_count:
        names = list(map(tuple, map(str.split, given)))
        return names if all(names) else None
    return None


def _out_of_range(values: pa.ChunkedArray, column: TableColumn) -> Iterable[int]:
    numbers = pa.compute.fill_null(values.cast(pa.float64(), safe=False), column.least + 1).to_numpy()
    low = numbers <= column.least if column.above else numbers < column.least
    return (int(row) for row in np.flatnonzero(low | np.isnan(numbers)))


def _range_problem(table: ProblemTable, row: int, column: TableColumn, value: object) -> Mistake:
    limit = "more than" if column.above else "at least"
    return Mistake(table.where(row, column.name), f"expected {limit} {column.least:g}, got {shown(value)}")


def _converted(given: list[Any], column: TableColumn, table: ProblemTable) -> tuple[list[Any], list[Mistake]]:
    values: list[Any] = []
    mistakes: dict[int, Mistake] = {}
    for row, text in enumerate(given):
        value = None
        if text is not None:
            try:
                value = column.convert(text)
            except PydanticCustomError as error:
                said = error.context or {}
                mistakes[row] = Mistake(table.where(row, column.name), said["message"], said["hint"])
        values.append(value)
    if column.numeric:
        wrong = _out_of_range(pa.chunked_array([pa.array(values, pa.float64())]), column)
        mistakes |= {row: _range_problem(table, row, column, given[row]) for row in wrong}
    return values, [mistakes[row] for row in sorted(mistakes)]


def _some(mistakes: list[Mistake], table: str, column: str) -> list[Mistake]:
    more = len(mistakes) - MOST_MISTAKES
    if more <= 0:
        return mistakes
    return [*mistakes[:MOST_MISTAKES], Mistake(f"{table}, {column}", f"and {more:,} more rows like these")]
