"""A query that was replaced while data flowed is judged version by version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pytest

from towpath.schema import Catalog, Column, Stream, Type
from towpath.verify import Oracle

SECOND = 1_000_000
CATALOG: Catalog = {"s": Stream("s", (Column("k", Type.BIGINT), Column("at", Type.TIMESTAMP)), "at")}


@dataclass
class Times:
    settled: bool = True
    from_us: int | None = None
    until_us: int | None = None
    ceded_us: int | None = None


@dataclass
class Version:
    sql: str
    validity: Sequence[Times]


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        # A row a second, from 0 to 5, numbered so.
        database.execute("CREATE TABLE s AS SELECT i AS k, make_timestamptz(i * 1000000) AS at FROM range(6) t(i)")
        yield Oracle(CATALOG, lambda query: database)


def test_each_version_answers_for_its_own_event_times(oracle: Oracle) -> None:
    first = Version("SELECT k FROM s WHERE k < 2", [Times(ceded_us=3 * SECOND)])
    second = Version("SELECT k + 100 AS k FROM s", [Times(from_us=3 * SECOND, until_us=5 * SECOND)])
    checked = oracle.check("q", [first, second], pa.table({"k": [0, 1, 103, 104]}))
    assert (checked.name, checked.rows, checked.difference) == ("q", 4, None)


def test_rows_that_are_missing_or_too_many_are_reported(oracle: Oracle) -> None:
    found = oracle.check("q", [Version("SELECT k FROM s", [Times()])], pa.table({"k": [0, 1, 2, 3, 4, 4]})).difference
    assert found is not None
    assert (found.missing_rows, found.extra_rows) == (("k=5",), ("k=4",))


def test_a_query_that_has_not_begun_owes_nothing(oracle: Oracle) -> None:
    assert oracle.answers([Version("SELECT k FROM s", [Times(settled=False)])]).num_rows == 0
