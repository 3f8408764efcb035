"""A short text cannot cost much: what it stands for is bounded, and the bound is noticed before it is reached."""

from __future__ import annotations

import sys

import pytest

from towpath.errors import QueryError
from towpath.lang import parse, to_sql
from towpath.lang.budget import DEEPEST, LONGEST_NAME, MOST_PARTS, MOST_SELECTS, MOST_WIDE, levels

from .cases import catalog

WIDE = range(MOST_WIDE + 1)
PARTS = f"the query has more than {MOST_PARTS:,} parts"


def nested_case(depth: int) -> str:
    text = "price"
    for _ in range(depth):
        text = f"CASE {text} WHEN 1 THEN 2 WHEN 2 THEN 3 END"
    return f"SELECT {text} AS x FROM bids"


def names_in_having(terms: int, uses: int) -> str:
    name = " + ".join(["max(price)"] * terms)
    return f"SELECT {name} AS a FROM bids [RANGE 1 MINUTE] HAVING {' + '.join(['a'] * uses)} > 0"


def names_of_a_derived_table(terms: int, uses: int) -> str:
    columns = " + ".join(["price"] * terms)
    items = ", ".join(f"sum({' + '.join(['a'] * uses)} + {n}) AS s{n}" for n in range(20))
    return f"SELECT {items} FROM (SELECT {columns} AS a FROM bids) [RANGE 1 MINUTE] AS j"


