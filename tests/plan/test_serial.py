from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.plan.assignment import rows
from towpath.plan.boxes import Box, Interval
from towpath.plan.constants import Value, dump_value, load_value
from towpath.plan.pipeline import Bound, Pipeline
from towpath.plan.serial import dump_pipeline, dump_template, load_pipeline, load_template
from towpath.plan.templates import merge_all, numbered, template_of

from .cases import pipeline, workload

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.dates(),
    st.datetimes().map(lambda at: at.replace(tzinfo=dt.UTC, fold=0)),
)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_template_comes_back_as_itself(seed: int) -> None:
    for template in merge_all(template_of(p) for p in workload(seed)):
        again = load_template(json.loads(json.dumps(dump_template(template))))
        assert again == template
        assert hash(again) == hash(template)


@given(values)
def test_a_value_comes_back_as_itself(value: Value | None) -> None:
    again = load_value(json.loads(json.dumps(dump_value(value))))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("value", [-0.0, math.inf, -math.inf, 5e-324, math.nextafter(2.5, 3)])
def test_every_bit_of_a_double_survives(value: float) -> None:
    again = load_value(json.loads(json.dumps(dump_value(value))))
    assert isinstance(again, float)
    assert again.hex() == value.hex()


# --- pipelines -------------------------------------------------------------------------------------------------------

odd_values = st.one_of(
    values,
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -(2**63), 2**63 - 1, True, 1, 1.0]),
    st.sampled_from(["", "it's", '"', "\\", "%a_b%", "\n", "\0", "😀", "@0", "null", '{"double":"nan"}']),
    st.sampled_from([dt.date.min, dt.date.max, dt.datetime.min.replace(tzinfo=dt.UTC)]),
)


def with_values(pipeline: Pipeline, drawn: Callable[[], Value | None]) -> Pipeline:
    """The same with other constants, whatever their types."""

    def bound(old: Bound) -> Bound:
        return Bound(old.slot, tuple(drawn() or 0 for _ in old.values))

    def box(old: Box) -> Box:
        ranges = tuple((column, Interval(drawn(), drawn())) for column, _ in old.ranges)
        return Box(tuple((column, drawn() or 0) for column, _ in old.equals), ranges)

    return replace(
        pipeline,
        boxes=tuple(map(box, pipeline.boxes)),
        residuals=tuple(map(bound, pipeline.residuals)),
        outputs=tuple(replace(o, bound=o.bound and bound(o.bound)) for o in pipeline.outputs),
        having=tuple(map(bound, pipeline.having)),
    )


def texts(sql: str) -> tuple[str, str]:
    return dump_pipeline(pipeline(sql))


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_pipeline_comes_back_as_itself(seed: int) -> None:
    for made in workload(seed):
        again = load_pipeline(*dump_pipeline(made))
        assert again == made
        assert hash(again) == hash(made)
        assert again.signature == made.signature
        assert rows(7, again, template_of(again)) == rows(7, made, template_of(made))


@given(st.integers(0, 50), st.lists(odd_values, min_size=5))
@settings(max_examples=30, deadline=None)
def test_a_pipeline_keeps_every_constant_as_it_is(seed: int, pool: list[Value | None]) -> None:
    for before in workload(seed)[:5]:
        in_turn = cycle(pool)
        made = with_values(before, in_turn.__next__)
        shape, constants = dump_pipeline(made)
        again = load_pipeline(shape, constants)
        assert shape == dump_pipeline(before)[0]
        assert repr(again) == repr(made)  # NaN equals nothing, and -0.0 equals 0.0
        assert again.signature == made.signature
        assert dump_pipeline(again) == (shape, constants)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_equal_pipelines_have_the_same_texts_and_others_have_not(seed: int) -> None:
    made = workload(seed)
    found = [dump_pipeline(p) for p in made]
    for n, one in enumerate(made):
        assert [one == other for other in made] == [found[n] == text for text in found]


