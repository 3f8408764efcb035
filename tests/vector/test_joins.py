"""Joins of any class without Spark: what is kept of tuples is worked out by hand, whole answers are DuckDB's."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import duckdb
import pyarrow as pa
import pytest
from tests.vector.running import answer, as_input, filtered, fragment, kept, met, pipelines, windowed

from towpath.arrow import ARROW
from towpath.plan.join_class import join_class
from towpath.schema import Column, Stream, Type
from towpath.vector.fragments import VectorFragment
from towpath.vector.joins import JoinedPairs
from towpath.verify import differences, expected

SECOND = 1_000_000
NAN = float("nan")
COLUMNS = {
    "k": Type.BIGINT,
    "n": Type.INT,
    "x": Type.DOUBLE,
    "name": Type.STRING,
    "flag": Type.BOOLEAN,
    "day": Type.DATE,
    "at": Type.TIMESTAMP,
}
CATALOG = {name: Stream(name, tuple(Column(c, t) for c, t in COLUMNS.items()), "at") for name in ("s", "t")}


def table(rows: Sequence[tuple]) -> pa.Table:
    """Rows in the order of the columns; the time in seconds."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    values[-1] = tuple(round(t * SECOND) for t in values[-1])
    return pa.table({name: pa.array(v, ARROW[type_]) for (name, type_), v in zip(COLUMNS.items(), values, strict=True)})


def keyed(*rows: tuple[int | None, float]) -> pa.Table:
    """Rows with nothing but a key and a time."""
    return table([(k, None, None, None, None, None, t) for k, t in rows])


def inputs(tables: dict[str, pa.Table]) -> list[list[pa.Table]]:
    """All streams on both sides, in a batch for each."""
    return [[as_input(rows, CATALOG[name], f"i{n}") for name, rows in tables.items()] for n in range(2)]


def fragments(*queries: str) -> list[VectorFragment]:
    return [fragment(n, pipelines(sql, CATALOG)[1][0]) for n, sql in enumerate(queries)]


def spans(side: pa.Table, alias: str) -> list[tuple[int, float, float, float]]:
    """Key, time, end of the span and for how long it is kept, in seconds."""
    columns = (side[name].to_pylist() for name in (f"{alias}_k", f"{alias}__us", "_until", "_keep"))
    return sorted((k, *(us / SECOND for us in times)) for k, *times in zip(*columns, strict=True))


JOIN = "SELECT a.k FROM s [RANGE {} SECONDS] a, s [RANGE {} SECONDS] b WHERE a.k = b.k"


def test_a_tuple_is_kept_in_its_span_and_in_the_next_if_it_reaches_into_it() -> None:
    rows = {"s": keyed((1, 1), (2, 3), (3, 2.999999), (4, 5), (None, 1)), "t": keyed((5, 1))}
    left, right = kept(fragments(JOIN.format(2, 2)), inputs(rows))
    assert (
        spans(left, "i0")
        == spans(right, "i1")
        == [
            (1, 1.0, 5.0, 2.0),
            (2, 3.0, 5.0, 2.0),  # it may be paired with a tuple of exactly 5 s
            (2, 3.0, 10.0, 2.0),
            (3, 2.999999, 5.0, 2.0),
            (4, 5.0, 10.0, 2.0),
        ]
    )
    pairs = met(left, right)
    assert sorted(pairs["i0_k"].to_pylist()) == [1, 2, 3, 4]  # each with itself, once


def test_how_long_a_tuple_is_kept_is_what_the_most_patient_fragment_wants() -> None:
    patient = JOIN.format(4, 4) + " AND a.k > 2 AND b.k > 2"
    left, _ = kept(
        fragments(JOIN.format(2, 2), patient, patient.replace("> 2", "> 3")), inputs({"s": keyed((2, 6), (3, 6))})
    )
    assert spans(left, "i0") == [(2, 6.0, 10.0, 2.0), (3, 6.0, 10.0, 4.0), (3, 6.0, 15.0, 4.0)]


def test_a_tuple_is_kept_once_for_each_class_and_not_for_those_who_do_not_want_it() -> None:
    others = JOIN.format(2, 2).replace("a.k = b.k", "a.k = b.n AND a.n > 7 AND b.x > 1")
    wide = JOIN.format(2, 60)
    made = fragments(JOIN.format(2, 2), JOIN.format(1, 3), wide, others)
    numbers = [join_class(f.pipeline).number for f in made]
    assert len(set(numbers)) == 3 and numbers[0] == numbers[1]
    rows = table(
        [(1, 8, 0.0, None, None, None, 1), (1, 7, 2.0, None, None, None, 1), (1, None, 2.0, None, None, None, 1)]
    )
    for side in kept(made, inputs({"s": rows})):
        found = list(zip(side["_class"].to_pylist(), side["_until"].to_pylist(), strict=True))
        # The first row is what one side of the last asks for, the second what its other side does.
        assert sorted(found) == sorted(
            [(numbers[0], 5 * SECOND)] * 3 + [(numbers[2], 80 * SECOND)] * 3 + [(numbers[3], 5 * SECOND)]
        )


