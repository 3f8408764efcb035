"""Sessions, worked out by hand: over complete tables, and in a job that is stopped in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.batches import answers, session
from tests.spark.folders import arrive, write_job
from tests.spark.test_sharing import CATALOG, KINDS, table

from towpath.api.running import start
from towpath.errors import MoveRefused
from towpath.plan import CarrierKinds

pytestmark = pytest.mark.spark

# k, n, x, ch, flag, seconds: of 1 two tuples that are exactly 10 s apart and one that is a little further; 2 and NULL.
ROWS = table(
    [
        (1, 1, 1.0, "a", True, 20.25),
        (1, 2, 2.0, "a", True, 0),
        (1, 3, 3.0, "b", True, 10),
        (2, 1, 4.0, "a", True, 5),
        (2, 1, 5.0, "b", True, 15.25),
        (None, 1, 6.0, "a", True, 3),
        (None, 1, 7.0, "b", True, 4),
    ]
)
BOUNDS = "unix_millis(window_start) AS b, unix_millis(window_end) AS e"
BY_HAND = {
    f"SELECT k, count(*) AS c, {BOUNDS} FROM s [SESSION 10 SECONDS] GROUP BY k": [
        *[(1, 2, 0, 20_000), (1, 1, 20_250, 30_250)],
        *[(2, 1, 5_000, 15_000), (2, 1, 15_250, 25_250)],
        (None, 2, 3_000, 14_000),
    ],
    # The same with another gap is in the same carrier.
    f"SELECT k, count(*) AS c, {BOUNDS} FROM s [SESSION 11 SECONDS] GROUP BY k": [
        (1, 3, 0, 31_250),
        (2, 2, 5_000, 26_250),
        (None, 2, 3_000, 15_000),
    ],
    # What is not counted does not hold a session together: 0; 3, 4, 5; 15.25; 20.25.
    "SELECT count(*) AS c FROM s [SESSION 1 SECOND] WHERE n < 3": [(1,), (3,), (1,), (1,)],
    "SELECT ch, sum(x) AS x FROM s [SESSION 6 SECONDS] GROUP BY ch HAVING count(*) > 1": [("a", 12.0), ("b", 15.0)],
    "SELECT k % 2 AS odd, max(n) AS n FROM s [SESSION 10 SECONDS] GROUP BY k % 2 HAVING second(window_start) = 0": [
        (1, 3)
    ],
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield session(tmp_path_factory.mktemp("spark"))


@KINDS
def test_by_hand(spark: SparkSession, carriers: CarrierKinds) -> None:
    """Universal carriers have none: such queries get plans of their own."""
    tables = {"s": ROWS, "t": ROWS.slice(0, 0)}
    together = answers(spark, list(BY_HAND), CATALOG, tables, carriers)
    for (sql, wanted), answer in zip(BY_HAND.items(), together, strict=True):
        assert sorted(repr(tuple(row.values())) for row in answer.to_pylist()) == sorted(map(repr, wanted)), sql


SECONDS = "second(window_start) AS b, second(window_end) AS e"


@pytest.mark.live
def test_in_a_job(tmp_path: Path) -> None:
    queries = {"clicks": f"SELECT k, count(*) AS n, {SECONDS} FROM s [SESSION 4 SECONDS] GROUP BY k"}
    job = write_job(tmp_path, ["s"], queries)
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 1.0, 1), (1, 1.0, 5), (2, 1.0, 2)])
        running.engine.finishing.settle()
        running.poll()
        assert rows_of(running.results("clicks")) == []  # all may go on
        with pytest.raises(MoveRefused, match="nobody knows how long they last"):
            running.move("clicks", carriers=CarrierKinds.UNIVERSAL)
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 1.0, 9), (2, 1.0, 12.5), (1, 1.0, 13.25)])
        running.engine.finishing.settle()
        running.poll()
        # Rows from 12.25 s on are in time: that of 2 is over at 6 s.
        assert rows_of(running.results("clicks")) == [(2, 1, 2, 6)]
        running.submit("clicks", f"SELECT k, 100 + count(*) AS n, {SECONDS} FROM s [SESSION 4 SECONDS] GROUP BY k")
        arrive(tmp_path, "s", [(1, 5.0, 16), (3, 7.0, 20), (3, 8.0, 21)])
        running.engine.finishing.settle()
        running.poll()
        arrive(tmp_path, "s", [(4, 1.0, 50)])
        running.drain()
        found = rows_of(running.results("clicks"))
    # The version changes behind 21, up to where rows had come when the new one was there: nobody has what 3 does.
    assert found == [(1, 2, 13, 20), (1, 3, 1, 13), (2, 1, 2, 6), (2, 1, 12, 16), (4, 101, 50, 54)]


def rows_of(answer: object) -> list[tuple]:
    return sorted(tuple(row.values()) for row in answer.to_pylist())  # type: ignore[attr-defined]