@pytest.mark.parametrize(
    "sql, alike",
    [
        ("SELECT price FROM bids WHERE price > 5", "SELECT price FROM bids WHERE price <= 7.5"),
        ("SELECT mph FROM sensor1 WHERE type LIKE 'a%'", "SELECT mph FROM sensor2 WHERE type LIKE '%''_'"),
        (
            "SELECT id FROM auctions WHERE expires > '2026-01-01'",
            "SELECT id FROM auctions WHERE expires > '1999-01-01'",
        ),
        ("SELECT lane FROM bids WHERE day = DATE '2026-01-01'", "SELECT lane FROM bids WHERE day = DATE '9999-12-30'"),
        (
            "SELECT lane, count(*) AS n FROM sensor1 [RANGE 10 SECONDS] GROUP BY lane HAVING lane * 2 > 5",
            "SELECT lane, count(*) AS n FROM sensor3 [RANGE 1 MINUTE] GROUP BY lane HAVING lane * 2 > 5000000000",
        ),
        (
            "SELECT b.price FROM bids [RANGE 1 SECOND] b, auctions [RANGE 2 SECONDS] a WHERE b.auction = a.id",
            "SELECT b.price FROM bids [RANGE 3 SECONDS] b, auctions [RANGE 9 MINUTES] a WHERE b.auction = a.id",
        ),
        ("SELECT price * 2 AS x FROM bids WHERE hot", "SELECT price * 3 AS x FROM bids WHERE NOT hot"),
    ],
)
def test_alike_queries_have_their_shape_in_common(sql: str, alike: str) -> None:
    (shape, constants), (other_shape, other_constants) = texts(sql), texts(alike)
    assert shape == other_shape
    assert constants != other_constants
    assert load_pipeline(shape, other_constants) == pipeline(alike)


@pytest.mark.parametrize(
    "sql, other",
    [
        ("SELECT price FROM bids WHERE price > 5", "SELECT lane FROM bids WHERE price > 5"),
        ("SELECT price FROM bids WHERE price > 5", "SELECT price FROM bids WHERE lane > 5"),
        ("SELECT price FROM bids WHERE lane IN (1, 2)", "SELECT price FROM bids WHERE lane IN (1, 2, 3)"),
        ("SELECT id FROM auctions", "SELECT id FROM persons"),
    ],
)
def test_a_shape_says_what_is_no_constant(sql: str, other: str) -> None:
    assert texts(sql)[0] != texts(other)[0]


def test_a_group_is_distinguished_from_the_same_expression() -> None:
    window = "FROM bids [RANGE 10 SECONDS] GROUP BY lane"
    made = pipeline(f"SELECT lane + 1 AS x, count(*) AS n {window} HAVING lane % 3 = 1")
    again = load_pipeline(*dump_pipeline(made))
    assert "Grouped" in repr(again.having) and "Grouped" in repr(again.outputs)
    assert repr(again) == repr(made)


def test_copies_of_a_slot_stay_apart() -> None:
    made = pipeline("SELECT price FROM bids WHERE price * 2 > 3 AND price * 2 > 5")
    slots = numbered(b.slot for b in made.residuals)
    assert [slot.copy for slot in slots] == [1, 2]
    made = replace(made, residuals=tuple(Bound(s, b.values) for s, b in zip(slots, made.residuals, strict=True)))
    again = load_pipeline(*dump_pipeline(made))
    assert [b.slot.copy for b in again.residuals] == [1, 2]
    assert again == made


def test_alike_pipelines_that_are_read_have_their_expressions_in_common() -> None:
    shape, constants = texts("SELECT price FROM bids WHERE price * 2 > 3")
    one, other = load_pipeline(shape, constants), load_pipeline(shape, constants.replace("3", "4"))
    assert one.residuals[0].values != other.residuals[0].values
    assert one.residuals[0].slot is other.residuals[0].slot