def test_a_tuple_is_kept_once_for_all_streams_it_is_paired_with() -> None:
    pairs = ("s [RANGE 2 SECONDS] a, t", "s [RANGE 2 SECONDS] a, s", "t [RANGE 2 SECONDS] a, s")
    queries = [
        f"SELECT a.k FROM {pair} [RANGE 2 SECONDS] b WHERE a.k = b.k AND a.x > {n}" for n, pair in enumerate(pairs)
    ]
    rows = {name: table([(1, None, x, None, None, None, 1) for x in (0.5, 1.5, 2.5)]) for name in ("s", "t")}
    made = fragments(*queries)
    assert len({f.join_class for f in made}) == 1
    left, right = kept(made, inputs(rows))
    # On the left, all of s are wanted by the first query, and of t the one by the last; on the right all are.
    assert (left.num_rows, right.num_rows) == (4, 6)
    found = filtered(made, [met(left, right)], JoinedPairs)["_fragment"].to_pylist()
    assert [found.count(n) for n in range(3)] == [9, 6, 3]


def test_pairs_of_streams_that_no_query_joins_are_not_made() -> None:
    sql = "SELECT a.k FROM s [RANGE 2 SECONDS] a, t [RANGE 2 SECONDS] b WHERE a.k = b.k AND b.x > 1"
    back = "SELECT a.k FROM t [RANGE 2 SECONDS] a, s [RANGE 2 SECONDS] b WHERE a.k = b.k AND b.x > 1"
    rows = {name: table([(1, None, 2.0, None, None, None, 1)]) for name in ("s", "t")}
    left, right = kept(fragments(sql, back), inputs(rows))
    assert (left.num_rows, right.num_rows, met(left, right).num_rows) == (2, 2, 2)


def random_rows(rng: Random, count: int) -> pa.Table:
    days = (0, 1, 2)
    return table(
        [
            (
                rng.choice((None, 0, 1, 2)),
                rng.choice((None, 0, 1, 2)),
                rng.choice((None, 0.0, -0.0, 1.0, 2.0, NAN)),
                rng.choice((None, "", "a", "A", "b")),
                rng.choice((None, True, False)),
                rng.choice((None, *days)),
                rng.randrange(160) / 4,
            )
            for _ in range(count)
        ]
    )


TIES = ("a.k = b.k", "a.k = b.n", "a.n = b.k", "a.x = b.x", "a.name = b.name", "a.flag = b.flag", "a.day = b.day")
MORE = (
    "a.x = b.k",
    "a.name <> b.name",
    "a.x < b.x",
    "a.k + b.n > 1",
    "a.n > 0",
    "b.k IN (0, 2)",
    "a.name || b.name = 'ab'",
)
ITEMS = "a.k, b.n, a.x + b.x AS x, upper(b.name) AS name, a.at, b.at AS bt"
CALLS = "count(*) AS n, sum(a.k) AS s, max(b.name) AS m, min(a.x) AS x"


def random_join(rng: Random) -> str:
    conditions = rng.sample(TIES, rng.choice((1, 1, 2, 3))) + rng.sample(MORE, rng.randint(0, 2))
    ranges = [f"[RANGE {rng.choice((250, 1000, 5000, 6000, 30000))} MS]" for _ in range(2)]
    one, other = rng.choice("st"), rng.choice("st")
    if rng.random() < 0.4:
        tables = f"{one} [RANGE 5 SECONDS] a, {other} [RANGE 5 SECONDS] b"
        return f"SELECT b.k, {CALLS} FROM {tables} WHERE {' AND '.join(conditions)} GROUP BY b.k"
    return f"SELECT {ITEMS} FROM {one} {ranges[0]} a, {other} {ranges[1]} b WHERE {' AND '.join(conditions)}"


@pytest.mark.parametrize("seed", range(4))
def test_random_joins_together(seed: int) -> None:
    rng = Random(seed)
    queries = list(dict.fromkeys(random_join(rng) for _ in range(40)))
    tables = {name: random_rows(rng, 60) for name in CATALOG}
    made = fragments(*queries)
    pairs = met(*kept(made, inputs(tables)))
    windows = [f for f in made if f.pipeline.window is not None]
    plain = [f for f in made if f.pipeline.window is None]
    logs = {True: windowed(windows, [pairs], JoinedPairs), False: filtered(plain, [pairs], JoinedPairs)}
    with duckdb.connect() as database:
        for name, rows in tables.items():
            database.register(name, rows)
        for f, sql in zip(made, queries, strict=True):
            found = answer(logs[f.pipeline.window is not None], f.number, f.pipeline)
            query, _ = pipelines(sql, CATALOG)
            assert differences(expected(database, query, CATALOG), found) is None, sql
