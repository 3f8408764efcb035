"""What docs/nexmark.md says of each query of Nexmark is so."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from towpath.errors import QueryError
from towpath.lang import parse
from towpath.verify import expected

from .nexmark import PAGE, NexmarkQuery, catalog, database, page, queries

QUERIES = queries()
RUN = [query for query in QUERIES if not query.missing]


def test_there_are_all_of_them() -> None:
    assert [query.name for query in QUERIES] == [f"q{n}" for n in range(23)]


def test_the_page_says_what_is_in_the_data() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_flinks_text_passes_or_is_refused_as_the_page_says(query: NexmarkQuery) -> None:
    if not query.refusal:
        assert parse(query.flink, catalog()).columns
        return
    with pytest.raises(QueryError) as caught:
        parse(query.flink, catalog())
    assert query.refusal in str(caught.value)


@pytest.mark.parametrize("query", RUN, ids=lambda query: query.name)
def test_a_query_that_runs_equals_the_same_in_plain_sql(query: NexmarkQuery) -> None:
    con = database()
    found = rows(expected(con, parse(query.sql, catalog()), catalog()).to_pylist())
    plain = rows(con.sql(query.plain).to_arrow_table().to_pylist())
    assert found == plain
    assert found


def rows(table: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(value, row.values())) for row in table)


def value(given: Any) -> Any:
    """Means depend on the order of adding, in their last digits."""
    if isinstance(given, float):
        return math.floor(given * 1e4 + 0.5)
    return given.replace(tzinfo=None) if hasattr(given, "tzinfo") else given