def listed(number: int) -> str:
    return ", ".join(map(str, range(number)))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (nested_case(16), PARTS),
        (nested_case(40), PARTS),
        (names_in_having(70, 70), PARTS),
        (names_of_a_derived_table(100, 40), PARTS),
        (f"SELECT price FROM bids WHERE lane IN ({listed(MOST_PARTS)})", PARTS),
        (f"SELECT count(*) AS n FROM bids [RANGE 1 MINUTE] GROUP BY {', '.join(['price + 1'] * 2000)}", PARTS),
        (" UNION ALL ".join(["SELECT price FROM bids"] * (MOST_SELECTS + 1)), f"{MOST_SELECTS + 1} SELECTs, at most"),
        (f"SELECT {', '.join(f'price + {n} AS c{n}' for n in WIDE)} FROM bids", "computed columns, at most"),
        (
            f"SELECT 1 AS n FROM bids [RANGE 1 MINUTE] GROUP BY {', '.join(f'lane + {n}' for n in WIDE)}",
            "GROUP BY expressions, at most",
        ),
        (
            "SELECT 1 AS n FROM bids [RANGE 1 MINUTE] HAVING " + " AND ".join(f"sum(lane + {n}) > 0" for n in WIDE),
            "aggregates, at most",
        ),
        (f"SELECT price AS {'x' * (LONGEST_NAME + 1)} FROM bids", "characters, at most"),
        (f"SELECT price FROM bids WHERE {'(' * 5000}hot{')' * 5000}", "nested too deeply"),
        (f"SELECT price FROM bids WHERE {'NOT ' * (DEEPEST + 1)}hot", f"nested more than {DEEPEST} levels"),
        (f"SELECT price FROM bids WHERE {' OR '.join(f'lane = {n}' for n in range(DEEPEST + 1))}", "use IN for a long"),
        (f"SELECT price FROM bids WHERE price > {'9' * 5000}", "is not a bigint or double"),
        (f"SELECT price FROM bids WHERE price > 1e{'9' * 5000}", "is not a bigint or double"),
        (f"SELECT round(price, {'9' * 5000}) AS x FROM bids", "is not a bigint or double"),
        (f"SELECT count(*) AS n FROM bids [RANGE {'9' * 5000} SECONDS]", "the window of bids is at most 36500 DAYS"),
        (f"SELECT lane FROM bids [RANGE 1 MINUTE] GROUP BY {'9' * 5000}", "there is no output column"),
        ("SELECT price FROM bids WHERE channel = '\ud800'", "half of a character"),
        ('SELECT price AS "\udfff" FROM bids', "half of a character"),
        ("SELECT price FROM bids WHERE channel = 'a\0b'", "a NUL character"),
        ("SELECT price\0 FROM bids", "a NUL character"),
    ],
    ids=lambda text: f"{text[:60]}({len(text)})".encode("ascii", "backslashreplace").decode(),
)
def test_a_query_without_measure_is_refused_in_words(sql: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(sql, catalog())
    text = str(caught.value)
    assert message in text
    assert text.encode(), "it can be written to any terminal"


def test_a_name_is_as_deep_as_what_it_stands_for() -> None:
    deep = f"{'abs(' * 100}price{')' * 100}"
    one = f"SELECT max(a) AS m FROM (SELECT {deep} AS a FROM bids) [RANGE 1 MINUTE] AS j"
    assert levels(parse(one, catalog()).selects[0].items[0].expr) == 103  # 100 calls, max, and the column with its name
    both = f"SELECT max({'abs(' * 50}a{')' * 50}) AS m FROM (SELECT {deep} AS a FROM bids) [RANGE 1 MINUTE] AS j"
    with pytest.raises(QueryError, match=f"nested more than {DEEPEST} levels"):
        parse(both, catalog())


def test_parentheses_are_no_levels() -> None:
    plain = parse("SELECT price FROM bids WHERE price > 1", catalog())
    for text in ("SELECT price FROM bids WHERE {}price{} > 1", "{}SELECT price FROM bids WHERE price > 1{}"):
        assert to_sql(parse(text.format("(" * 400, ")" * 400), catalog())) == to_sql(plain)


def test_each_level_of_a_call_is_looked_at_once() -> None:
    for call in ("nullif({}, 1)", "coalesce({}, 1)", "least({}, 1)", "if({} = 1, 1, 2)", "abs({})"):
        text = "price"
        for _ in range(DEEPEST // 2 - 2):
            text = call.format(text)
        assert parse(f"SELECT {text} AS x FROM bids", catalog()).columns[0].name == "x"


def test_what_can_be_read_does_not_depend_on_where_it_is_read() -> None:
    sql = f"SELECT {'(' * (DEEPEST - 2)}price{' + 1)' * (DEEPEST - 2)} AS x FROM bids"

    def below(calls: int) -> str:
        return below(calls - 1) if calls else to_sql(parse(sql, catalog()))

    assert sys.getrecursionlimit() >= 10_000
    assert below(0) == below(1000)


@pytest.mark.parametrize(
    ("joins", "number"),
    [("JOIN bids", 30), ("JOIN bids JOIN bids ON 1 = 1", 30), ("JOIN (SELECT 1 FROM bids JOIN bids)", 60)],
)
def test_joins_without_on_are_refused_before_they_are_read_again_and_again(joins: str, number: int) -> None:
    """Twice as often with each: a text of 30 of them took days."""
    with pytest.raises(QueryError) as refused:
        parse(f"SELECT price FROM bids {' '.join([joins] * 30)}", catalog())
    (problem,) = refused.value.problems
    assert problem.message == f"{number} JOINs have no ON" and problem.where == "line 1, column 24"


def test_as_many_joins_as_a_query_may_have_are_read() -> None:
    """Also when the ON of each stands behind all of them, or in a SELECT of its own."""
    apart = " UNION ALL ".join(["SELECT a.price FROM bids AS a JOIN bids AS b ON a.price = b.price"] * 20)
    with pytest.raises(QueryError, match="in a join every input needs a window"):
        parse(apart, catalog())
    joins = " ".join(f"JOIN bids AS b{n}" for n in range(20))
    conditions = " ".join(f"ON b{n}.price = a.price" for n in range(20))
    with pytest.raises(QueryError) as refused:
        parse(f"SELECT a.price FROM bids AS a {joins} {conditions}", catalog())
    assert "have no ON" not in str(refused.value)
