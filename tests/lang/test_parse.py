from __future__ import annotations

import pytest

from towpath.errors import QueryError
from towpath.lang import parse, to_sql
from towpath.lang.foreign import FOREIGN
from towpath.lang.typing import outside

from .cases import Case, answer, catalog, catalog_of, load

VALID = load("valid*.yaml")
INVALID = load("invalid*.yaml")


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.id)
def test_a_valid_query_is_checked(case: Case) -> None:
    assert answer(case.sql, catalog_of(case.file)) == case.expected


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.id)
def test_a_printed_query_reads_back_as_itself(case: Case) -> None:
    query = parse(case.sql, catalog_of(case.file))
    again = parse(to_sql(query), catalog_of(case.file))
    assert (again.selects, again.views) == (query.selects, query.views)


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.id)
def test_a_checked_tree_is_closed(case: Case) -> None:
    for select in parse(case.sql, catalog_of(case.file)).everything:
        for expr in (*select.where, *(i.expr for i in select.items), *select.group_by, *select.having):
            assert outside(expr) is None


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.id)
def test_an_invalid_query_is_refused_with_all_its_problems(case: Case) -> None:
    with pytest.raises(QueryError) as caught:
        parse(case.sql, catalog_of(case.file), "mine")
    assert "\n".join(str(problem) for problem in caught.value.problems) == case.expected
    assert caught.value.title.startswith("mine has ")


def test_a_query_keeps_its_name_and_text() -> None:
    query = parse("SELECT price FROM bids;", catalog(), "mine")
    assert (query.name, query.sql) == ("mine", "SELECT price FROM bids;")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT price FROM bids WHERE {'(' * 5000}hot{')' * 5000}",
        f"SELECT price FROM bids WHERE {'NOT ' * 500}hot",
        f"SELECT price FROM bids WHERE {' OR '.join(f'lane = {n}' for n in range(1000))}",
        f"SELECT price FROM bids WHERE {'x' * 200_000}",
    ],
    ids=["parentheses", "not", "or", "length"],
)
def test_a_text_without_measure_is_refused(sql: str) -> None:
    with pytest.raises(QueryError):
        parse(sql, catalog())


def test_many_conjuncts_are_fine() -> None:
    sql = f"SELECT price FROM bids WHERE {' AND '.join(f'lane <> {n}' for n in range(1000))}"
    assert len(parse(sql, catalog()).selects[0].where) == 1000


@pytest.mark.parametrize("word", sorted(FOREIGN))
def test_a_keyword_of_other_dialects_names_an_input_only_where_it_can_mean_nothing_else(word: str) -> None:
    for window in ("", " [RANGE 5 SECONDS]"):
        item = "count(*) AS n" if window else "price"
        with pytest.raises(QueryError, match=f"{word} is not supported"):
            parse(f"SELECT {item} FROM bids{window} {word}", catalog())
        for name in (f"AS {word}", f'"{word}"', f'AS "{word}"'):
            if word != "WINDOW":  # the name of window_start's input
                (source,) = parse(f"SELECT {item} FROM bids{window} {name}", catalog()).selects[0].inputs
                assert source.alias == word
