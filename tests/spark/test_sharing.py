"""A query's answer does not depend on who else runs: alone, together, on whichever carrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.batches import answers, session
from tests.spark.folders import arrive, write_job

from towpath.api.running import start
from towpath.arrow import ARROW
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.schema import Column, Stream, Type
from towpath.verify import differences, expected

pytestmark = pytest.mark.spark

COLUMNS = {
    "k": Type.BIGINT,
    "n": Type.INT,
    "x": Type.DOUBLE,
    "ch": Type.STRING,
    "flag": Type.BOOLEAN,
    "at": Type.TIMESTAMP,
}
CATALOG = {name: Stream(name, tuple(Column(c, t) for c, t in COLUMNS.items()), "at") for name in ("s", "t")}
SECOND = 1_000_000
KINDS = pytest.mark.parametrize("carriers", [CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL])


def table(rows: Sequence[tuple]) -> pa.Table:
    """Rows in the order of the columns; the time in seconds."""
    values = list(zip(*rows, strict=True))
    values[-1] = tuple(int(t * SECOND) for t in values[-1])
    return pa.table({name: pa.array(v, ARROW[type_]) for (name, type_), v in zip(COLUMNS.items(), values, strict=True)})


def random_rows(rng: Random, count: int) -> pa.Table:
    def some(*values: object) -> object:
        return rng.choice((None, *values))

    return table(
        [
            (
                some(0, 1, 2, 3, -1),
                some(0, 1, 2, 3),
                some(0.0, -0.0, 1.0, 1.5, float("nan")),
                some("Web", "web", "WEB", "app", "", "App"),
                some(True, False),
                rng.randrange(120) / 4,
            )
            for _ in range(count)
        ]
    )


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield session(tmp_path_factory.mktemp("spark"))


FEW = table(
    [
        (1, 1, 1.0, "Web", True, 1),
        (2, 1, 2.0, "web", True, 2),
        (3, 2, 4.0, "APP", False, 3),
        (1, 2, 8.0, "web", None, 4),
    ]
)
# Grouped in one query, calculated in the other. The answers are worked out by hand.
BY_HAND = {
    "SELECT lower(ch) AS l, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY lower(ch)": [("app", 1), ("web", 3)],
    "SELECT ch, lower(ch) AS l, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY ch": [
        ("APP", "app", 1),
        ("Web", "web", 1),
        ("web", "web", 2),
    ],
    "SELECT ch, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY ch HAVING lower(ch) = 'web'": [("Web", 1), ("web", 2)],
    "SELECT lower(ch) AS l, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY lower(ch) HAVING lower(ch) = 'app'": [
        ("app", 1)
    ],
    "SELECT upper(ch) AS u, lower(ch) AS l, sum(k) AS k FROM s [RANGE 10 SECONDS] GROUP BY ch, k % 2": [
        ("APP", "app", 3),
        ("WEB", "web", 1),
        ("WEB", "web", 2),
        ("WEB", "web", 1),
    ],
    "SELECT k % 2 AS odd, n, (k % 2) + n AS both FROM s [RANGE 10 SECONDS] GROUP BY k % 2, n HAVING count(*) > 0": [
        (1, 1, 2),
        (0, 1, 1),
        (1, 2, 3),
    ],
    "SELECT k, k % 2 AS odd, (k % 2) + max(n) AS both FROM s [RANGE 10 SECONDS] GROUP BY k": [
        (1, 1, 3),
        (2, 0, 1),
        (3, 1, 3),
    ],
    "SELECT sum(k % 2) AS odd, count(DISTINCT lower(ch)) AS n FROM s [RANGE 10 SECONDS]": [(3, 2)],
    "SELECT lower(ch) AS l, k % 2 AS odd FROM s WHERE lower(ch) = 'web' AND k % 2 = 1": [("web", 1), ("web", 1)],
    # One fragment for both: its outputs are distinguished by their constants alone.
    "SELECT k + 1 AS one, k + 10 AS ten FROM s WHERE n = 1": [(2, 11), (3, 12)],
    "SELECT k + 10 AS ten, n, k + 1 AS one FROM s WHERE n = 1": [(11, 1, 2), (12, 1, 3)],
    "SELECT count(*) + 1 AS one, count(*) + 10 AS ten FROM s [RANGE 10 SECONDS] GROUP BY flag": [(2, 11)] * 2
    + [(3, 12)],
    "SELECT count(*) + 10 AS ten, count(*) + 1 AS one FROM s [RANGE 10 SECONDS] GROUP BY flag": [(11, 2)] * 2
    + [(12, 3)],
}


@KINDS
def test_what_one_query_groups_another_calculates(spark: SparkSession, carriers: CarrierKinds) -> None:
    tables = {"s": FEW, "t": FEW.slice(0, 0)}
    together = answers(spark, list(BY_HAND), CATALOG, tables, carriers)
    for (sql, wanted), answer in zip(BY_HAND.items(), together, strict=True):
        found = sorted(tuple(row.values()) for row in answer.to_pylist())
        assert found == sorted(wanted), sql


def test_in_one_job(tmp_path: Path) -> None:
    queries = {
        "grouped": "SELECT floor(x) AS f, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY floor(x)",
        "calculated": "SELECT x, floor(x) AS f, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY x",
        "filtered": "SELECT x, count(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY x HAVING floor(x) = 1",
        "typed": "SELECT max(if(x > 2, 1, 2)) AS i, min(k + 1) AS b FROM s [RANGE 10 SECONDS]",
    }
    job = write_job(tmp_path, ["s"], queries)
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 1.25, 1), (1, 1.5, 2), (1, 2.5, 3), (2, 1.5, 4)])
        running.drain()
        assert len(running.engine.carriers) == 1
        found = {name: running.results(name) for name in queries}
    answered = {name: sorted(tuple(row.values()) for row in table.to_pylist()) for name, table in found.items()}
    assert answered == {
        "grouped": [(1, 3), (2, 1)],
        "calculated": [(1.25, 1, 1), (1.5, 1, 2), (2.5, 2, 1)],
        "filtered": [(1.25, 1), (1.5, 2)],
        "typed": [(2, 2)],
    }
    assert found["typed"].schema.types == [pa.int32(), pa.int64()]


# --- sets of similar queries ---------------------------------------------------------------------------------------

# An expression over one column, and what else can be calculated of its value.
OF_COLUMN = {
    "ch": ("ch", "lower(ch)", "upper(ch)", "length(ch)", "coalesce(ch, 'none')", "ch || 'a'", "substring(ch, 1, 1)"),
    "k": ("k", "k % 2", "k + 1", "- k", "coalesce(k, 1)", "CAST(k AS STRING)", "k * 1.5"),
    "n": ("n", "n % 2", "n + 1", "n / 2", "abs(n)", "greatest(n, 1)"),
    "x": ("x", "floor(x)", "x * 2", "round(x)", "x + 1", "coalesce(x, 1)"),
    "flag": ("flag", "NOT flag", "flag IS NULL", "if(flag, 1, 2)", "if(flag, 1, 2.5)", "CAST(flag AS STRING)"),
}
SUMS = ("k + 1", "k + 2", "k + 3", "k")
CONDITIONS = {
    "ch": (
        "lower(ch) = 'web'",
        "ch = 'web'",
        "ch <> 'web'",
        "length(ch) > 2",
        "ch IN ('web', 'app')",
        "ch IS NOT NULL",
    ),
    "k": ("k % 2 = 1", "k % 2 = 0", "k = 1", "k > 0", "k + 1 > 1", "k IN (1, 2)", "k BETWEEN 1 AND 2", "- k < 0"),
    "n": ("n % 2 = 1", "n = 1", "n + 1 < 3", "n < 2", "n / 2 >= 0.5", "n <> 1"),
    "x": ("x > 0.5", "floor(x) = 1", "x = 0", "x * 2 > 1", "x <> 1.5"),
    "flag": ("flag", "NOT flag", "flag IS NULL", "if(flag, 1, 2) = 1"),
}
AGGREGATES = ("count(*)", "count({e})", "count(DISTINCT {e})", "min({e})", "max({e})")
WINDOWS = ("[RANGE 10 SECONDS]", "[RANGE 5 SECONDS]", "[RANGE 10 SECONDS]", "[RANGE 10 SECONDS SLIDE 5 SECONDS]")
TIMES = ("window_start", "window_end", "second(window_start)", "second(window_end)")


def random_query(rng: Random) -> str:
    return rng.choice((_grouped, _grouped, _grouped, _plain, _joined))(rng)


def _plain(rng: Random) -> str:
    columns = rng.sample(sorted(OF_COLUMN), 2)
    # Few columns and few constants in any order: many share a fragment, and each reads it in its own way.
    items = [rng.choice(OF_COLUMN[c]) for c in columns] if rng.random() < 0.6 else rng.sample(SUMS, 2)
    return f"SELECT {_items(items)} FROM {rng.choice('st')}{_where(rng, columns)}"


def _grouped(rng: Random) -> str:
    """By columns, of which SELECT and HAVING calculate, or by what other queries calculate."""
    columns = rng.sample(sorted(OF_COLUMN), rng.randint(1, 3))
    by_column = [c for c in columns if rng.random() < 0.5]
    by_value = [rng.choice(OF_COLUMN[c]) for c in columns if c not in by_column]
    known = [*by_value, *(rng.choice(OF_COLUMN[c]) for c in by_column for _ in range(2))]
    calls = [
        rng.choice(AGGREGATES).format(e=rng.choice(OF_COLUMN[rng.choice(("k", "n", "x", "ch"))]))
        for _ in range(rng.randint(1, 2))
    ]
    having = [rng.choice(CONDITIONS[c]) for c in by_column if rng.random() < 0.5]
    having += ["count(*) > 1"] if rng.random() < 0.3 else []
    items = [*rng.sample(known, rng.randint(1, len(known))), *calls, *rng.sample(TIMES, rng.randint(0, 1))]
    sql = f"SELECT {_items(items)} FROM {rng.choice('st')} {rng.choice(WINDOWS)}{_where(rng, sorted(OF_COLUMN))}"
    sql += f" GROUP BY {', '.join((*by_column, *by_value))}"
    return sql + (f" HAVING {' AND '.join(having)}" if having else "")


def _joined(rng: Random) -> str:
    items = ["a.k", *(rng.choice(("a.ch", "lower(a.ch)", "a.ch || b.ch", "a.n + b.n", "b.x", "b.n")) for _ in "12")]
    conditions = ("a.n = b.n", "a.x > b.x", "a.ch = 'web'", "lower(a.ch) = 'web'", "a.n + b.n > 2", "b.n = 1", "a.flag")
    chosen = rng.sample(conditions, rng.randint(0, 2))
    inputs = f"{rng.choice('st')} [RANGE {rng.randint(1, 3)} SECONDS] a, t [RANGE {rng.randint(1, 3)} SECONDS] b"
    return f"SELECT {_items(items)} FROM {inputs} WHERE {' AND '.join(('a.k = b.k', *chosen))}"


def _items(items: list[str]) -> str:
    return ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))


def _where(rng: Random, columns: Sequence[str]) -> str:
    conditions = [rng.choice(CONDITIONS[rng.choice(columns)]) for _ in range(rng.randint(0, 2))]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def wrong_together(spark: SparkSession, seed: int, count: int, carriers: CarrierKinds) -> list[str]:
    rng = Random(seed)
    queries = list(dict.fromkeys(random_query(rng) for _ in range(count)))
    tables = {name: random_rows(rng, 150) for name in CATALOG}
    found = []
    with duckdb.connect() as database:
        for name, rows in tables.items():
            database.register(name, rows)
        for sql, answer in zip(queries, answers(spark, queries, CATALOG, tables, carriers), strict=True):
            difference = differences(expected(database, parse(sql, CATALOG), CATALOG), answer)
            if difference is not None:
                found.append(f"{sql}\n{difference}")
    return found


@KINDS
def test_queries_of_like_expressions_together(spark: SparkSession, carriers: CarrierKinds) -> None:
    assert wrong_together(spark, 0, 60, carriers) == []


@pytest.mark.long
@KINDS
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_queries_of_like_expressions_together(spark: SparkSession, seed: int, carriers: CarrierKinds) -> None:
    assert wrong_together(spark, seed, 60, carriers) == []
