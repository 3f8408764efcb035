from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.plan.expressions import form
from towpath.plan.slots import LONGEST_PATTERN, fits
from towpath.plan.templates import (
    MOST_SLOTS,
    Template,
    merge_all,
    template_of,
    universal,
    universal_for,
)
from towpath.plan.trees import Grouped

from .cases import pipeline, workload

seeds = st.integers(0, 10_000)


def same_family(templates: list[Template]) -> list[tuple[Template, Template]]:
    return [(a, b) for a, b in combinations(templates, 2) if a.family == b.family]


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_merging_covers_both_and_changes_nothing_that_is_covered(seed: int) -> None:
    templates = [template_of(p) for p in workload(seed)]
    for a, b in same_family(templates):
        merged = a.merge(b)
        assert merged.covers(a) and merged.covers(b)
        assert b.merge(a).covers(merged) and merged.covers(b.merge(a))
        assert a.covers(b) == (merged == a)
    for a in templates:
        assert a.covers(a)
        assert a.merge(a) == a


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_few_templates_cover_a_workload(seed: int) -> None:
    templates = [template_of(p) for p in workload(seed)]
    merged = merge_all(templates)
    assert all(any(m.covers(t) for m in merged) for t in templates)
    assert len(merged) <= len(set(templates))
    assert {m.family for m in merged} == {t.family for t in templates}
    assert all(m.fits or m in templates for m in merged)
    assert merge_all(merged) == merged


def test_constants_streams_and_windows_are_not_part_of_a_template() -> None:
    sql = "SELECT a.mph FROM {} [RANGE {} SECONDS] a, {} [RANGE {} SECONDS] b WHERE a.car_id = b.car_id AND a.lane = {}"
    templates = {
        template_of(pipeline(sql.format(*values)))
        for values in [
            ("sensor1", 2, "sensor2", 2, 1),
            ("sensor3", 3, "sensor1", 4, 7),
            ("sensor2", 1, "sensor2", 4, 0),
        ]
    }
    assert len(templates) == 1


