"""Equal queries have equal signatures, however they are written; others have not."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.lab.testing.queries import random_shape
from towpath.lab.testing.recording import random_recording
from towpath.plan.templates import template_of

from .cases import CATALOG, pipeline, signatures

CONDITIONS = (
    ("{a}.lane > 3", "3 < {a}.lane"),
    ("{a}.type = 'Car'", "'Car' = {a}.type", "{a}.type IN ('Car')"),
    ("({a}.lane = 1 OR {a}.mph < 5)", "(5 > {a}.mph OR {a}.lane = 1)"),
    ("{a}.lane + {a}.mph * 2 < 9", "2 * {a}.mph + {a}.lane < 9", "9 > {a}.lane + 2 * {a}.mph"),
    ("upper({a}.type) IN ('A', 'B')", "upper({a}.type) IN ('B', 'A', 'B')"),
)
ALIASES = ("a", "b", "c", "d", "zz", "r1", "i1", "i0", "window1")


@given(st.randoms(use_true_random=False), st.integers(0, 7), st.integers(1, 50))
@settings(max_examples=150, deadline=None)
def test_order_of_conditions_aliases_and_join_syntax_do_not_matter(rng: Any, constants: int, twist: int) -> None:
    catalog = random_recording(rng).catalog
    shape = random_shape(rng, catalog)
    assert signatures(shape.text(constants), catalog) == signatures(shape.text(constants, twist), catalog)


@st.composite
def two_spellings(draw: Any) -> tuple[str, str]:
    """One join of 2 to 4 sensors, some of them twice, written in two ways."""
    streams = draw(st.lists(st.sampled_from(["sensor1", "sensor2", "sensor3"]), min_size=2, max_size=4))
    ranges = draw(st.lists(st.sampled_from([1, 2]), min_size=len(streams), max_size=len(streams)))
    own = [draw(st.lists(st.integers(0, len(CONDITIONS) - 1), max_size=2)) for _ in streams]
    link = draw(st.booleans())
    item = draw(st.sampled_from(["{0}.mph - {1}.mph", "{0}.lane", "{1}.mph * {0}.mph"]))
    count = draw(st.booleans())

    def spelled() -> str:
        names = draw(st.permutations(ALIASES))[: len(streams)]
        order = draw(st.permutations(range(len(streams))))
        # Any tree of equalities over all inputs says the same.
        ties = [(order[draw(st.integers(0, n - 1))], order[n]) for n in range(1, len(order))]
        sides = [draw(st.permutations(tie)) for tie in ties]
        where = [f"{names[x]}.car_id = {names[y]}.car_id" for x, y in sides]
        where += [
            draw(st.sampled_from(CONDITIONS[c])).format(a=names[n]) for n, chosen in enumerate(own) for c in chosen
        ]
        where += [f"{names[0]}.mph > {names[-1]}.lane"] if link else []
        tables = ", ".join(f"{streams[n]} [RANGE {ranges[n]} SECONDS] AS {names[n]}" for n in order)
        chosen = item.format(*names)
        output = f"sum({chosen}) AS x, count(*) AS n" if count else f"{chosen} AS x"
        source = f"SELECT {output} FROM {tables}"
        if count:
            source = source.replace("RANGE 1 ", "RANGE 2 ")
        return f"{source} WHERE {' AND '.join(draw(st.permutations(where)))}"

    return spelled(), spelled()


@given(two_spellings())
@settings(max_examples=150, deadline=None)
def test_order_of_from_and_choice_of_equalities_do_not_matter(spellings: tuple[str, str]) -> None:
    first, second = spellings
    assert signatures(first) == signatures(second)


@pytest.mark.parametrize(
    "group",
    [
        [
            "SELECT (price + lane) * auction AS x FROM bids",
            "SELECT price + lane * auction AS x FROM bids",
            "SELECT price + lane + auction AS x FROM bids",
            "SELECT price + (lane + auction) AS x FROM bids",
            "SELECT price - lane - auction AS x FROM bids",
            "SELECT price - (lane - auction) AS x FROM bids",
        ],
        [
            "SELECT price FROM bids WHERE (hot OR lane = 1) AND price > 1",
            "SELECT price FROM bids WHERE hot OR lane = 1 AND price > 1",
            "SELECT price FROM bids WHERE hot OR lane = 2 AND price > 1",
        ],
        [
            "SELECT price FROM bids WHERE lane < 5",
            "SELECT price FROM bids WHERE lane <= 5",
            "SELECT price FROM bids WHERE lane = 5",
            "SELECT price FROM bids",
            "SELECT reserve FROM auctions WHERE category < 5",
        ],
        [
            "SELECT sum((price + lane) * 2) AS x FROM bids [RANGE 5 SECONDS]",
            "SELECT sum(price + lane * 2) AS x FROM bids [RANGE 5 SECONDS]",
            "SELECT sum(price + lane * 2) AS x FROM bids [RANGE 5 SECONDS SLIDE 1 SECOND]",
            "SELECT sum(price + lane * 2) AS x FROM bids [RANGE 5 SECONDS] GROUP BY lane",
        ],
        [
            "SELECT a.mph FROM sensor1 [RANGE 2 SECONDS] a, sensor2 [RANGE 2 SECONDS] b WHERE a.car_id = b.car_id",
            "SELECT a.mph FROM sensor1 [RANGE 2 SECONDS] a, sensor2 [RANGE 1 SECONDS] b WHERE a.car_id = b.car_id",
            "SELECT a.mph FROM sensor1 [RANGE 2 SECONDS] a, sensor1 [RANGE 2 SECONDS] b WHERE a.car_id = b.car_id",
            "SELECT a.mph FROM sensor1 [RANGE 2 SECONDS] a, sensor2 [RANGE 2 SECONDS] b "
            "WHERE a.car_id = b.car_id AND a.lane = b.lane",
        ],
    ],
    ids=["grouping", "and or", "constants", "aggregates", "joins"],
)
def test_different_queries_have_different_signatures(group: list[str]) -> None:
    for first, second in combinations(group, 2):
        assert signatures(first) != signatures(second), (first, second)


def test_both_of_two_conditions_that_print_alike_are_kept() -> None:
    made = pipeline("SELECT price FROM bids WHERE price - (lane - auction) > 0 AND price - lane - auction > 0")
    assert len(made.residuals) == 2


def test_plain_output_columns_do_not_matter() -> None:
    join = "FROM sensor1 [RANGE 2 SECONDS] a, sensor1 [RANGE 2 SECONDS] b WHERE a.car_id = b.car_id"
    assert signatures(f"SELECT a.mph, b.lane {join}") == signatures(f"SELECT a.type {join}")


def test_queries_of_one_shape_have_one_shape_whatever_their_constants() -> None:
    sql = "SELECT price FROM bids WHERE (lane + auction = {0} AND hot) OR (lane + auction = {1} AND price > {2})"
    shapes = {pipeline(sql.format(*c)).residuals[0].slot for c in [(1, 2, 3), (10, 9, 3), (9, 10, 0.5), (-1, 0, 7)]}
    assert len(shapes) == 2  # the fraction is of another type


def test_a_join_of_one_shape_has_one_family_whatever_its_streams() -> None:
    sql = (
        "SELECT a.mph FROM {} [RANGE 2 SECONDS] a, {} [RANGE 2 SECONDS] b, {} [RANGE 2 SECONDS] c "
        "WHERE a.car_id = b.car_id AND b.lane = c.lane"
    )
    sensors = [name for name in CATALOG if name.startswith("sensor")]
    families = {template_of(pipeline(sql.format(x, y, z))).family for x in sensors for y in sensors for z in sensors}
    assert len(families) == 1
