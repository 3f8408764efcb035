"""Expressions over a table of edge values: as queries of ours, as DuckDB answers them, and the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tests.spark import edge_values
from tests.spark.edge_values import COLUMNS
from tests.spark.meanings import prepare
from tests.spark.trees import Expr

from towpath.arrow import ARROW
from towpath.lang import parse
from towpath.plan.cut import plan
from towpath.plan.pipeline import Output
from towpath.schema import Column, Stream, Type

AT = "moment"
TYPES = {name: Type(type_) for name, type_ in COLUMNS.items()} | {"row": Type.INT, AT: Type.TIMESTAMP}
CATALOG = {"e": Stream("e", tuple(Column(name, type_) for name, type_ in TYPES.items()), AT)}
IN_A_QUERY = 40

# Once wrong, with the answer by hand: integers stay of their type whatever constant stands beside them, and Spark does
# not put sums into another order.
SMALLEST = {"i2": -(2**31), "b2": -(2**63)}
LARGEST = {"i2": 2**31 - 1, "b2": 2**63 - 1}
BY_HAND = [
    ("abs(CASE WHEN i2 = 3 THEN 7 ELSE i2 END)", "int", SMALLEST, None),
    ("abs(coalesce(i2, 7))", "int", SMALLEST, None),
    ("abs(least(i2, (7)))", "int", SMALLEST, None),
    ("abs(nullif(i2, 7))", "int", SMALLEST, None),
    ("abs(least(i2, round(1, 15), abs(-1)))", "int", SMALLEST, None),
    ("abs(if(i2 = 3, -1, i2))", "int", SMALLEST, None),
    ("abs(least(i2, 3000000000))", "bigint", SMALLEST, 2**31),
    ("b2 + abs(0)", "bigint", SMALLEST, -(2**63)),
    ("-1 + abs(b2)", "bigint", LARGEST, 2**63 - 2),
    ("i2 + b2 + (1 - i2)", "bigint", LARGEST, None),
    ("b2 + (i2 + (-1 - i2))", "bigint", LARGEST, 2**63 - 2),
    *(
        (f"CAST({expression} AS string)", "string", LARGEST, answer)
        for expression, answer in (
            ("TIMESTAMP '2024-02-29 12:00:00' + INTERVAL '1' YEAR", "2025-02-28 12:00:00"),
            ("TIMESTAMP '2024-03-31 00:00:00' - INTERVAL '1' MONTH", "2024-02-29 00:00:00"),
            ("DATE '2023-12-31' + INTERVAL '2' MONTH", "2024-02-29"),
            ("DATE '9999-12-31' + INTERVAL '1' DAY", None),
            ("TIMESTAMP '9999-12-31 23:59:59.999999' + INTERVAL '1' MICROSECOND", None),
            ("TIMESTAMP '0001-01-01 00:00:00' - INTERVAL '1' MONTH", None),
            ("timestampadd(SECOND, b2, TIMESTAMP '2024-01-01')", None),
            ("timestampadd(MICROSECOND, -1, TIMESTAMP '1970-01-01')", "1969-12-31 23:59:59.999999"),
            ("date_trunc('week', TIMESTAMP '2024-03-03 23:59:59')", "2024-02-26 00:00:00"),
            ("date_trunc('quarter', DATE '2024-02-29')", "2024-01-01 00:00:00"),
            ("date_trunc('hour', TIMESTAMP '1969-12-31 23:59:59.5')", "1969-12-31 23:00:00"),
            ("timestampdiff(SECOND, TIMESTAMP '1970-01-01 00:00:01.5', TIMESTAMP '1970-01-01')", "-1"),
            ("timestampdiff(DAY, DATE '2024-02-28', TIMESTAMP '2024-03-01 23:59:59')", "2"),
            ("unix_seconds(TIMESTAMP '1969-12-31 23:59:59.5')", "-1"),
            ("unix_millis(TIMESTAMP '2024-02-29 00:00:00.0019')", "1709164800001"),
            ("timestamp_seconds(1709164800)", "2024-02-29 00:00:00"),
            ("extract(doy FROM DATE '2024-12-31')", "366"),
            (
                "strftime(TIMESTAMP '0001-02-03 00:04:05.0067', '%Y-%m-%d %H:%M:%S.%f %g')",
                "0001-02-03 00:04:05.006700 006",
            ),
            (
                "date_format(TIMESTAMP '2024-02-29 12:00:00', 'EEEE d MMMM yyyy, h a')",
                "Thursday 29 February 2024, 12 PM",
            ),
            ("to_char(DATE '2024-12-31', 'YYYY-MM-DD DDD HH12 AM')", "2024-12-31 366 12 AM"),
            ("strftime(DATE '2024-12-31', '%m%m%Y')", "12122024"),
        )
    ),
]


def table() -> pa.Table:
    values = edge_values.rows() | {"row": list(range(edge_values.ROWS)), AT: [0] * edge_values.ROWS}
    return pa.table({name: pa.array(values[name], ARROW[type_]) for name, type_ in TYPES.items()})


@contextmanager
def database_of_edges() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        prepare(con)
        con.register("e_arrow", table())
        times = ", ".join(
            f"make_timestamp(epoch_us({name})) AS {name}" for name, t in TYPES.items() if t is Type.TIMESTAMP
        )
        con.execute(f"CREATE TABLE e AS SELECT * REPLACE ({times}) FROM e_arrow ORDER BY row")
        yield con


def sql_of(expressions: Sequence[Expr]) -> str:
    return f"SELECT row, {', '.join(f'{e.ours} AS c{n}' for n, e in enumerate(expressions))} FROM e"


def outputs(expressions: Sequence[Expr]) -> list[Output]:
    """As the planner sees them."""
    found: list[Output] = []
    rest = iter(expressions)
    while some := list(islice(rest, IN_A_QUERY)):
        (pipeline,) = plan(parse(sql_of(some), CATALOG), CATALOG).pipelines
        found += pipeline.outputs[1:]
    return found


def by_duckdb(con: duckdb.DuckDBPyConnection, expressions: Sequence[Expr]) -> pa.Table:
    items = ", ".join(f"CAST({e.duck} AS {edge_values.DUCK[e.type]}) AS c{n}" for n, e in enumerate(expressions))
    return con.sql(f"SELECT row, {items} FROM e ORDER BY row").to_arrow_table()


def different(one: pa.ChunkedArray, other: pa.ChunkedArray, exact: bool) -> np.ndarray:
    """The rows in which two columns differ."""
    one, other = (_plain(column) for column in (one, other))
    if pa.types.is_floating(one.type):
        a, b = (c.to_numpy(zero_copy_only=False) for c in (one, other))
        with np.errstate(invalid="ignore"):
            near = a == b if exact else np.isclose(a, b, rtol=1e-12, atol=0)
        same = near | (np.isnan(a) & np.isnan(b))
    else:
        same = pc.fill_null(pc.equal(one, other), True).to_numpy(zero_copy_only=False)
    nulls = [c.is_null().to_numpy(zero_copy_only=False) for c in (one, other)]
    return np.flatnonzero((nulls[0] != nulls[1]) | (~nulls[0] & ~same))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    plain = column.combine_chunks()
    if pa.types.is_timestamp(plain.type):
        return plain.cast(pa.timestamp("us")).cast(pa.int64())
    return plain.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(plain.type) else plain


def describe(who: str, e: Expr, n: int, right: pa.Table, answer: pa.Table, bad: np.ndarray) -> str:
    row = int(bad[0])
    values = {name: v for name, v in ((c, edge_values.rows()[c][row]) for c in COLUMNS) if name in e.ours}
    shown = f"{who}: {e.ours} with {values}"
    return f"{shown}: expected {right.column(n + 1)[row]}, got {answer.column(n + 1)[row]} ({len(bad)} rows)"
