"""Windows worked out by hand: bounds, hops before 1970, keys that are NULL and NaN, sums that do not fit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from tests.vector.running import answer, as_input, fragment, pipelines, windowed

from towpath.arrow import arrow_schema
from towpath.schema import Column, Stream, Type

NAN = float("nan")
TYPES = {"k": Type.STRING, "l": Type.STRING, "b": Type.BIGINT, "i": Type.INT, "d": Type.DOUBLE, "at": Type.TIMESTAMP}
STREAM = Stream("s", tuple(Column(name, type_) for name, type_ in TYPES.items()), "at")
SECOND = 1_000_000


def moment(us: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=us)


def rows(*given: Mapping[str, object]) -> pa.Table:
    return pa.Table.from_pylist([{"at": moment(0), **row} for row in given], arrow_schema(TYPES))


def run(sql: str | Sequence[str], *batches: pa.Table) -> list[tuple]:
    """The answers of all queries, each with the number of its query if there are several."""
    queries = [sql] if isinstance(sql, str) else sql
    made = [pipelines(text, {"s": STREAM})[1][0] for text in queries]
    log = windowed([fragment(n, p) for n, p in enumerate(made)], [as_input(batch, STREAM) for batch in batches])
    found = [(n, *row.values()) for n, p in enumerate(made) for row in answer(log, n, p).to_pylist()]
    return [row[1:] for row in found] if isinstance(sql, str) else found


def ordered(found: list[tuple]) -> list[str]:
    return sorted(map(str, found))


def test_a_tuple_at_the_end_of_a_window_is_in_the_next() -> None:
    sql = "SELECT window_start, window_end, count(*) AS n FROM s [RANGE 10 SECONDS]"
    given = rows({"at": moment(0)}, {"at": moment(10 * SECOND - 1)}, {"at": moment(10 * SECOND)})
    assert sorted(run(sql, given)) == [
        (moment(0), moment(10 * SECOND), 2),
        (moment(10 * SECOND), moment(20 * SECOND), 1),
    ]


def test_hopping_windows_before_1970() -> None:
    sql = "SELECT window_start, count(*) AS n FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS]"
    given = rows({"at": moment(-1)}, {"at": moment(-2 * SECOND)}, {"at": moment(-2 * SECOND - 1)})
    # The first two lie in the pane from -2 s, the third in that from -4 s; each is in three windows.
    assert sorted(run(sql, given)) == [
        (moment(-8 * SECOND), 1),
        (moment(-6 * SECOND), 3),
        (moment(-4 * SECOND), 3),
        (moment(-2 * SECOND), 2),
    ]


def test_batches_are_merged() -> None:
    items = "k, count(*) AS n, sum(b) AS s, avg(b) AS a, min(d) AS lo, max(l) AS hi"
    sql = f"SELECT {items} FROM s [RANGE 1 SECOND] GROUP BY k"
    first = rows({"k": "x", "b": 1, "d": 2.5, "l": "a"}, {"k": "y", "b": None, "d": None, "l": None})
    second = rows({"k": "x", "b": 4, "d": -1.0, "l": "ab"}, {"k": "y", "b": None, "d": NAN, "l": None})
    found = run(sql, first, second)
    assert ordered(found) == ordered([("x", 2, 5, 2.5, -1.0, "ab"), ("y", 2, None, None, NAN, None)])


def test_keys_that_are_null_nan_and_zero() -> None:
    sql = "SELECT d, k, count(*) AS n FROM s [RANGE 1 SECOND] GROUP BY d, k"
    values = (NAN, None, 0.0, -0.0, NAN, None)
    found = run(sql, rows(*({"d": v} for v in values)), rows({"d": -0.0}, {"d": NAN, "k": ""}))
    assert ordered(found) == ordered([(NAN, None, 2), (None, None, 2), (0.0, None, 3), (NAN, "", 1)])


def test_nan_is_the_largest() -> None:
    sql = "SELECT min(d) AS lo, max(d) AS hi FROM s [RANGE 1 SECOND]"
    assert ordered(run(sql, rows({"d": NAN}, {"d": float("inf")}), rows({"d": None}))) == ["(inf, nan)"]
    assert ordered(run(sql, rows({"d": NAN}, {"d": None}), rows({"d": NAN}))) == ["(nan, nan)"]


@pytest.mark.parametrize(
    ("values", "total", "average"),
    [
        ((2**63 - 1, 1), None, 2.0**62),
        ((2**63 - 1, 1, -1), 2**63 - 1, (2**63 - 1) / 3),
        ((-(2**63), -1), None, -(2.0**62)),
        ((-(2**63), 2**63 - 1), -1, -0.5),
        ((-(2**63),), -(2**63), -(2.0**63)),
        ((-1, -1), -2, -1.0),
        ((2**32, 2**32 - 1), 2**33 - 1, (2**33 - 1) / 2),
    ],
)
def test_sums_are_exact_and_null_if_they_do_not_fit(values: tuple[int, ...], total: int | None, average: float) -> None:
    sql = "SELECT sum(b) AS s, avg(b) AS a FROM s [RANGE 1 SECOND]"
    together = rows(*({"b": v} for v in values))
    apart = [rows({"b": v}) for v in reversed(values)]
    assert run(sql, together) == run(sql, *apart) == [(total, average)]


def test_sums_of_ints_do_not_overflow() -> None:
    sql = "SELECT sum(i) AS s, avg(i) AS a, min(i) AS lo FROM s [RANGE 1 SECOND]"
    given = rows(*[{"i": 2**31 - 1}] * 3, {"i": None})
    assert run(sql, given) == [(3 * (2**31 - 1), 2.0**31 - 1, 2**31 - 1)]


def test_texts_of_several_queries_in_one_column() -> None:
    queries = [
        "SELECT min(k) AS lo, max(k) AS hi FROM s [RANGE 1 SECOND]",
        "SELECT min(l) AS lo, max(l) AS hi FROM s [RANGE 1 SECOND]",
        "SELECT min(k || l) AS lo, max(upper(k)) AS hi FROM s [RANGE 1 SECOND] WHERE b = 1",
        "SELECT min(i) AS lo, max(i) AS hi FROM s [RANGE 1 SECOND]",
    ]
    given = rows({"k": "b", "l": None, "b": 1}, {"k": None, "l": None}, {"k": "é", "l": "", "b": 1, "i": 7})
    found = run(queries, given, rows({"k": "a", "l": None}))
    assert found == [(0, "a", "é"), (1, "", ""), (2, "é", "É"), (3, 7, 7)]


def test_having_and_outputs_of_groups_and_aggregates() -> None:
    sql = (
        "SELECT upper(k) AS u, sum(b) * 2 + 1 AS s, window_end FROM s [RANGE 1 SECOND] "
        "GROUP BY k HAVING count(*) > 1 AND lower(k) <> 'z'"
    )
    given = rows(*({"k": k, "b": 3} for k in ("x", "x", "y", "z", "z")), {"k": None, "b": 1}, {"k": None, "b": 1})
    # Of the group NULL the second condition is NULL.
    assert run(sql, given) == [("X", 13, moment(SECOND))]


def test_groups_alone() -> None:
    sql = "SELECT k FROM s [RANGE 1 SECOND] GROUP BY k"
    assert ordered(run(sql, rows({"k": "x"}, {"k": "x"}, {"k": None}), rows({"k": "x"}))) == ordered([("x",), (None,)])


def test_a_row_that_two_conditions_hold_for_counts_once() -> None:
    sql = "SELECT count(*) AS n FROM s [RANGE 1 SECOND] WHERE i IN (1, 2, 1) AND i <> 5"
    assert run(sql, rows({"i": 1}, {"i": 2}, {"i": 3}, {"i": None})) == [(2,)]


def test_nothing_matches() -> None:
    sql = "SELECT count(*) AS n FROM s [RANGE 1 SECOND] WHERE i = 1"
    assert run(sql, rows({"i": 2}), rows()) == []
