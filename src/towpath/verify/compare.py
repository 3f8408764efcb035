"""Are two tables the same multiset of rows? Doubles may differ by what the order of a sum changes."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

TOLERANCE = 1e-9  # relative and absolute
SHOWN = 5
# Two doubles that round to the same multiple of 2**-33 (of their binary exponent, from 1 on) are within TOLERANCE.
CELL_BITS = 33
LOOKUP_BITS = 27  # cells wider than the tolerance: a near value lies in the same or the next one
# Near ties are looked for among the rows that rounding left over; so many pairs mean that the tables simply differ.
MAX_NEAR_PAIRS = 1_000_000


@dataclass(frozen=True)
class Difference:
    """How two tables differ; `missing` rows were expected and did not come, `extra` ones came and were not expected."""

    missing: int
    extra: int
    missing_rows: tuple[str, ...] = ()
    extra_rows: tuple[str, ...] = ()
    columns: str = ""  # set when the columns themselves do not fit, and then nothing was compared

    def __str__(self) -> str:
        if self.columns:
            return self.columns
        lines = [f"{self.missing} rows missing, {self.extra} rows extra"]
        lines += _listed("missing", self.missing, self.missing_rows)
        lines += _listed("extra", self.extra, self.extra_rows)
        return "\n".join(lines)


def _listed(word: str, count: int, rows: tuple[str, ...]) -> list[str]:
    more = [f"  {word}: ... and {count - len(rows)} more"] if count > len(rows) else []
    return [f"  {word}: {row}" for row in rows] + more


def differences(expected: pa.Table, actual: pa.Table) -> Difference | None:
    """None if both hold the same rows, equally often. Columns are compared by position, names do not matter."""
    if expected.num_columns != actual.num_columns:
        message = f"expected {expected.num_columns} columns {expected.column_names}, got {actual.column_names}"
        return Difference(0, 0, columns=message)
    left, right = [], []
    for position in range(expected.num_columns):
        pair = _comparable(expected.column(position), actual.column(position))
        if pair is None:
            name, want, got = (
                expected.column_names[position],
                expected.schema.types[position],
                actual.schema.types[position],
            )
            return Difference(0, 0, columns=f"column {position + 1} ({name}): expected {want}, got {got}")
        left.append(pair[0])
        right.append(pair[1])
    missing, extra = _unmatched(_named(left, expected.num_rows), _named(right, actual.num_rows))
    if not len(missing) and not len(extra):
        return None
    return Difference(len(missing), len(extra), _shown(expected, missing), _shown(actual, extra))


def _named(columns: list[pa.ChunkedArray], rows: int) -> pa.Table:
    """Columns c0, c1.., and the row number, which also keeps the row count of a table without columns."""
    table = pa.table({"row": pa.array(np.arange(rows))})
    for position, column in enumerate(columns):
        table = table.append_column(f"c{position}", column)
    return table


def _comparable(expected: pa.ChunkedArray, actual: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
    """Both columns in one type, or None when a value of one can never be a value of the other."""
    kinds = {_kind(expected.type), _kind(actual.type)} - {pa.null()}
    if kinds == {pa.int64(), pa.float64()}:
        kinds = {pa.float64()}
    if len(kinds) > 1 or None in kinds:
        return None
    kind = kinds.pop() if kinds else pa.null()
    return _cast(expected, kind), _cast(actual, kind)


def _kind(column: pa.DataType) -> pa.DataType | None:
    kinds = (
        (pt.is_null, pa.null()),
        (pt.is_boolean, pa.bool_()),
        (pt.is_integer, pa.int64()),
        (pt.is_floating, pa.float64()),
        (_has_places, column),
        (pt.is_decimal, pa.float64()),
        (pt.is_timestamp, pa.timestamp("us", "UTC")),
        (pt.is_date, pa.date32()),
        (_is_text, pa.string()),
    )
    return next((kind for test, kind in kinds if test(column)), None)


def _has_places(column: pa.DataType) -> bool:
    """Decimals of the language are compared exactly; whole ones are sums of DuckDB's."""
    return bool(pt.is_decimal(column) and column.scale)


def _is_text(column: pa.DataType) -> bool:
    value = column.value_type if pt.is_dictionary(column) else column
    return pt.is_string(value) or pt.is_large_string(value) or pt.is_string_view(value)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column.cast(kind, safe=False)