DIFFERENT = {
    "the schema": ("SELECT price FROM bids", "SELECT reserve FROM auctions"),
    "the kind of window": (
        "SELECT count(*) AS n FROM bids [RANGE 4 SECONDS]",
        "SELECT count(*) AS n FROM bids [RANGE 4 SECONDS SLIDE 2 SECONDS]",
    ),
    "the magnitude of the join window": (
        "SELECT a.mph FROM sensor1 [RANGE 5 SECONDS] a, sensor2 [RANGE 1 SECOND] b WHERE a.car_id = b.car_id",
        "SELECT a.mph FROM sensor1 [RANGE 6 SECONDS] a, sensor2 [RANGE 1 SECOND] b WHERE a.car_id = b.car_id",
    ),
    "the join columns": (
        "SELECT a.mph FROM sensor1 [RANGE 4 SECONDS] a, sensor2 [RANGE 4 SECONDS] b WHERE a.car_id = b.car_id",
        "SELECT a.mph FROM sensor1 [RANGE 4 SECONDS] a, sensor2 [RANGE 4 SECONDS] b WHERE a.lane = b.lane",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_family_is_distinguished_by(what: str) -> None:
    one, other = (template_of(pipeline(sql)) for sql in DIFFERENT[what])
    assert one.family != other.family
    assert len(merge_all([one, other])) == 2


def test_a_plan_does_not_grow_without_end() -> None:
    sql = "SELECT price FROM bids WHERE {}"
    columns = ("price", "lane", "auction", "bidder")
    operators = ("<", "<=", "=", "<>")
    conditions = [f"{x} - {y} {o} {z}" for x in columns for y in columns for z in columns for o in operators if x != y]
    merged = merge_all(template_of(pipeline(sql.format(c))) for c in conditions)
    assert all(m.fits for m in merged)
    assert len(merged) == math.ceil(len(conditions) / MOST_SLOTS)


def test_a_shape_used_twice_has_two_places() -> None:
    template = template_of(pipeline("SELECT price * 2 AS a, price * 3 AS b FROM bids"))
    assert [slot.copy for slot in template.computed] == [1, 2]


def test_what_is_grouped_is_part_of_the_shape() -> None:
    """Else a template of both would take the one's group for what the other calculates."""
    window = "FROM bids [RANGE 4 SECONDS]"
    grouped = pipeline(f"SELECT lower(channel) || 'x' AS a, count(*) AS n {window} GROUP BY lower(channel)")
    calculated = pipeline(f"SELECT lower(channel) || 'x' AS a, count(*) AS n {window} GROUP BY channel")
    shapes = [made.computed[0].slot for made in (grouped, calculated)]
    assert shapes[0] != shapes[1]
    assert [form(slot.plain) for slot in shapes[:1]] == [form(slot.plain) for slot in shapes[1:]]
    assert len(template_of(grouped).merge(template_of(calculated)).computed) == 2


def test_a_group_is_not_looked_for_inside_an_aggregate() -> None:
    made = pipeline("SELECT max(lane) + lane AS a FROM bids [RANGE 4 SECONDS] GROUP BY lane")
    (bound,) = made.computed
    (group,) = bound.slot.expr.find_all(Grouped)
    assert group.parent is bound.slot.expr


def test_one_universal_template_for_all_filters_and_one_for_all_windows_of_a_class() -> None:
    filters = [
        "SELECT price FROM bids WHERE channel = 'web'",
        "SELECT lane + 1 AS n, upper(channel) AS c FROM bids WHERE price * 2 > 5 AND channel LIKE 'w%'",
    ]
    windows = [
        "SELECT count(*) AS n FROM bids [RANGE 4 SECONDS]",
        "SELECT lane, avg(price) AS p FROM bids [RANGE 4 SECONDS SLIDE 1 SECOND] GROUP BY lane HAVING count(*) > 2",
    ]
    (of_filters,) = {universal(template_of(pipeline(sql))) for sql in filters}
    (of_windows,) = {universal(template_of(pipeline(sql))) for sql in windows}
    assert of_filters is not None and of_windows is not None
    assert (of_filters.family.kind, of_windows.family.kind) == ("universal filter", "universal aggregate")
    assert of_windows.family.stateful and not of_filters.family.stateful
    assert merge_all([of_filters, of_windows, of_filters]) == [of_filters, of_windows]
    (elsewhere,) = {universal(template_of(pipeline(f"SELECT mph FROM sensor{n} WHERE mph > 1"))) for n in (1, 2)}
    assert elsewhere is not None and elsewhere != of_filters and not of_filters.covers(elsewhere)


def test_least_and_greatest_texts_have_a_universal_template_of_their_own() -> None:
    """An aggregate that keeps texts cannot be hashed, and nobody else is to pay for that."""
    numbers, texts = (
        universal_for(pipeline(f"SELECT max({column}) AS m FROM bids [RANGE 10 SECONDS]"))
        for column in ("price", "channel")
    )
    assert numbers is not None and texts is not None
    assert not numbers.covers(texts) and not texts.covers(numbers)
    assert numbers.family.kind == texts.family.kind == "universal aggregate"


def test_one_universal_template_for_all_joins_of_two_classes() -> None:
    joins = [
        "SELECT a.mph FROM sensor1 [RANGE 1 SECOND] a, sensor2 [RANGE 1 DAY] b WHERE a.car_id = b.car_id",
        "SELECT b.lane FROM sensor2 [RANGE 1 HOUR] a, sensor2 [RANGE 1 SECOND] b WHERE a.lane = b.lane AND a.mph > 1",
    ]
    counts = [
        f"SELECT count(*) AS n {sql[13:].replace('1 DAY', '1 SECOND').replace('1 HOUR', '1 SECOND')}" for sql in joins
    ]
    (of_joins,) = {universal_for(pipeline(sql)) for sql in joins}
    (of_counts,) = {universal_for(pipeline(sql)) for sql in counts}
    assert of_joins is not None and of_counts is not None
    assert of_joins.family.kind == "universal 2-way join" and of_joins.family.stateful
    assert of_counts.family.kind == "universal 2-way join + aggregate"
    assert of_joins.family.keys == () and of_joins.family.reach_us == 0


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(
            "SELECT a.mph FROM sensor2 [RANGE 1 SECOND] a, sensor1 [RANGE 1 SECOND] b, sensor1 [RANGE 1 SECOND] c "
            "WHERE a.car_id = b.car_id AND b.lane = c.lane",
            id="a join of more than two",
        ),
        pytest.param("SELECT count(DISTINCT channel) AS n FROM bids [RANGE 4 SECONDS]", id="what cannot be merged"),
        pytest.param(
            f"SELECT {', '.join(f'price * {n} AS x{n}' for n in range(2, 99))} FROM bids", id="more than fixed columns"
        ),
    ],
)
def test_what_has_to_have_a_plan_of_its_own(sql: str) -> None:
    assert universal(template_of(pipeline(sql))) is None


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_a_template_knows_as_much_of_columns_as_its_pipelines(seed: int) -> None:
    for made in workload(seed):
        assert (universal_for(made) is not None) == fits(made)


@pytest.mark.parametrize("length", [LONGEST_PATTERN, LONGEST_PATTERN + 1])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT channel LIKE '{}' AS x FROM bids",
        "SELECT price FROM bids WHERE channel LIKE '{}'",
        "SELECT count(*) AS n FROM bids [RANGE 1 SECOND] GROUP BY channel LIKE '{}'",
    ],
)
def test_long_patterns_have_plans_of_their_own(sql: str, length: int) -> None:
    made = pipeline(sql.format("%" + "a" * (length - 1)))
    assert (universal_for(made) is None) == (length > LONGEST_PATTERN)
