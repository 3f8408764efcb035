"""Aggregates of values at the edges of their types, whatever the order in which they are added."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from random import Random

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.batches import answers, session
from tests.spark.test_sharing import KINDS

from towpath.arrow import ARROW
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.schema import Column, Stream, Type
from towpath.verify import differences, expected

pytestmark = pytest.mark.spark

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
INF, NAN = math.inf, math.nan
TYPES = {"g": Type.STRING, "i": Type.INT, "b": Type.BIGINT, "d": Type.DOUBLE, "s": Type.STRING, "at": Type.TIMESTAMP}
CATALOG = {"e": Stream("e", tuple(Column(name, type_) for name, type_ in TYPES.items()), "at")}
WINDOW = "FROM e [RANGE 1 MINUTE] GROUP BY g"


def table(groups: dict[str, Sequence[tuple]], rng: Random) -> pa.Table:
    """Rows (i, b, d, s) of each group, in any order."""
    rows = [(group, *row, 0) for group, values in groups.items() for row in values]
    rng.shuffle(rows)
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(v, ARROW[t]) for (name, t), v in zip(TYPES.items(), columns, strict=True)})


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session(tmp_path_factory.mktemp("spark"))


def bigints(*values: int | None) -> list[tuple]:
    return [(None, value, None, None) for value in values]


def doubles(*values: float | None) -> list[tuple]:
    return [(None, None, value, None) for value in values]


SUMS = {
    # The sum and the average, by hand.
    "the largest": (bigints(LARGEST), LARGEST, float(LARGEST)),
    "one more than the largest": (bigints(LARGEST, 1), None, 2.0**62),
    "there and back": (bigints(LARGEST, LARGEST, -LARGEST, -LARGEST, 4, 6), 10, 10 / 6),
    "the smallest": (bigints(SMALLEST, 1, -1), SMALLEST, SMALLEST / 3),
    "one less than the smallest": (bigints(SMALLEST, -1), None, -(2.0**62)),
    "far below": (bigints(*[SMALLEST] * 5), None, -(2.0**63)),
    "negative": (bigints(-1, -2, -4), -7, -7 / 3),
    "nothing": (bigints(None, None), None, None),
}


def test_sums_of_integers_are_exact_or_null(spark: SparkSession) -> None:
    tables = {"e": table({group: rows for group, (rows, _, _) in SUMS.items()}, Random(1))}
    sql = f"SELECT g, sum(b) AS total, avg(b) AS mean {WINDOW}"
    (answer,) = answers(spark, [sql], CATALOG, tables)
    assert {row["g"]: (row["total"], row["mean"]) for row in answer.to_pylist()} == {
        group: (total, mean) for group, (_, total, mean) in SUMS.items()
    }


DEVIATIONS = {
    "two": (doubles(1.0, 3.0), math.sqrt(2)),
    "one": (doubles(1.0, None), None),
    "not a number": (doubles(1.0, NAN), NAN),
    "infinite": (doubles(1.0, INF), NAN),
    "beyond squares": (doubles(1e200, -1e200), NAN),
    "far": (doubles(1e100, 3e100), math.sqrt(2) * 1e100),
}


def test_deviations_of_what_has_no_square(spark: SparkSession) -> None:
    tables = {"e": table({group: rows for group, (rows, _) in DEVIATIONS.items()}, Random(1))}
    (answer,) = answers(spark, [f"SELECT g, stddev(d) AS spread {WINDOW}"], CATALOG, tables)
    found = {row["g"]: row["spread"] for row in answer.to_pylist()}
    for group, (_, wanted) in DEVIATIONS.items():
        assert found[group] == (wanted if wanted is None else pytest.approx(wanted, nan_ok=True)), group


def test_doubles_that_are_equal_are_one_group(spark: SparkSession) -> None:
    rows = {"x": doubles(0.0, -0.0, NAN, NAN, INF, None)}
    queries = [
        "SELECT d, count(*) AS n FROM e [RANGE 1 MINUTE] GROUP BY d",
        f"SELECT min(d) AS low, max(d) AS high, count(DISTINCT d) AS n {WINDOW}",
        "SELECT CAST(d AS STRING) AS t, power(d, -1) AS p, count(*) AS n FROM e [RANGE 1 MINUTE] GROUP BY d",
        "SELECT a.d FROM e [RANGE 1 SECOND] a, e [RANGE 1 SECOND] b WHERE a.d = b.d",
    ]
    groups, extremes, made, joined = answers(spark, queries, CATALOG, {"e": table(rows, Random(1))})
    assert {(repr(row["d"]), row["n"]) for row in groups.to_pylist()} == {
        ("0.0", 2),
        ("nan", 2),
        ("inf", 1),
        ("None", 1),
    }
    (row,) = extremes.to_pylist()
    assert (row["low"], math.isnan(row["high"]), row["n"]) == (0.0, True, 3)
    assert {(r["t"], repr(r["p"]), r["n"]) for r in made.to_pylist()} == {
        ("0.0", "inf", 2),
        ("NaN", "nan", 2),
        ("Infinity", "0.0", 1),
        (None, "None", 1),
    }
    assert sorted(repr(d + 0.0) for d in joined["d"].to_pylist()) == ["0.0"] * 4 + ["inf"] + ["nan"] * 4


OF_ORDER = {
    # By hand; seconds, ch, x.
    "first(ch)": [("a",), ("a",)],
    "last(ch)": [("c",), ("b",)],
    # Two tuples are at second 2: of the last, the greater one.
    "last(x) FILTER (WHERE second(at) = 2)": [(9.0,), (None,)],
    "first(x) FILTER (WHERE second(at) = 2)": [(7.0,), (None,)],
    # The greatest x is that of two; of x there is none at second 4.
    "max_by(ch, x)": [("b",), ("a",)],
    "max_by(second(at), x)": [(3,), (11,)],
    "min_by(ch, x)": [("a",), ("b",)],
    "min_by(x, ch)": [(5.0,), (NAN,)],
    "max_by(x, ch)": [(None,), (1.0,)],
    # 5, 7, 9, 9; and 1, NaN, between which nothing is.
    "median(x)": [(8.0,), (NAN,)],
    "quantile_cont(x, 0.25)": [(6.5,), (NAN,)],
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC)": [(9.0,), (NAN,)],
    "percentile(x, 0)": [(5.0,), (1.0,)],
    "string_agg(ch, '-' ORDER BY x DESC)": [("b-a-b-a-c",), ("a-b",)],
    "listagg(ch, '') WITHIN GROUP (ORDER BY at)": [("abbac",), ("ab",)],
    "string_agg(ch, ',' ORDER BY ch DESC) FILTER (WHERE x > 8)": [("b,a",), ("a",)],
    "string_agg(ch, ',' ORDER BY ch) FILTER (WHERE x < 0)": [(None,), (None,)],
}


@KINDS
def test_values_in_an_order(spark: SparkSession, carriers: CarrierKinds) -> None:
    """Universal carriers have none of these: such queries get plans of their own."""
    values = [
        (1, "a", 5.0),
        (2, "b", 9.0),
        (2, "b", 7.0),
        (3, "a", 9.0),
        (4, "c", None),
        (11, "a", NAN),
        (12, "b", 1.0),
    ]
    at, ch, x = zip(*values, strict=True)
    rows = pa.table(
        {
            "g": pa.nulls(len(at), pa.string()),
            "i": pa.nulls(len(at), pa.int32()),
            "b": pa.nulls(len(at), pa.int64()),
            "d": pa.array(x, pa.float64()),
            "s": pa.array(ch),
            "at": pa.array([second * 1_000_000 for second in at], ARROW[Type.TIMESTAMP]),
        }
    )
    named = [re.sub(r"\bx\b", "d", re.sub(r"\bch\b", "s", call)) for call in OF_ORDER]
    queries = [f"SELECT {call} AS v FROM e [RANGE 10 SECONDS]" for call in named]
    for (call, wanted), answer in zip(
        OF_ORDER.items(), answers(spark, queries, CATALOG, {"e": rows}, carriers), strict=True
    ):
        found = sorted(repr((row["v"],)) for row in answer.to_pylist())
        assert found == sorted(map(repr, wanted)), call


EDGES = {
    "i": (None, 0, 1, -1, 2**31 - 1, -(2**31)),
    "b": (None, 0, 1, -1, 2**53 + 1, 2**62, LARGEST, SMALLEST),
    "d": (None, 0.0, -0.0, 1.5, -2.5, 1e300, 5e-324, INF, -INF, NAN),
    "s": (None, "", "a", "A", "ß", "😀", "\uffff", "e\u0301"),
}
CALLS = (
    *("count(*)", "count(DISTINCT {c})", "count({c})", "min({c})", "max({c})"),
    *("max(length({s}))", "min(lower({s}))", "sum({n})", "avg({n})", "stddev({n})", "sum({n} * 2)", "avg({n} + 1)"),
    *("max_by({c}, {n})", "min_by({c}, {n})", "max_by({n}, s)", "min_by({n}, d)", "first({c})", "last({c})"),
    *("median({n})", "median(d)", "quantile_cont({n}, 0.3)", "quantile_cont(d, 0.75)"),
    *("string_agg(s, ',' ORDER BY {c})", "string_agg(s, '' ORDER BY {c} DESC)"),
    *("sum({n}) + 1", "max({n}) - min({n})", "abs(min({n}))", "- min({n})", "sum(if({n} > 0, 1, 2))"),
)


def test_edges_in_any_order(spark: SparkSession) -> None:
    """Sums of doubles are left out: they depend on the order."""
    rng = Random(3)
    groups = {f"group {n}": [tuple(rng.choice(EDGES[c]) for c in "ibds") for _ in range(1 + n % 7)] for n in range(60)}
    tables = {"e": table(groups, rng)}
    queries = [
        f"SELECT g, {call.format(c=c, n=n, s='s')} AS v {WINDOW}" for call in CALLS for c in "ibds" for n in "ib"
    ]
    queries = list(dict.fromkeys(queries))
    wrong = []
    with duckdb.connect() as database:
        database.register("e", tables["e"])
        for sql, answer in zip(queries, answers(spark, queries, CATALOG, tables), strict=True):
            difference = differences(expected(database, parse(sql, CATALOG), CATALOG), answer)
            wrong += [f"{sql}\n{difference}"] if difference else []
    assert not wrong, "\n".join(wrong)