def _unmatched(expected: pa.Table, actual: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows of either table that have no partner in the other."""
    rounded = _rounded(expected), _rounded(actual)
    if _sorted(rounded[0]).equals(_sorted(rounded[1])):
        return np.array([], "int64"), np.array([], "int64")
    con = duckdb.connect()
    try:
        con.register("expected", rounded[0])
        con.register("actual", rounded[1])
        missing = _without_equal(con, expected, "expected", "actual")
        extra = _without_equal(con, expected, "actual", "expected")
        if not len(missing) or not len(extra) or not _doubles(expected):
            return missing, extra
        return _without_near(con, expected.take(pa.array(missing)), actual.take(pa.array(extra)))
    finally:
        con.close()


def _values(table: pa.Table) -> list[str]:
    return [str(name) for name in table.column_names[1:]]


def _doubles(table: pa.Table) -> list[str]:
    return [name for name in _values(table) if pt.is_float64(table.schema.field(name).type)]


def _sorted(table: pa.Table) -> pa.Table:
    """Values only. Cheap compared with a database, and tables that are equal are the rule."""
    values = _values(table)
    return table.select(values).sort_by([(v, "ascending") for v in values]) if values else table


def _rounded(table: pa.Table) -> pa.Table:
    """Each double replaced by its cell, as bits: so NaN equals NaN everywhere."""
    for name in _doubles(table):
        column = table.column(name)
        values = column.combine_chunks().to_numpy(zero_copy_only=False)
        rounded = pa.array(_cells(values, CELL_BITS), mask=pc.is_null(column).to_numpy())
        table = table.set_column(table.column_names.index(name), name, rounded)
    return table


def _cells(values: np.ndarray, bits: int) -> np.ndarray:
    _, exponent = np.frexp(values)
    shift = bits - np.maximum(exponent, 0)
    with np.errstate(invalid="ignore"):
        cells = np.ldexp(np.rint(np.ldexp(values, shift)), -shift) + 0.0
    return np.where(np.isnan(cells), np.nan, cells).view("int64")


def _without_equal(con: duckdb.DuckDBPyConnection, table: pa.Table, these: str, those: str) -> np.ndarray:
    """The rows of one table left when equal rows of both are cancelled one against one."""
    values = _values(table)
    partition = f"PARTITION BY {', '.join(values)}" if values else ""
    copies = f"(SELECT *, row_number() OVER ({partition}) AS copy FROM {{}})"
    same = " AND ".join(f"a.{v} IS NOT DISTINCT FROM b.{v}" for v in [*values, "copy"])
    left = con.sql(
        f"SELECT row FROM {copies.format(these)} a ANTI JOIN {copies.format(those)} b ON {same} ORDER BY row"
    )
    return left.to_arrow_table().column("row").to_numpy()


def _without_near(
    con: duckdb.DuckDBPyConnection, expected: pa.Table, actual: pa.Table
) -> tuple[np.ndarray, np.ndarray]:
    """Pair off rows whose doubles fell into neighbouring cells although they are within the tolerance."""
    doubles = _doubles(expected)
    con.register("missing", _with_lookup(expected, doubles[0], (-1, 0, 1)))
    con.register("extra", _with_lookup(actual, doubles[0], (0,)))
    same = [f"m.{v} IS NOT DISTINCT FROM e.{v}" for v in ["lookup", *_values(expected)] if v not in doubles]
    near = [_near(f"m.{d}", f"e.{d}") for d in doubles]
    on = " AND ".join(same + near)
    sql = f"SELECT m.row, e.row AS other FROM missing m JOIN extra e ON {on} LIMIT {MAX_NEAR_PAIRS}"
    pairs = con.sql(sql).to_arrow_table()
    met: set[int] = set()
    taken: set[int] = set()
    for row, other in zip(pairs.column("row").to_pylist(), pairs.column("other").to_pylist(), strict=True):
        if row not in met and other not in taken:
            met.add(row)
            taken.add(other)
    return _rows_except(expected, met), _rows_except(actual, taken)


def _near(a: str, b: str) -> str:
    close = f"abs({a} - {b}) <= {TOLERANCE} * greatest(abs({a}), abs({b})) + {TOLERANCE}"
    return f"({a} IS NOT DISTINCT FROM {b} OR (isfinite({a}) AND isfinite({b}) AND {close}))"


def _with_lookup(table: pa.Table, name: str, steps: tuple[int, ...]) -> pa.Table:
    """Each row once per step, with the cell of the value moved by that many tolerances: a hash key for near values."""
    column = table.column(name)
    values = column.combine_chunks().to_numpy(zero_copy_only=False)
    tolerance = np.where(np.isfinite(values), TOLERANCE * np.abs(values) + TOLERANCE, 0.0)
    null = pc.is_null(column).to_numpy()
    moved = [pa.array(_cells(values + step * tolerance, LOOKUP_BITS), mask=null) for step in steps]
    return pa.concat_tables([table.append_column("lookup", cells) for cells in moved])


def _rows_except(table: pa.Table, paired: set[int]) -> np.ndarray:
    rows = table.column("row").to_numpy()
    return rows[~np.isin(rows, list(paired))]


def _shown(table: pa.Table, rows: np.ndarray) -> tuple[str, ...]:
    some = table.take(pa.array(rows[:SHOWN]))
    columns = [
        [f"{name}={_text(v)}" for v in column.to_pylist()]
        for name, column in zip(table.column_names, some.columns, strict=True)
    ]
    return tuple(", ".join(row) for row in zip(*columns, strict=True))


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str | float | int) else str(value)
