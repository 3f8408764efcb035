from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.arrow import ARROW
from towpath.lab.testing.queries import random_shape
from towpath.lab.testing.recording import random_recording
from towpath.plan.assignment import (
    Row,
    columns,
    group_columns,
    has_outputs,
    log_columns,
    renamed_columns,
    rows,
    with_plain_columns,
)
from towpath.plan.pipeline import Pipeline, pipelines
from towpath.plan.serial import load_pipeline
from towpath.plan.templates import Template, merge_all, template_of, universal
from towpath.schema import Type

from .cases import pipeline, planned, workload


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


def test_outputs_in_another_order_are_the_same_columns() -> None:
    """By hand: who shares a fragment reads its columns, wherever the query puts them."""
    first, second = (
        pipeline("SELECT lane + 1 AS a, lane + 2 AS b FROM bids"),
        pipeline("SELECT lane + 2 AS a, lane + 1 AS b FROM bids"),
    )
    template = template_of(first)
    assert first.signature == second.signature
    assert rows(7, first, template) == rows(7, second, template)
    assert list(log_columns(first, template)) == list(reversed(list(log_columns(second, template))))


@given(st.randoms(use_true_random=False), st.integers(0, 7), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_queries_of_equal_signatures_can_share_a_fragment(rng: Any, constants: int, twist: int) -> None:
    """Its rows are the same whoever of them came first, and every item is in one column for all of them."""
    catalog = random_recording(rng).catalog
    shape = random_shape(rng, catalog)
    other = shape.rearranged(rng)
    both = [
        pipelines(planned(text, catalog), catalog) for text in (shape.text(constants), other.text(constants, twist))
    ]
    shown = other.selects[0].shown
    assert shown is not None
    for first, second in zip(*both, strict=True):
        if first.signature == second.signature:
            (template,) = merge_all((template_of(first), template_of(second)))
            assert _sorted(rows(7, first, template)) == _sorted(rows(7, second, template))
            columns_of_items = list(log_columns(first, template))
            assert list(log_columns(second, template)) == [columns_of_items[number] for number in shown]


def _sorted(found: list[Row]) -> list[Row]:
    return sorted(found, key=repr)


def universal_of(made: Pipeline) -> Template:
    found = universal(template_of(made))
    assert found is not None
    return found


def test_in_a_universal_carrier_a_pipeline_is_one_row() -> None:
    made = pipeline("SELECT count(*) AS n FROM bids [RANGE 4 SECONDS SLIDE 2 SECONDS] WHERE channel IN ('web', 'app')")
    (row,) = rows(7, made, universal_of(made))
    assert load_pipeline(str(row.pop("shape")), str(row.pop("constants"))) == made
    assert row == {"_fragment": 7, "s_i0": "bids", "w_range": 4_000_000, "w_slide": 2_000_000}


def test_what_a_fragment_puts_out_keeps_its_meaning_in_a_carrier_of_the_other_kind() -> None:
    made = pipeline(
        "SELECT lane, count(*) AS n, lane + 1 AS m, window_end AS e FROM bids [RANGE 4 SECONDS] GROUP BY lane"
    )
    narrow, wide = template_of(made), universal_of(made)
    there, back = renamed_columns(made, narrow, wide), renamed_columns(made, wide, narrow)
    assert [there.get(c, c) for c in log_columns(made, narrow)] == list(log_columns(made, wide))
    assert [back.get(c, c) for c in log_columns(made, wide)] == list(log_columns(made, narrow))
    assert [there[c] for c in group_columns(made, narrow)] == list(group_columns(made, wide))


def test_who_reads_other_plain_columns_shares_a_compiled_fragment_and_no_universal_one() -> None:
    price, lane, both = (pipeline(f"SELECT {c} FROM bids WHERE price > 1") for c in ("price", "lane", "lane, price"))
    other_order = pipeline("SELECT price AS p, lane AS l FROM bids WHERE price > 1")
    assert len({p.signature for p in (price, lane, both, other_order)}) == 1
    compiled = template_of(both)
    assert all(has_outputs(both, compiled, p) for p in (price, lane, both, other_order))
    wide = universal_of(both)
    assert [has_outputs(both, wide, p) for p in (price, lane, both, other_order)] == [False, False, True, True]
    assert with_plain_columns(both, wide, ()) == both
    lane_at, price_at = log_columns(both, wide)
    assert list(log_columns(other_order, wide)) == [price_at, lane_at]
