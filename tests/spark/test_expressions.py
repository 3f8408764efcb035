"""Every operation of the language on values at the edges of every type, and random nested ones, on real Spark.

The answers are DuckDB's, for a text that shares nothing with the product (trees.py); what `towpath.verify` makes of the
same expressions has to agree too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark import edge_values, trees
from tests.spark.batches import session
from tests.spark.edge_values import COLUMNS
from tests.spark.meanings import prepare
from tests.spark.trees import Expr

from towpath.arrow import ARROW, arrow_schema
from towpath.lang import parse
from towpath.plan.assignment import in_table
from towpath.plan.cut import plan
from towpath.plan.pipeline import Bound, Output
from towpath.schema import Column, Stream, Type
from towpath.spark.carrier import SlotCompiler
from towpath.verify import expected

pytestmark = pytest.mark.spark

AT = "moment"
TYPES = {name: Type(type_) for name, type_ in COLUMNS.items()} | {"row": Type.INT, AT: Type.TIMESTAMP}
CATALOG = {"e": Stream("e", tuple(Column(name, type_) for name, type_ in TYPES.items()), AT)}
AT_ONCE = 200  # expressions in one DataFrame
IN_A_QUERY = 40
NESTED = 2_000 - len(list(trees.every_operation()))


def table() -> pa.Table:
    values = edge_values.rows() | {"row": list(range(edge_values.ROWS)), AT: [0] * edge_values.ROWS}
    return pa.table({name: pa.array(values[name], ARROW[type_]) for name, type_ in TYPES.items()})


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session(tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    made = table()
    named = made.rename_columns([f"i0_{name}" for name in made.column_names])
    return spark.createDataFrame(named).repartition(1).cache()


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
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


def by_spark(spark: SparkSession, rows: DataFrame, expressions: Sequence[Expr]) -> pa.Table:
    """As a carrier calculates them: constants are columns of a table that is joined."""
    made = outputs(expressions)
    bounds = {n: o.bound for n, o in enumerate(made) if o.bound is not None}
    compile_ = SlotCompiler({("i0", name): type_ for name, type_ in TYPES.items()}, "x", {})
    columns = [
        (compile_(n, bounds[n].slot) if n in bounds else rows[f"i0_{o.column[1]}"]).cast(e.type).alias(f"c{n}")
        for n, (o, e) in enumerate(zip(made, expressions, strict=True))
    ]
    return rows.crossJoin(constants(spark, bounds)).select("i0_row", *columns).toArrow().sort_by("i0_row")


def constants(spark: SparkSession, bounds: dict[int, Bound]) -> DataFrame:
    named = {
        f"x{n}_p{k}": (type_, value)
        for n, bound in bounds.items()
        for k, (type_, value) in enumerate(zip(bound.slot.params, in_table(bound), strict=True))
    } | {"nothing": (Type.INT, 0)}
    schema = arrow_schema({name: type_ for name, (type_, _) in named.items()})
    return spark.createDataFrame(pa.Table.from_pylist([{name: value for name, (_, value) in named.items()}], schema))


def by_duckdb(con: duckdb.DuckDBPyConnection, expressions: Sequence[Expr]) -> pa.Table:
    items = ", ".join(f"CAST({e.duck} AS {edge_values.DUCK[e.type]}) AS c{n}" for n, e in enumerate(expressions))
    return con.sql(f"SELECT row, {items} FROM e ORDER BY row").to_arrow_table()


def by_oracle(con: duckdb.DuckDBPyConnection, expressions: Sequence[Expr]) -> pa.Table:
    return expected(con, parse(sql_of(expressions), CATALOG), CATALOG).sort_by("row")


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


def wrong(
    spark: SparkSession, rows: DataFrame, con: duckdb.DuckDBPyConnection, expressions: Sequence[Expr]
) -> list[str]:
    found = []
    rest = iter(expressions)
    while some := list(islice(rest, AT_ONCE)):
        right = by_duckdb(con, some)
        for who, answer in (("Spark", by_spark(spark, rows, some)), ("the oracle", by_oracle(con, some))):
            for n, e in enumerate(some):
                bad = different(right.column(n + 1), answer.column(n + 1), e.exact)
                if len(bad):
                    found.append(describe(who, e, n, right, answer, bad))
    return found


def describe(who: str, e: Expr, n: int, right: pa.Table, answer: pa.Table, bad: np.ndarray) -> str:
    row = int(bad[0])
    values = {name: v for name, v in ((c, edge_values.rows()[c][row]) for c in COLUMNS) if name in e.ours}
    shown = f"{who}: {e.ours} with {values}"
    return f"{shown}: expected {right.column(n + 1)[row]}, got {answer.column(n + 1)[row]} ({len(bad)} rows)"


def test_every_operation_at_the_edges(
    spark: SparkSession, rows: DataFrame, database: duckdb.DuckDBPyConnection
) -> None:
    found = wrong(spark, rows, database, list(trees.every_operation()))
    assert not found, "\n".join(found)


def test_nested_expressions(spark: SparkSession, rows: DataFrame, database: duckdb.DuckDBPyConnection) -> None:
    rng = Random(7)
    found = wrong(spark, rows, database, [trees.random_expression(rng, rng.randint(2, 3)) for _ in range(NESTED)])
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_EXPRESSIONS", "20000")) // 1000))
def test_many_nested_expressions(
    spark: SparkSession, rows: DataFrame, database: duckdb.DuckDBPyConnection, seed: int
) -> None:
    rng = Random(1000 + seed)
    found = wrong(spark, rows, database, [trees.random_expression(rng, rng.randint(2, 5)) for _ in range(1000)])
    assert not found, "\n".join(found)
