"""Views with a name: what a text becomes that reads them, and where its mistakes are."""

from __future__ import annotations

import pytest

from towpath.errors import QueryError
from towpath.lang import parse
from towpath.lang.named_views import compose, in_order, tables

from .cases import catalog

BUSY = "SELECT auction, count(*) AS n FROM bids [RANGE 10 SECONDS] GROUP BY auction"
DEAR = "SELECT * FROM bids WHERE price > 900"
VIEWS = {
    "busy": BUSY,
    "top": "SELECT max(n) AS most FROM Busy [RANGE 1 MINUTE]",
    "dear": DEAR,
}


TOP = f'WITH "busy" AS ({BUSY}) {VIEWS["top"]}'


def composed(sql: str) -> str:
    return " ".join(compose(sql, VIEWS).text.split())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT price FROM bids", "SELECT price FROM bids"),
        ("SELECT price FROM DEAR", f'WITH "dear" AS ({DEAR}) SELECT price FROM DEAR'),
        ("SELECT most FROM top;", f'WITH "top" AS ({TOP}) SELECT most FROM top;'),
        # What a query names is no part of what the job's views mean.
        (
            "WITH busy AS (SELECT price AS n FROM bids) SELECT n, most FROM busy, top",
            f'WITH "top" AS ({TOP}), busy AS (SELECT price AS n FROM bids) SELECT n, most FROM busy, top',
        ),
        (
            "WITH x AS (SELECT price FROM dear) SELECT * FROM x",
            f'WITH "dear" AS ({DEAR}), x AS (SELECT price FROM dear) SELECT * FROM x',
        ),
        # A name of its own goes before the job's, and a column is no name of a view.
        ("WITH dear AS (SELECT price FROM bids) SELECT * FROM dear",) * 2,
        ("SELECT price AS dear, bids.price AS top FROM bids",) * 2,
        ("INSERT INTO x SELECT * FROM dear", f'INSERT INTO x WITH "dear" AS ({DEAR}) SELECT * FROM dear'),
        (
            "CREATE VIEW v AS SELECT price FROM dear; CREATE TEMP VIEW w AS SELECT price FROM v; SELECT * FROM w",
            f'WITH "dear" AS ({DEAR}), "v" AS (SELECT price FROM dear), "w" AS (SELECT price FROM v) '
            "SELECT * FROM w",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT price FROM bids; CREATE MATERIALIZED VIEW w AS SELECT * FROM v",
            'CREATE MATERIALIZED VIEW w AS WITH "v" AS (SELECT price FROM bids) SELECT * FROM v',
        ),
        (
            "SELECT * FROM dear WHERE channel = 'a; b'",
            f"WITH \"dear\" AS ({DEAR}) SELECT * FROM dear WHERE channel = 'a; b'",
        ),
    ],
)  # fmt: skip
def test_views_become_names_of_with(sql: str, expected: str) -> None:
    assert composed(sql) == expected


def test_a_text_with_its_views_needs_nobody_else() -> None:
    query = parse("SELECT most FROM top WHERE most > 3", catalog(), "q", VIEWS)
    assert len(query.views) == 2
    assert parse(query.sql, catalog(), "q") == query


@pytest.mark.parametrize("sql", ["SELECT price FROM dear WHERE (", "SELECT 'x FROM dear", "", ";", "DROP VIEW dear"])
def test_what_cannot_be_read_stays_as_it_is(sql: str) -> None:
    assert compose(sql, VIEWS).text == sql
    with pytest.raises(QueryError):
        parse(sql, catalog(), "q", VIEWS)


def mistakes(sql: str) -> str:
    with pytest.raises(QueryError) as caught:
        parse(sql, catalog(), "q", VIEWS)
    return "\n".join(map(str, caught.value.problems))


def test_mistakes_are_where_they_were_written() -> None:
    assert mistakes("SELECT most\nFROM top\nWHERE mast > 3") == (
        "line 3, column 7: mast is not a column of top\n    WHERE mast > 3\n          ^^^^\n    -> did you mean most?"
    )
    assert mistakes("CREATE VIEW v AS SELECT prise FROM bids;\nSELECT price FROM v WHERE nobody > 1").splitlines()[
        0
    ] == ("line 1, column 25: prise is not a column of bids")


