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
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark import trees
from tests.spark.answers import (
    BY_HAND,
    CATALOG,
    LARGEST,
    SMALLEST,
    TYPES,
    by_duckdb,
    database_of_edges,
    describe,
    different,
    outputs,
    sql_of,
    table,
)
from tests.spark.batches import session
from tests.spark.trees import Expr

from towpath.arrow import arrow_schema
from towpath.lang import parse
from towpath.plan.assignment import in_table
from towpath.plan.pipeline import Bound
from towpath.schema import Type
from towpath.spark.carrier import TemplateCompiler
from towpath.verify import expected

pytestmark = pytest.mark.spark

AT_ONCE = 200  # expressions in one DataFrame
NESTED = 2_000 - len(list(trees.every_operation()))


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
    with database_of_edges() as con:
        yield con


def by_spark(spark: SparkSession, rows: DataFrame, expressions: Sequence[Expr]) -> pa.Table:
    """As a carrier calculates them: constants are columns of a table that is joined."""
    made = outputs(expressions)
    bounds = {n: o.bound for n, o in enumerate(made) if o.bound is not None}
    compile_ = TemplateCompiler({("i0", name): type_ for name, type_ in TYPES.items()}, "x", {})
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


def by_oracle(con: duckdb.DuckDBPyConnection, expressions: Sequence[Expr]) -> pa.Table:
    return expected(con, parse(sql_of(expressions), CATALOG), CATALOG).sort_by("row")


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


def test_extreme_integers_by_hand(spark: SparkSession) -> None:
    for bounds in (SMALLEST, LARGEST):
        row = spark.createDataFrame([(0, bounds["i2"], bounds["b2"])], "i0_row int, i0_i2 int, i0_b2 bigint")
        cases = [(Expr(type_, sql, ""), answer) for sql, type_, at, answer in BY_HAND if at is bounds]
        (found,) = by_spark(spark, row, [e for e, _ in cases]).drop_columns("i0_row").to_pylist()
        assert list(found.values()) == [answer for _, answer in cases], [e.ours for e, _ in cases]


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
