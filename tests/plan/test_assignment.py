from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.arrow import ARROW
from towpath.plan.assignment import Row, columns, log_columns, rows
from towpath.plan.templates import Template, merge_all, template_of
from towpath.schema import Type

from .cases import pipeline, workload


def types(template: Template) -> dict[tuple[str, str], Type]:
    return {
        (f"i{n}", column): Type(type_)
        for n, schema in enumerate(template.family.classes)
        for column, type_ in schema
        if column
    }


def assigned(sql: str, template: Template | None = None) -> list[Row]:
    made = pipeline(sql)
    return rows(7, made, template or template_of(made))


def test_a_filter() -> None:
    sql = "SELECT price FROM bids WHERE channel IN ('web', 'app') AND lane > 2 AND price + lane < 9 AND price * 2 > 5"
    common = {"_fragment": 7, "_probe": 0, "s_i0": "bids", "lo_i0_lane": 3, "hi_i0_lane": None}
    constants = {"residuals_mask0": 3, "r0_p0": 2, "r0_p1": 5, "r1_p0": 9}
    assert assigned(sql) == [common | constants | {"e_i0_channel": channel} for channel in ("app", "web")]


def test_an_aggregate() -> None:
    sql = "SELECT count(*) + 5 AS n FROM bids [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY lane HAVING max(price) > 1.5"
    assert assigned(sql) == [
        {
            **{"_fragment": 7, "_probe": 0, "s_i0": "bids", "w_range": 4_000_000, "w_slide": 2_000_000},
            **{"groups_mask0": 1, "aggregates_mask0": 3},
            **{"computed_mask0": 1, "x0_p0": 5, "having_mask0": 1, "h0_p0": 1.5},
        }
    ]


def test_a_join() -> None:
    sql = (
        "SELECT a.mph FROM sensor2 [RANGE 1 SECOND] a, sensor1 [RANGE 3 SECONDS] b "
        "WHERE a.car_id = b.car_id AND a.type = 'Car' AND b.lane <> 3"
    )
    common = {"_fragment": 7, "_probe": 0, "s_i0": "sensor2", "s_i1": "sensor1", "d_i0": 1_000_000, "d_i1": 3_000_000}
    equal = {"e_i0_type": "Car"}
    assert assigned(sql) == [
        common | equal | {"lo_i1_lane": None, "hi_i1_lane": 3},
        common | equal | {"lo_i1_lane": 4, "hi_i1_lane": None},
    ]


def test_a_row_in_a_wider_template_uses_its_own_slots() -> None:
    narrow = "SELECT price - 1 AS x FROM bids WHERE price + lane < 3"
    wide = template_of(pipeline("SELECT price * 5 AS y FROM bids WHERE channel = 'a' AND channel LIKE 'b%'")).merge(
        template_of(pipeline(narrow))
    )
    assert assigned(narrow, wide) == [
        {
            **{"_fragment": 7, "_probe": 1, "s_i0": "bids"},
            **{"residuals_mask0": 2, "r1_p0": 3, "computed_mask0": 2, "x1_p0": 1},
        }
    ]


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_a_shape_used_several_times_has_its_constants_apart(copies: int) -> None:
    (row,) = assigned("SELECT price FROM bids WHERE " + " AND ".join(f"price + lane <> {n}" for n in range(copies)))
    assert row["residuals_mask0"] == 2**copies - 1
    assert [row[f"r{n}_p0"] for n in range(copies)] == list(range(copies))


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_every_row_fits_the_columns_of_its_table(seed: int) -> None:
    made = workload(seed)
    merged = merge_all(template_of(p) for p in made)
    for n, pipe in enumerate(made):
        template = next(m for m in merged if m.covers(template_of(pipe)))
        table = columns(template, types(template))
        for row in rows(n, pipe, template):
            assert row.keys() <= table.keys()
            for column, value in row.items():
                pa.array([value], ARROW[table[column]])
        assert len(list(log_columns(pipe, template))) == len(pipe.outputs)