def test_a_view_alone_is_no_query() -> None:
    assert mistakes("CREATE VIEW v AS SELECT price FROM bids").splitlines()[0] == (
        "line 1, column 1: a view alone puts nothing out"
    )
    assert "a query is one statement" in mistakes("SELECT price FROM bids; SELECT price FROM dear")


def test_a_name_is_given_once() -> None:
    text = "CREATE VIEW v AS SELECT price FROM bids; CREATE VIEW v AS SELECT price FROM dear; SELECT * FROM v"
    assert "WITH says twice what" in mistakes(text)


def test_what_nobody_reads_is_no_view_of_the_query() -> None:
    unread = "SELECT max(n) AS most FROM (SELECT count(*) AS n FROM bids [RANGE 1 SECOND]) [RANGE 2 SECONDS] AS x"
    assert parse(f"WITH u AS ({unread}) SELECT price FROM bids", catalog()).views == ()


def test_views_stand_before_those_that_read_them() -> None:
    reversed_ = dict(reversed(VIEWS.items()))
    found, circular = in_order(reversed_)
    assert (list(found), circular) == (["dear", "busy", "top"], [])
    assert in_order(
        {"a": "SELECT * FROM B", "b": "SELECT * FROM a", "c": "SELECT a FROM s", "d": "SELECT * FROM d"}
    ) == (
        {"c": "SELECT a FROM s"},
        ["a", "b", "d"],
    )


def test_tables_are_what_is_read() -> None:
    window = "TABLE(TUMBLE(TABLE Bids, DESCRIPTOR(at), INTERVAL '1' SECOND))"
    assert tables(f"SELECT a.x FROM {window} JOIN (SELECT * FROM dear) AS a ON 1 = 1") == {"bids", "dear"}


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        # A name of WITH knows those before it, and not itself: whoever hides a stream reads the stream.
        ("WITH bids AS (SELECT price * 2 AS p FROM bids) SELECT p FROM bids", "SELECT price * 2 AS p FROM bids"),
        (
            "WITH bids AS (SELECT count(*) AS n FROM bids [RANGE 1 SECOND]), x AS (SELECT max(n) AS m FROM bids "
            "[RANGE 1 MINUTE]) SELECT m FROM x",
            "SELECT m FROM (SELECT max(n) AS m FROM (SELECT count(*) AS n FROM bids [RANGE 1 SECOND]) "
            "[RANGE 1 MINUTE] AS bids) AS x",
        ),
        (
            "WITH a AS (SELECT id FROM auctions), auctions AS (SELECT id FROM persons) SELECT * FROM a",
            "SELECT id FROM auctions",
        ),
        (
            "CREATE VIEW a AS SELECT id FROM auctions; CREATE VIEW auctions AS SELECT id FROM persons; SELECT * FROM a",
            "SELECT id FROM auctions",
        ),
        (
            "WITH bids AS (SELECT id AS price FROM auctions) SELECT price FROM dear",
            "SELECT price FROM bids WHERE price > 900",
        ),
        ("WITH bids AS (SELECT price FROM bids) SELECT price FROM bids UNION ALL SELECT price FROM bids",
         "SELECT price FROM bids UNION ALL SELECT price FROM bids"),
    ],
)  # fmt: skip
def test_a_name_means_what_was_known_where_it_was_given(sql: str, same: str) -> None:
    one, other = parse(sql, catalog(), "q", VIEWS), parse(same, catalog(), "q", VIEWS)
    assert (one.selects, one.views) == (other.selects, other.views)


def test_every_view_has_a_result_time() -> None:
    filtered = parse("SELECT dear.result_time AS r FROM dear", catalog(), "q", VIEWS)
    assert filtered.selects == parse("SELECT at AS r FROM bids WHERE price > 900", catalog(), "q").selects
    assert "result_time" not in [
        item.name for item in parse("SELECT * FROM dear", catalog(), "q", VIEWS).selects[0].items
    ]
