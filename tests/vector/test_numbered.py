"""Distinct keys of rows: NULL is a key, and so is NaN."""

from __future__ import annotations

import math

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from towpath.vector.evaluate import numbered

ROWS = st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from([0.0, 0.5, math.nan, math.inf]),
    st.none() | st.sampled_from(["", "a", "ß"]),
)
SCHEMA = {"a": pl.Int64, "d": pl.Float64, "s": pl.String}


@given(st.lists(ROWS, min_size=1, max_size=30))
def test_equal_rows_have_one_number_and_each_number_its_values(rows: list[tuple[object, ...]]) -> None:
    keys = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    found = numbered(keys)
    assert found.size == len({repr(row) for row in rows})
    assert set(found.numbers) == set(range(found.size))
    for name in SCHEMA:
        assert found.values[name].gather(found.numbers).equals(keys[name], null_equal=True)


def test_numbers_by_hand() -> None:
    found = numbered(pl.DataFrame({"a": [7, None, 7, 8], "s": ["x", "x", "y", "x"]}))
    assert found.size == 4
    again = numbered(pl.DataFrame({"a": [7, None, 7, None]}))
    assert list(again.numbers) == [0, 1, 0, 1]
    assert again.values["a"].to_list() == [7, None]
