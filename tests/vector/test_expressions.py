"""Every operation of the language on values at the edges of every type, and random nested ones, as Polars answers them.

The answers are DuckDB's, for a text that shares nothing with the product.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from tests.spark import trees
from tests.spark.answers import (
    BY_HAND,
    LARGEST,
    SMALLEST,
    TYPES,
    by_duckdb,
    database_of_edges,
    describe,
    different,
    outputs,
    table,
)
from tests.spark.trees import Expr

from towpath.arrow import ARROW
from towpath.vector.evaluate import prepared
from towpath.vector.fragments import SlotCompiler

AT_ONCE = 200
NESTED = 2_000 - len(list(trees.every_operation()))


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return prepared(table().rename_columns([f"i0_{name}" for name in TYPES]))


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with database_of_edges() as con:
        yield con


def by_polars(rows: pl.DataFrame, expressions: Sequence[Expr]) -> pa.Table:
    compile_ = SlotCompiler({("i0", name): type_ for name, type_ in TYPES.items()})
    columns = []
    for n, output in enumerate(outputs(expressions)):
        made = pl.col(f"i0_{output.column[1]}") if output.bound is None else compile_(output.bound.expr)
        columns.append(made.alias(f"c{n}"))
    answer = rows.select("i0_row", *columns).to_arrow()
    return pa.table(
        [answer.column(0)] + [c.cast(_type(e)) for c, e in zip(answer.columns[1:], expressions, strict=True)],
        names=answer.column_names,
    )


def _type(e: Expr) -> pa.DataType:
    return {t.value: a for t, a in ARROW.items()}[e.type]


def wrong(rows: pl.DataFrame, con: duckdb.DuckDBPyConnection, expressions: Sequence[Expr]) -> list[str]:
    found = []
    rest = iter(expressions)
    while some := list(islice(rest, AT_ONCE)):
        right, answer = by_duckdb(con, some), by_polars(rows, some)
        for n, e in enumerate(some):
            bad = different(right.column(n + 1), answer.column(n + 1), e.exact)
            if len(bad):
                found.append(describe("Polars", e, n, right, answer, bad))
    return found


def test_extreme_integers_by_hand() -> None:
    for bounds in (SMALLEST, LARGEST):
        row = pl.DataFrame({"i0_row": [0], "i0_i2": [bounds["i2"]], "i0_b2": [bounds["b2"]]})
        cases = [(Expr(type_, sql, ""), answer) for sql, type_, at, answer in BY_HAND if at is bounds]
        (found,) = by_polars(row, [e for e, _ in cases]).drop_columns("i0_row").to_pylist()
        assert list(found.values()) == [answer for _, answer in cases], [e.ours for e, _ in cases]


def test_every_operation_at_the_edges(rows: pl.DataFrame, database: duckdb.DuckDBPyConnection) -> None:
    found = wrong(rows, database, list(trees.every_operation()))
    assert not found, "\n".join(found)


def test_nested_expressions(rows: pl.DataFrame, database: duckdb.DuckDBPyConnection) -> None:
    rng = Random(7)
    found = wrong(rows, database, [trees.random_expression(rng, rng.randint(2, 3)) for _ in range(NESTED)])
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(int(os.environ.get("TOWPATH_EXPRESSIONS", "20000")) // 1000))
def test_many_nested_expressions(rows: pl.DataFrame, database: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = Random(1000 + seed)
    found = wrong(rows, database, [trees.random_expression(rng, rng.randint(2, 5)) for _ in range(1000)])
    assert not found, "\n".join(found)
