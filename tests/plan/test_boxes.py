"""Looking a tuple up in boxes is the same as evaluating the condition. DuckDB says what the condition is."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.arrow import ARROW
from towpath.lang import parse
from towpath.plan.boxes import MOST_BOXES, Box, boxes
from towpath.plan.build import build, optimise
from towpath.plan.operators import Filter, column_types
from towpath.plan.pipeline import Pipeline
from towpath.schema import Column, Stream, Type

from .cases import pipeline

CATALOG = {"s": Stream("s", (*(Column(f"c_{t.value}", t) for t in Type), Column("at", Type.TIMESTAMP)), "at")}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
EDGE = 2**53
INTS = [None, -(2**31), -4, -3, -1, 0, 1, 2, 3, 4, 2**31 - 1]
BIGINTS = [*INTS, -(2**63), -EDGE - 1, EDGE - 1, EDGE, EDGE + 1, 2**62 + 1, 2**63 - 2, 2**63 - 1]
DOUBLES = [None, -math.inf, -2.5, -0.0, 0.0, 5e-324, 0.1, 2.5, math.nextafter(2.5, 3), 3.0, 1.7976931348623157e308]
SMALLEST = "-9223372036854775808"
UTC = dt.UTC
DB = duckdb.connect()
# Per type: the column's values, and the constants it is compared with as they are written.
CASES: dict[Type, tuple[list[Any], list[str]]] = {
    Type.INT: (
        INTS,
        [
            "0",
            "3",
            "-3",
            "2.5",
            "-2.5",
            "3.0",
            "-0.0",
            "1e300",
            "9223372036854775807",
            "5000000000",
            "-9223372036854775808",
        ],
    ),
    Type.BIGINT: (
        BIGINTS,
        [
            "3",
            "-3.5",
            "9007199254740991",
            "9007199254740992.0",
            "9223372036854775807",
            "4.7e18",
            "-9223372036854775808",
        ],
    ),
    Type.DOUBLE: (
        [*DOUBLES, math.inf, math.nan],
        ["0", "-0.0", "0.1", "2.5", "3", "1.7976931348623157e308", "-7", SMALLEST],
    ),
    Type.STRING: (
        [None, "", "a", "a\0", "ab", "b", "it's", "ö", "€", "😀"],
        ["''", "'a'", "'it''s'", "'ö'", "'€'", "'😀'"],
    ),
    Type.DATE: (
        [None, dt.date(1, 1, 1), dt.date(2026, 1, 30), dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date.max],
        ["DATE '2026-01-31'", "'2026-02-01'", "DATE '9999-12-31'", "DATE '0001-01-01'"],
    ),
    Type.TIMESTAMP: (
        [
            None,
            dt.datetime(2026, 1, 31, 12, tzinfo=UTC),
            dt.datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC),
            dt.datetime(2026, 1, 31, 11, 59, 59, 999_999, tzinfo=UTC),
            dt.datetime.max.replace(tzinfo=UTC),
        ],
        [
            "TIMESTAMP '2026-01-31 12:00:00'",
            "TIMESTAMP '2026-01-31 12:00:00.000001'",
            "TIMESTAMP '9999-12-31 23:59:59.999999'",
        ],
    ),
}


def matching(pipe: Pipeline, value: Any) -> int:
    return sum(_matches(box, value) for box in pipe.boxes)


def _matches(box: Box, value: Any) -> bool:
    """As a carrier does it: NULL matches nothing that is asked, NaN is above everything."""
    if value is None:
        return not (box.equals or box.ranges)
    inside = all(_key(value) == _key(asked) for _, asked in box.equals)
    for _, interval in box.ranges:
        inside &= interval.lo is None or _key(value) >= _key(interval.lo)
        inside &= interval.hi is None or _key(value) < _key(interval.hi)
    return inside


def _key(value: Any) -> Any:
    return (math.isnan(value), value) if isinstance(value, float) else (False, value)


def evaluated(condition: str, type_: Type, values: Iterable[Any]) -> list[bool]:
    """Whether DuckDB finds the condition on column v true. A fraction is a double, as in the language."""
    # Without a time zone, in which DuckDB would need an extension; all times are UTC.
    arrow = pa.timestamp("us") if type_ is Type.TIMESTAMP else ARROW[type_]
    DB.register("samples", pa.table({"v": pa.array(values, arrow)}))
    return [bool(found) for (found,) in DB.sql(f"SELECT {condition} FROM samples").fetchall()]


def as_double(constant: str) -> str:
    return f"CAST({constant} AS DOUBLE)" if "." in constant or "e" in constant else constant


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("type_", "constant"), [(t, c) for t, (_, constants) in CASES.items() for c in constants])
def test_a_comparison(type_: Type, constant: str, operator: str) -> None:
    name, (values, _) = f"c_{type_.value}", CASES[type_]
    made = pipeline(f"SELECT at FROM s WHERE {name} {operator} {constant}", CATALOG)
    if made.residuals:
        assert made.boxes == (Box(),)
        return
    numeric = as_double(constant) if type_.numeric else constant
    expected = evaluated(f"v {operator} {numeric}", type_, values)
    assert [matching(made, value) for value in values] == [int(e) for e in expected]


RESIDUAL = {
    "c_int = 2.5": "no integer is 2.5, and no range says so",
    "c_bigint > 9223372036854775807": "nothing lies above",
    "c_bigint = 9007199254740992.0": "from 2^53 on a double stands for several integers",
    "c_date <= DATE '9999-12-31'": "nothing lies above",
    "c_timestamp <= TIMESTAMP '9999-12-31 23:59:59.999999'": "nothing lies above",
    "c_int + 1 = 3": "not a column",
    "c_string LIKE 'a%'": "not a comparison",
    "NOT (c_int = 3)": "not a comparison",
    "c_boolean = (c_int > 3)": "not a constant",
    "c_int IS NULL": "not a comparison",
    "TRUE": "not a column",
}


@pytest.mark.parametrize("condition", RESIDUAL)
def test_what_fits_no_box_stays_a_condition(condition: str) -> None:
    made = pipeline(f"SELECT at FROM s WHERE {condition}", CATALOG)
    assert (made.boxes, len(made.residuals)) == ((Box(),), 1)


@pytest.mark.parametrize("constant", ["0", "-0.0", "2.5", "-3", "'a'", "DATE '2026-01-31'", "TIMESTAMP '2026-01-31'"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_what_fits_a_box_is_one_on_either_side(constant: str, operator: str) -> None:
    column = {"'": "c_string", "D": "c_date", "T": "c_timestamp"}.get(constant[0], "c_double")
    made = pipeline(f"SELECT at FROM s WHERE {constant} {operator} {column}", CATALOG)
    assert made.residuals == ()
    assert made.boxes != (Box(),)


@pytest.mark.parametrize(
    ("condition", "matched"),
    [("c_boolean", True), ("NOT c_boolean", False), ("c_boolean = FALSE", False), ("c_boolean <> FALSE", True)],
)
def test_booleans(condition: str, matched: bool) -> None:
    made = pipeline(f"SELECT at FROM s WHERE {condition}", CATALOG)
    assert [matching(made, v) for v in (True, False, None)] == [matched, not matched, False]


ATOMS = st.one_of(
    st.builds("v {} {}".format, st.sampled_from(OPERATORS), st.integers(-3, 3)),
    st.builds("v {} {}".format, st.sampled_from(OPERATORS), st.sampled_from([0.5, -2.5, 2.0])),
    st.lists(st.integers(-3, 3), min_size=1, max_size=4).map(lambda v: f"v IN ({', '.join(map(str, v))})"),
)


@given(st.lists(ATOMS, min_size=1, max_size=5), st.sampled_from([Type.INT, Type.BIGINT, Type.DOUBLE]))
@settings(max_examples=150, deadline=None)
def test_a_conjunction(atoms: list[str], type_: Type) -> None:
    condition = " AND ".join(atoms)
    conjuncts, types = _conjuncts(condition.replace("v", f"c_{type_.value}"))
    found, rest = boxes(conjuncts, types)
    if rest:
        return
    values = [None, *range(-5, 6)] if type_.integral else [None, math.nan, *(n / 4 for n in range(-16, 17))]
    matched = [sum(_matches(box, v) for box in found) for v in values]
    assert matched == [int(e) for e in evaluated(condition, type_, values)]


def _conjuncts(condition: str) -> tuple[Any, Any]:
    plan = optimise(build(parse(f"SELECT at FROM s WHERE {condition}", CATALOG)), CATALOG)
    filter_ = plan.child
    assert isinstance(filter_, Filter)
    return filter_.conjuncts, column_types(plan, CATALOG)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("c_int = 3 AND c_int > 1 AND c_int <> 7", 1),
        ("c_int = 3 AND c_int = 4", 1),
        ("c_int IN (1, 2, 3) AND c_int IN (3, 4)", 1),
        (" AND ".join(f"c_int <> {n}" for n in range(20)), 2),
        (" AND ".join(f"c_int <> {2 * n}" for n in range(20)), 21),
    ],
)
def test_boxes_that_nothing_can_match_are_left_out(condition: str, rows: int) -> None:
    assert len(pipeline(f"SELECT at FROM s WHERE {condition}", CATALOG).boxes) == rows


def test_boxes_do_not_multiply_without_end() -> None:
    lists = [f"c_{t} IN ({', '.join(map(str, range(9)))})" for t in ("int", "bigint", "double")]
    made = pipeline(f"SELECT at FROM s WHERE {' AND '.join(lists)}", CATALOG)
    assert len(made.boxes) <= MOST_BOXES
    assert len(made.residuals) == 2
