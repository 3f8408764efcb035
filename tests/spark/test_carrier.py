"""What a carrier makes of tuples that lie exactly at a bound, with answers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.batches import answers, run, session

from towpath.arrow import ARROW
from towpath.lang import parse
from towpath.plan import CarrierKinds
from towpath.plan.cut import plan
from towpath.plan.templates import template_of
from towpath.schema import Column, Stream, Type

pytestmark = pytest.mark.spark

COLUMNS = {"k": Type.BIGINT, "x": Type.DOUBLE, "ch": Type.STRING, "at": Type.TIMESTAMP}
CATALOG = {name: Stream(name, tuple(Column(c, t) for c, t in COLUMNS.items()), "at") for name in ("s", "t")}
SECOND = 1_000_000


def table(rows: Sequence[tuple[int, float, str, int]]) -> pa.Table:
    """Rows in the order of the columns; the time in seconds."""
    k, x, ch, seconds = zip(*rows, strict=True)
    values = (k, x, ch, [second * SECOND for second in seconds])
    return pa.table({name: pa.array(v, ARROW[type_]) for (name, type_), v in zip(COLUMNS.items(), values, strict=True)})


TABLES = {
    "s": table([(1, 1.0, "a", 1), (1, 2.0, "b", 4), (2, 3.0, "a", 10)]),
    "t": table([(1, 5.0, "a", 3), (2, 6.0, "b", 12)]),
}
WINDOW = "SELECT window_start AS w, count(*) AS n FROM s [RANGE 4 SECONDS{}]"
# Tuples of one k at 1 s and 3 s, at 4 s and 3 s, at 10 s and 12 s.
PAIRS = "SELECT a.x AS x, b.x AS y FROM s [RANGE {} SECONDS] a, t [RANGE {} SECONDS] b WHERE a.k = b.k"
ANSWERS: dict[str, list[tuple[float, ...]]] = {
    "SELECT x FROM s WHERE x < 2": [(1,)],
    "SELECT x FROM s WHERE x <= 2": [(1,), (2,)],
    "SELECT x FROM s WHERE x > 2": [(3,)],
    "SELECT x FROM s WHERE x >= 2": [(2,), (3,)],
    "SELECT x FROM s WHERE x BETWEEN 2 AND 3": [(2,), (3,)],
    WINDOW.format(""): [(0, 1), (4, 1), (8, 1)],
    WINDOW.format(" SLIDE 2 SECONDS"): [(-2, 1), (0, 1), (2, 1), (4, 1), (8, 1), (10, 1)],
    PAIRS.format(2, 2): [(1, 5), (2, 5), (3, 6)],
    PAIRS.format(1, 2): [(2, 5)],
    PAIRS.format(2, 1): [(1, 5), (2, 5), (3, 6)],
    PAIRS.format(2, 2) + " AND a.ch = 'a'": [(1, 5), (3, 6)],
    PAIRS.format(2, 2) + " AND b.ch = 'b'": [(3, 6)],
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session(tmp_path_factory.mktemp("spark"))


def plain(value: float | datetime) -> float:
    """Times in seconds."""
    return value if not isinstance(value, datetime) else value.replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("carriers", [CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL])
def test_tuples_at_the_bounds(spark: SparkSession, carriers: CarrierKinds) -> None:
    together = answers(spark, list(ANSWERS), CATALOG, TABLES, carriers)
    found = [sorted(tuple(map(plain, row.values())) for row in answer.to_pylist()) for answer in together]
    assert dict(zip(ANSWERS, found, strict=True)) == ANSWERS


def test_a_pair_is_of_its_latest_tuple_and_was_made_from_its_earliest_on(spark: SparkSession) -> None:
    query = parse(PAIRS.format(2, 2), CATALOG)
    (pipeline,) = plan(query, CATALOG).pipelines
    log = run(spark, template_of(pipeline), [pipeline], CATALOG, TABLES)
    times = [(plain(row["_born"]), plain(row["_time"])) for row in log.select(["_born", "_time"]).to_pylist()]
    assert sorted(times) == [(1, 3), (3, 4), (10, 12)]
