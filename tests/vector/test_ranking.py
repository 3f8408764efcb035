"""First rows, by hand: of several fragments at once, in parts, with values at the edges."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from towpath.plan.ranking import RankedBy, load
from towpath.vector.ranking import first_rows, numbered_rows

NAN = float("nan")
BY_X = RankedBy(2, "row_number", (), (("x", True, False),), ("k",), None, "rank")


def rows(*given: tuple[int, int, str | None, float | None, int]) -> pa.Table:
    """Fragment, window, k, x, and how many equal tuples."""
    fragment, window, k, x, count = zip(*given, strict=True)
    ends = [dt.datetime(2026, 1, 1, 0, 0, second, tzinfo=dt.UTC) for second in window]
    return pa.table(
        {
            "_fragment": pa.array(fragment, pa.int32()),
            "_time": pa.array(ends, pa.timestamp("us", tz="UTC")),
            "k": pa.array(k, pa.string()),
            "x": pa.array(x, pa.float64()),
            "count": pa.array(count, pa.int64()),
            "rank": pa.nulls(len(k), pa.int64()),
        }
    )


def found(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [table[name].to_pylist() for name in ("_fragment", "k", "x", "rank")]
    return sorted(zip(*columns, strict=True), key=repr)


def ranked(by: RankedBy, *given: tuple[int, int, str | None, float | None, int]) -> list[tuple[object, ...]]:
    return [row[1:] for row in found(numbered_rows(rows(*given), {1: by}))]


def test_each_window_by_itself() -> None:
    given = [(1, 10, "a", 1.0, 1), (1, 10, "b", 3.0, 1), (1, 10, "c", 2.0, 1), (1, 20, "d", 0.5, 1)]
    assert ranked(BY_X, *given) == [("b", 3.0, 1), ("c", 2.0, 2), ("d", 0.5, 1)]


def test_nan_is_the_largest_and_null_the_smallest() -> None:
    given = [(1, 10, "a", NAN, 1), (1, 10, "b", None, 1), (1, 10, "c", -1.0, 1), (1, 10, "d", float("inf"), 1)]
    assert [row[0] for row in ranked(replace(BY_X, most=4), *given)] == ["a", "b", "c", "d"]
    assert [row[0] for row in ranked(BY_X, *given)] == ["a", "d"]
    upwards = replace(BY_X, order=(("x", False, True),))
    assert [row[0] for row in ranked(upwards, *given)] == ["b", "c"]
    assert [row[0] for row in ranked(replace(upwards, order=(("x", False, False),)), *given)] == ["c", "d"]


def test_both_zeros_are_one_value() -> None:
    given = [(1, 10, "a", -0.0, 1), (1, 10, "b", 0.0, 1), (1, 10, "c", -0.0, 1)]
    assert [row[::2] for row in ranked(replace(BY_X, most=1, function="rank"), *given)] == [
        ("a", 1),
        ("b", 1),
        ("c", 1),
    ]
    assert [row[0] for row in ranked(replace(BY_X, order=(("x", False, True),)), *given)] == ["a", "b"]


def test_nulls_and_nans_are_partitions() -> None:
    by = RankedBy(1, "row_number", ("x",), (("k", True, False),), (), None, "rank")
    given = [(1, 10, k, x, 1) for k, x in (("a", NAN), ("b", NAN), ("c", None), ("d", None), (None, None))]
    assert [row[0] for row in ranked(by, *given)] == ["b", "d"]


def test_a_row_stands_for_several_tuples() -> None:
    given = [(1, 10, "a", 3.0, 2), (1, 10, "b", 2.0, 3), (1, 10, "c", 1.0, 1)]
    by = replace(BY_X, most=4, count="count")
    assert ranked(by, *given) == [("a", 3.0, 1), ("a", 3.0, 2), ("b", 2.0, 3), ("b", 2.0, 4)]
    # All that have a rank stay, or none.
    assert ranked(replace(by, function="rank"), *given) == [("a", 3.0, 1)] * 2 + [("b", 2.0, 3)] * 3
    dense = ranked(replace(by, function="dense_rank", most=2), *given)
    assert dense == [("a", 3.0, 1)] * 2 + [("b", 2.0, 2)] * 3


def test_fragments_with_numbers_and_orders_of_their_own() -> None:
    given = rows(*((f, 10, k, x, 1) for f in (1, 2, 3) for k, x in (("a", 1.0), ("b", 3.0), ("c", 2.0))))
    upwards = replace(BY_X, most=1, order=(("x", False, True),))
    rankings = {1: BY_X, 2: replace(BY_X, most=1), 3: upwards}
    whole = [(1, "b", 3.0, 1), (1, "c", 2.0, 2), (2, "b", 3.0, 1), (3, "a", 1.0, 1)]
    assert found(numbered_rows(given, rankings)) == whole
    assert found(numbered_rows(in_parts(given, rankings, 2), rankings)) == whole


def in_parts(given: pa.Table, rankings: dict[int, RankedBy], size: int) -> pa.Table:
    """What is left of rows that come a few at a time."""
    kept = given.slice(0, 0)
    for start in range(0, given.num_rows, size):
        kept = first_rows(pa.concat_tables([kept, given.slice(start, size)]), rankings)
    assert kept.num_rows <= sum(by.most for by in rankings.values())
    return kept


def test_what_was_written_down_is_read() -> None:
    by: Sequence[RankedBy] = (BY_X, RankedBy(1, "rank", ("a", "b"), (), (), "count", "l3"))
    assert [load(one.dump()) for one in by] == list(by)
