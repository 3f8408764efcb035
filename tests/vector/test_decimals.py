"""Decimals in universal carriers and in the engine that answers are checked against, without Spark."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from random import Random

import duckdb
import pytest
from tests.decimal_cases import AGGREGATES, CASES, KNOWN, shown, table
from tests.vector.running import answer, as_input, filtered, fragment, pipelines, windowed

from towpath.arrow import as_decimals
from towpath.lang import parse
from towpath.lang.query import Query
from towpath.verify import expected


def scales(query: Query) -> list[int | None]:
    return [c.scale for c in query.columns]


@pytest.mark.parametrize(("expression", "values"), CASES)
def test_expressions(expression: str, values: list[str | None]) -> None:
    query, (pipeline,) = pipelines(f"SELECT n, {expression} AS v FROM s", KNOWN)
    log = filtered([fragment(1, pipeline)], [as_input(table(), KNOWN["s"])])
    rows = as_decimals(answer(log, 1, pipeline), scales(query)).to_pylist()
    assert [shown(row["c1"]) for row in sorted(rows, key=lambda row: row["c0"])] == values


@pytest.mark.parametrize(("expression", "values"), CASES)
def test_expressions_in_the_oracle(expression: str, values: list[str | None]) -> None:
    with duckdb.connect() as con:
        con.register("s", table())
        rows = expected(con, parse(f"SELECT n, {expression} AS v FROM s", KNOWN), KNOWN).to_pylist()
    assert [shown(row["v"]) for row in sorted(rows, key=lambda row: row["n"])] == values


@pytest.mark.parametrize(("expression", "value"), AGGREGATES)
def test_aggregates(expression: str, value: str) -> None:
    sql = f"SELECT {expression} AS v FROM s [RANGE 1 MINUTE]"
    with duckdb.connect() as con:
        con.register("s", table())
        assert [shown(v) for v in expected(con, parse(sql, KNOWN), KNOWN)["v"].to_pylist()] == [value]
    if "DISTINCT" not in expression:  # compiled carriers alone have that
        query, (pipeline,) = pipelines(sql, KNOWN)
        log = windowed([fragment(1, pipeline)], [as_input(table(), KNOWN["s"])])
        assert [shown(v) for v in as_decimals(answer(log, 1, pipeline), scales(query))["c0"].to_pylist()] == [value]


@pytest.mark.parametrize("seed", range(5))
def test_arithmetic_is_that_of_decimals_on_paper(seed: int) -> None:
    """Of Python's decimals, with more digits than any number here has."""
    rng = Random(seed)

    def number(digits: int, places: int) -> Decimal:
        return Decimal(rng.randint(-(10 ** rng.randint(0, digits)), 10 ** rng.randint(0, digits))).scaleb(-places)

    with localcontext(Context(prec=60)), duckdb.connect() as con:
        con.register("s", table().slice(0, 1))
        for _ in range(40):
            a, b, places = number(8, 2), number(8, 4), rng.randint(0, 3)
            texts = [f"DECIMAL '{a:f}'", f"DECIMAL '{b:f}'"]
            rounded = (a * b).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
            sql = f"SELECT {texts[0]} + {texts[1]} AS a, {texts[0]} - {texts[1]} AS b, {texts[0]} * {texts[1]} AS c, "
            sql += f"round({texts[0]} * {texts[1]}, {places}) AS d, CAST('{a * b:f}' AS DECIMAL(18, {places})) AS e, "
            sql += f"{texts[0]} < {texts[1]} AS f FROM s"
            query, (pipeline,) = pipelines(sql, KNOWN)
            log = filtered([fragment(1, pipeline)], [as_input(table().slice(0, 1), KNOWN["s"])])
            (row,) = as_decimals(answer(log, 1, pipeline), scales(query)).to_pylist()
            on_paper = [a + b, a - b, a * b, rounded, rounded, a < b]
            assert list(row.values()) == on_paper
            (of_duckdb,) = expected(con, query, KNOWN).to_pylist()
            assert list(of_duckdb.values()) == on_paper
