from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from towpath.verify import Difference, differences

NAN = float("nan")
INF = float("inf")


def table(*columns: object, names: str = "abcdef") -> pa.Table:
    return pa.table([c if isinstance(c, pa.Array) else pa.array(c) for c in columns], names=list(names[: len(columns)]))


SAME = {
    "other order": (table([1, 2, 3]), table([3, 1, 2])),
    "other names": (table([1]), table([1], names="z")),
    "nulls": (table([None, 1], ["x", None]), table([1, None], [None, "x"])),
    "empty": (table(pa.array([], pa.int64())), table(pa.array([], pa.int64()))),
    "nothing but nulls": (table(pa.array([None], pa.string())), table(pa.array([None]))),
    "nulls of no type": (table(pa.array([None, None])), table(pa.array([None, None]))),
    "booleans": (table([True, None, False]), table([False, True, None])),
    "no columns": (table(), table()),
    "NaN": (table([NAN, 1.0]), table([1.0, NAN])),
    "negative zero": (table([0.0]), table([-0.0])),
    "zero and the rest of a sum": (table([0.0, 1.0]), table([1.0, 1e-17])),
    "the order of a sum": (table([0.1 + 0.2 + 0.3]), table([0.3 + 0.2 + 0.1])),
    "relative": (table([1e15, -1e15]), table([1e15 * (1 + 9e-10), -1e15 * (1 + 9e-10)])),
    "absolute": (table([1e-12, 0.0]), table([9e-10, -9e-10])),
    "crossing a power of two": (table([1.0 - 1e-10, 2.0]), table([1.0 + 1e-10, 2.0 - 1e-10])),
    "near in two columns": (table([1.0, 1.0], [5.0, 9.0]), table([1.0 + 9e-10, 1.0], [5.0 + 4e-9, 9.0])),
    "infinity": (table([INF, -INF]), table([-INF, INF])),
    "widths": (table(pa.array([1, 2], pa.int64())), table(pa.array([2, 1], pa.int32()))),
    "integer and double": (table([1, 2]), table([1.0, 2.0])),
    "kinds of strings": (table(["x", "y"]), table(pa.array(["y", "x"]).dictionary_encode())),
    "instants": (
        table(pa.array([datetime(2026, 1, 1, 12, tzinfo=UTC)], pa.timestamp("us", "UTC"))),
        table(pa.array([datetime(2026, 1, 1, 12, tzinfo=UTC)], pa.timestamp("ns", "Europe/Berlin"))),
    ),
    "timestamps without zone are in UTC": (
        table(pa.array([datetime(2026, 1, 1, 12, tzinfo=UTC)], pa.timestamp("us", "UTC"))),
        table(pa.array([datetime(2026, 1, 1, 12)], pa.timestamp("ms"))),
    ),
    "dates": (table([date(2026, 1, 1)]), table(pa.array([date(2026, 1, 1)], pa.date64()))),
}


@pytest.mark.parametrize("case", SAME)
def test_same(case: str) -> None:
    expected, actual = SAME[case]
    assert differences(expected, actual) is None
    assert differences(actual, expected) is None


OTHER = {
    "missing": (table([1, 2]), table([1]), 1, 0),
    "extra": (table([1]), table([1, 2]), 0, 1),
    "twice": (table([1, 1, 2]), table([1, 2, 2]), 1, 1),
    "null is not zero": (table([None, 1]), table([0, 1]), 1, 1),
    "null is not NaN": (table([None, 1.0]), table([NAN, 1.0]), 1, 1),
    "NaN is no number": (table([NAN, 1.0]), table([2.0, 1.0]), 1, 1),
    "infinity is not large": (table([INF]), table([1e308]), 1, 1),
    "NaN and infinity behind a column that agrees": (
        table([1.0, 1.0], [NAN, INF]),
        table([1.0, 1.0], [2.0, 3.0]),
        2,
        2,
    ),
    "beyond relative": (table([1e6]), table([1e6 * (1 + 3e-9)]), 1, 1),
    "beyond absolute": (table([0.0]), table([3e-9]), 1, 1),
    "case of letters": (table(["x"]), table(["X"]), 1, 1),
    "a microsecond": (
        table(pa.array([1], pa.timestamp("us", "UTC"))),
        table(pa.array([2], pa.timestamp("us", "UTC"))),
        1,
        1,
    ),
    "rows are compared, not columns": (table([1, 2], [1.0, 2.0]), table([1, 2], [2.0, 1.0]), 2, 2),
}


@pytest.mark.parametrize("case", OTHER)
def test_other(case: str) -> None:
    expected, actual, missing, extra = OTHER[case]
    found = differences(expected, actual)
    assert found is not None
    assert (found.missing, found.extra) == (missing, extra)


def test_message_shows_some_rows() -> None:
    found = differences(table(list(range(10)), ["x"] * 10), table([0, None], ["x", "it's"]))
    assert str(found) == "\n".join(
        [
            "9 rows missing, 1 rows extra",
            *(f"  missing: a={n}, b='x'" for n in range(1, 6)),
            "  missing: ... and 4 more",
            '  extra: a=NULL, b="it\'s"',
        ]
    )


def test_columns_that_do_not_fit() -> None:
    assert differences(table([1]), table([1], [2])) == Difference(
        0, 0, columns="expected 1 columns ['a'], got ['a', 'b']"
    )
    assert str(differences(table([1]), table(["1"]))) == "column 1 (a): expected int64, got string"


def test_rows_of_a_large_table() -> None:
    rows = 200_000
    rng = np.random.default_rng(1)
    keys, values = rng.integers(0, 50, rows), rng.random(rows) * 1e6
    order = rng.permutation(rows)
    noisy = (values * (1 + rng.normal(size=rows) * 1e-12))[order]
    expected = table(pa.array(keys), pa.array(values))
    assert differences(expected, table(pa.array(keys[order]), pa.array(noisy))) is None
    noisy[17] += 1
    found = differences(expected, table(pa.array(keys[order]), pa.array(noisy)))
    assert found is not None
    assert (found.missing, found.extra) == (1, 1)


def test_wholly_other_large_tables() -> None:
    rows = 100_000
    rng = np.random.default_rng(2)
    found = differences(table(pa.array(rng.random(rows))), table(pa.array(rng.random(rows) + 2)))
    assert found is not None
    assert (found.missing, found.extra) == (rows, rows)
