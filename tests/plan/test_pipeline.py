from __future__ import annotations

import pytest
from sqlglot import exp

from towpath.lang import expression_text
from towpath.plan.assignment import SWITCHES, log_columns, rows
from towpath.plan.pipeline import MOST_CONDITIONS, MOST_CONSTANTS, Output
from towpath.plan.templates import template_of
from towpath.schema import Type

from .cases import pipeline

OUTPUTS = {
    "SELECT price, channel, price AS again FROM bids": ["column", "column", "column"],
    "SELECT price + 1 AS x, price, 5 AS five, price + 1 AS y FROM bids": ["computed", "column", "computed", "computed"],
    "SELECT window_start, channel, count(*) AS n, count(*) * 2 AS twice, window_end FROM bids [RANGE 5 SECONDS] "
    "GROUP BY channel": ["window_start", "group", "aggregate", "computed", "window_end"],
    "SELECT lane % 3 AS third, lane % 3 + 1 AS next FROM bids [RANGE 5 SECONDS] GROUP BY lane % 3": [
        "group",
        "computed",
    ],
}
LOG_COLUMNS = {
    "SELECT price, channel, price AS again FROM bids": ["c_i0_price", "c_i0_channel", "c_i0_price"],
    "SELECT price + 1 AS x, price, price + 2 AS y, price + 1 AS z FROM bids": ["x0", "c_i0_price", "x1", "x0"],
    "SELECT window_start, channel, count(*) AS n, max(price) AS m, window_end FROM bids [RANGE 5 SECONDS] "
    "GROUP BY lane, channel": ["_born", "g0", "a0", "a1", "_time"],
}


@pytest.mark.parametrize("sql", OUTPUTS)
def test_where_outputs_come_from(sql: str) -> None:
    assert [output.kind for output in pipeline(sql).outputs] == OUTPUTS[sql]


@pytest.mark.parametrize("sql", LOG_COLUMNS)
def test_where_outputs_are_in_the_results_log(sql: str) -> None:
    made = pipeline(sql)
    assert list(log_columns(made, template_of(made))) == LOG_COLUMNS[sql]


def test_constants_are_apart_from_the_shape() -> None:
    sql = "SELECT price * {} AS x FROM bids WHERE channel LIKE '{}' AND round(price, {}) + lane < {}"
    one, other = (pipeline(sql.format(*values)) for values in ((2, "a%", 1, -5), (3, "%b", 1, 7)))
    assert [b.slot for b in one.residuals] == [b.slot for b in other.residuals]
    assert [b.slot for b in one.computed] == [b.slot for b in other.computed]
    assert [expression_text(b.slot.expr) for b in one.residuals] == [
        "ROUND(i0.price, 1) + i0.lane < @0",
        "i0.channel LIKE @0",
    ]
    assert [b.values for b in one.residuals] == [(-5,), ("a%",)]
    assert one.signature != other.signature


def test_constants_inside_a_group_stay_part_of_it() -> None:
    made = pipeline("SELECT lane % 3 AS g, sum(price * 2) + 7 AS s FROM bids [RANGE 5 SECONDS] GROUP BY lane % 3")
    (computed,) = made.computed
    assert expression_text(computed.slot.expr) == "SUM(i0.price * 2) + @0"
    assert computed.values == (7,)
    assert made.outputs[0] == Output("group", slot=made.groups[0])


@pytest.mark.parametrize("number", [MOST_CONDITIONS, MOST_CONDITIONS + 1, 900])
def test_very_many_conditions_become_one(number: int) -> None:
    conditions = " AND ".join(f"price + lane <> {n}" for n in range(number))
    made = pipeline(f"SELECT price FROM bids WHERE {conditions}")
    assert len(made.residuals) == (number if number <= MOST_CONDITIONS else 1)


@pytest.mark.parametrize("number", [MOST_CONSTANTS, MOST_CONSTANTS + 1])
def test_very_many_constants_stay_in_the_shape(number: int) -> None:
    made = pipeline(f"SELECT price FROM bids WHERE lane + 1 IN ({', '.join(map(str, range(number)))})")
    (only,) = made.residuals
    assert only.values == (tuple(range(number + 1)) if number < MOST_CONSTANTS else ())
    assert not only.slot.params or len(only.slot.params) == len(only.values)


def test_every_slot_has_a_switch_of_its_own() -> None:
    wide = ", ".join(f"price + {n} * lane AS p{n}" for n in range(2 * SWITCHES + 1))
    made = pipeline(f"SELECT {wide} FROM bids")
    template = template_of(made)
    (row,) = rows(1, made, template)
    masks = {name: value for name, value in row.items() if "mask" in name}
    assert masks == {"computed_mask0": 2**SWITCHES - 1, "computed_mask1": 2**SWITCHES - 1, "computed_mask2": 1}


def test_join_keys_are_those_that_do_not_follow_from_others() -> None:
    made = pipeline(
        "SELECT a.mph FROM sensor1 [RANGE 1 SECOND] a, sensor2 [RANGE 1 SECOND] b, sensor3 [RANGE 1 SECOND] c "
        "WHERE a.car_id = b.car_id AND b.car_id = c.car_id AND a.car_id = c.car_id AND b.lane = c.lane"
    )
    # car_id ties everybody to i0; lane ties the two it was said of.
    assert len(made.keys) == 3
    assert {left for left, _ in made.keys if left[1] == "car_id"} == {("i0", "car_id")}


def test_the_smallest_bigint_is_a_constant_and_its_negation_is_calculated() -> None:
    smallest = -(2**63)
    made = pipeline(f"SELECT {smallest} AS a, - {smallest} AS b, price FROM bids WHERE auction + 1 IN ({smallest}, 2)")
    assert [bound.values for bound in made.computed] == [(smallest,), (smallest,)]
    assert [bound.slot.type for bound in made.computed] == [Type.BIGINT, Type.BIGINT]
    assert [bound.values for bound in made.residuals] == [(1, 2, smallest)]


def test_abs_of_a_constant_knows_whether_it_is_an_int() -> None:
    """Of the smallest INT it is NULL; as the BIGINT that a parameter is, it would have a value."""
    made = pipeline("SELECT abs(-2147483648) AS a, abs(round(-2147483648)) AS b, abs(-2147483649) AS c FROM bids")
    bounds = [output.bound for output in made.outputs if output.bound is not None]
    assert [bound.values for bound in bounds] == [(-(2**31),), (-(2**31),), (-(2**31) - 1,)]
    assert [bound.slot.expr.find(exp.Cast) is not None for bound in bounds] == [True, True, False]
