"""The first rows of windows, worked out by hand and against DuckDB, in both kinds of carriers."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.spark.batches import answers, session
from tests.spark.test_sharing import CATALOG, KINDS, table

from towpath.lab.testing.queries import random_shape_of_first_rows
from towpath.lab.testing.recording import Recording, random_recording
from towpath.lab.testing.workload import database_of
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.verify import differences, expected

pytestmark = pytest.mark.spark

NAN = float("nan")
# k, n, x, ch, flag, seconds; two tuples are equal.
ROWS = table(
    [
        (1, 1, 5.0, "a", True, 1),
        (1, 2, 9.0, "b", True, 2),
        (1, 2, 9.0, "b", True, 2),
        (2, 1, 9.0, "a", False, 3),
        (2, 2, None, "c", None, 4),
        (3, 1, NAN, "a", True, 11),
        (3, 2, 1.0, "b", False, 12),
    ]
)
WINDOW = "FROM s [RANGE 10 SECONDS]"
BY_HAND = {
    # Those of one x follow in the order of k and ch.
    f"SELECT k, ch, x {WINDOW} ORDER BY x DESC LIMIT 3": [
        *[(1, "b", 9.0), (1, "b", 9.0), (2, "a", 9.0)],
        *[(3, "a", NAN), (3, "b", 1.0)],
    ],
    f"SELECT ch, x {WINDOW} ORDER BY x DESC LIMIT 1": [("a", 9.0), ("a", NAN)],
    f"SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x DESC) AS rn {WINDOW} QUALIFY rn <= 2": [
        *[(1, 9.0, 1), (1, 9.0, 2), (2, 9.0, 1), (2, None, 2)],
        *[(3, NAN, 1), (3, 1.0, 2)],
    ],
    f"SELECT k {WINDOW} QUALIFY row_number() OVER (ORDER BY x) = 1": [(2,), (3,)],
    f"SELECT k {WINDOW} QUALIFY row_number() OVER (ORDER BY x NULLS LAST) = 1": [(1,), (3,)],
    f"SELECT ch, rank() OVER (ORDER BY x DESC) AS r {WINDOW} QUALIFY r <= 4": [
        *[("a", 1), ("b", 1), ("b", 1), ("a", 4)],
        *[("a", 1), ("b", 2)],
    ],
    f"SELECT ch, rank() OVER (ORDER BY x DESC) AS r {WINDOW} QUALIFY r < 4": [
        *[("a", 1), ("b", 1), ("b", 1)],
        *[("a", 1), ("b", 2)],
    ],
    f"SELECT ch, dense_rank() OVER (ORDER BY x DESC) AS r {WINDOW} QUALIFY r <= 2": [
        *[("a", 1), ("b", 1), ("b", 1), ("a", 2)],
        *[("a", 1), ("b", 2)],
    ],
    f"SELECT ch, k, n {WINDOW} QUALIFY row_number() OVER (PARTITION BY ch ORDER BY at) = 1": [
        *[("a", 1, 1), ("b", 1, 2), ("c", 2, 2)],
        *[("a", 3, 1), ("b", 3, 2)],
    ],
    f"SELECT ch, count(*) AS n {WINDOW} GROUP BY ch ORDER BY n DESC LIMIT 2": [("a", 2), ("b", 2), ("a", 1), ("b", 1)],
    f"SELECT ch, count(*) AS n {WINDOW} GROUP BY ch ORDER BY n DESC LIMIT 1": [("a", 2), ("a", 1)],
    f"SELECT ch {WINDOW} GROUP BY ch QUALIFY row_number() OVER (ORDER BY sum(k) / count(*) DESC) <= 1": [
        ("c",),
        ("a",),
    ],
    f"SELECT ch {WINDOW} GROUP BY ch HAVING ch <> 'c' ORDER BY min(k) DESC, max(n) LIMIT 1": [("a",), ("a",)],
    "SELECT k, sum(n) AS total, second(window_end) AS until FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k "
    "QUALIFY row_number() OVER (ORDER BY total DESC) <= 1": [(1, 5, 5), (1, 5, 10), (3, 3, 15), (3, 3, 20)],
    # A pair for each two tuples of one k; the NaN is the largest.
    "SELECT a.x, b.n FROM s [RANGE 10 SECONDS] AS a, s [RANGE 10 SECONDS] AS b WHERE a.k = b.k AND a.n < b.n "
    "QUALIFY row_number() OVER (PARTITION BY a.k ORDER BY a.x DESC) <= 1": [(5.0, 2), (9.0, 2), (NAN, 2)],
    "SELECT 1 AS one, second(window_start) AS since FROM s [RANGE 10 SECONDS] ORDER BY at DESC LIMIT 1": [
        (1, 0),
        (1, 10),
    ],
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield session(tmp_path_factory.mktemp("spark"))


@KINDS
def test_by_hand(spark: SparkSession, carriers: CarrierKinds) -> None:
    tables = {"s": ROWS, "t": ROWS.slice(0, 0)}
    together = answers(spark, list(BY_HAND), CATALOG, tables, carriers)
    for (sql, wanted), answer in zip(BY_HAND.items(), together, strict=True):
        # As texts: NaN is not equal to itself.
        assert sorted(repr(tuple(row.values())) for row in answer.to_pylist()) == sorted(map(repr, wanted)), sql


def wrong_together(spark: SparkSession, seed: int, count: int, carriers: CarrierKinds) -> list[str]:
    rng = Random(seed)
    drawn = random_recording(rng)
    recording = Recording(drawn.catalog, drawn.chunks)  # whatever files it comes in
    catalog = recording.catalog
    shapes = [random_shape_of_first_rows(rng, catalog) for _ in range(count)]
    texts = [shape.text(rng.randrange(9)) for shape in shapes]
    queries = [text for text in texts if not parse(text, catalog).views]
    tables = {name: recording.complete(name) for name in catalog}
    database, found = database_of(recording), []
    for sql, answer in zip(queries, answers(spark, queries, catalog, tables, carriers), strict=True):
        difference = differences(expected(database, parse(sql, catalog), catalog), answer)
        if difference is not None:
            found.append(f"{sql}\n{difference}")
    return found


@KINDS
def test_equal_to_duckdb(spark: SparkSession, carriers: CarrierKinds) -> None:
    assert wrong_together(spark, 0, 8, carriers) == []


@pytest.mark.long
@KINDS
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_equal_to_duckdb(spark: SparkSession, seed: int, carriers: CarrierKinds) -> None:
    assert wrong_together(spark, seed, 40, carriers) == []
