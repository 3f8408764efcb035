from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.lab.testing.queries import random_shape
from towpath.lab.testing.recording import random_recording
from towpath.lang import column
from towpath.lang.query import Item
from towpath.plan.fragments import FRAGMENTERS, PlanFragment, fragments
from towpath.plan.operators import Filter, LogicalOperator, Project, Scan, Union, WindowJoin, children, walk
from towpath.schema import Catalog, Column, Stream, Type

from .cases import CATALOG, planned


def summary(cut: tuple[PlanFragment, ...]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(f.stream, " ".join(type(o).__name__ for o in f.operators), f.upstream) for f in cut]


def test_figure_2_of_zhou_et_al() -> None:
    """Results of QF2 are processed by QF1, and those of QF1 by QF4."""
    catalog = {
        f"s{n}": Stream(f"s{n}", (Column("k", Type.BIGINT), Column("at", Type.TIMESTAMP)), "at", rate=rate)
        for n, rate in enumerate([100.0, 20.0, 100.0, 1000.0], start=1)
    }
    key = column("s", "k")
    leaves = [Scan(f"s{n}", f"s{n}", 10_000_000) for n in range(1, 5)]
    left = WindowJoin(Filter(leaves[0], (key,)), Filter(leaves[1], (key,)), ())
    right = WindowJoin(Filter(leaves[2], (key,)), leaves[3], ())
    plan = Project(Filter(WindowJoin(left, Filter(right, (key,)), ()), (key,)), (Item("k", key, Type.BIGINT),))
    assert summary(fragments(plan, catalog)) == [
        ("s1", "Scan Filter WindowJoin", (2,)),
        ("s2", "Scan Filter", ()),
        ("s3", "Scan Filter", ()),
        ("s4", "Scan WindowJoin Filter WindowJoin Filter Project", (3, 1)),
    ]


def test_the_two_sides_of_a_self_join_are_two_fragments() -> None:
    sql = "SELECT a.mph FROM sensor1 [RANGE 1 SECOND] a, sensor1 [RANGE 1 SECOND] b WHERE a.car_id = b.car_id"
    cut = fragments(planned(sql), CATALOG)
    assert summary(cut) == [("sensor1", "Scan WindowJoin Project", (2,)), ("sensor1", "Scan", ())]


UNION = "SELECT price FROM bids WHERE hot UNION ALL SELECT price FROM bids WHERE hot"


@pytest.mark.parametrize(
    ("fragmenter", "expected"),
    [
        ("one_per_stream", [("bids", "Scan Filter Project", ())] * 2),
        ("one_per_query", [("bids", "Scan Filter Project", ())] * 2),
        ("one_per_operator", [("bids", "Scan Filter Project", ())] * 2),
    ],
)
def test_the_branches_of_a_union_are_cut_by_themselves(fragmenter: str, expected: list[object]) -> None:
    assert summary(fragments(planned(UNION), CATALOG, fragmenter)) == expected


JOIN = (
    "SELECT p.name, b.price FROM bids [RANGE 5 SECONDS] b, auctions [RANGE 5 SECONDS] a, persons [RANGE 5 SECONDS] p "
    "WHERE b.auction = a.id AND a.seller = p.id"
)


def test_an_aggregate_is_cut_off_its_join() -> None:
    sql = (
        "SELECT b.channel, count(*) AS n FROM bids [RANGE 5 SECONDS] b, auctions [RANGE 5 SECONDS] a "
        "WHERE b.auction = a.id AND b.price > 5 GROUP BY b.channel"
    )
    lower, upper = fragments(planned(sql), CATALOG, "one_per_operator")
    assert [type(op).__name__ for op in upper.operators] == ["WindowAggregate"]
    assert type(lower.operators[-1]).__name__ == "WindowJoin" and upper.upstream == (lower.number,)


def test_one_per_query_is_native_to_the_heaviest_stream() -> None:
    (only,) = fragments(planned(JOIN), CATALOG, "one_per_query")
    assert (only.stream, only.upstream) == ("bids", ())
    assert len(only.operators) == len(list(walk(planned(JOIN))))


@given(st.randoms(use_true_random=False), st.sampled_from(list(FRAGMENTERS)))
@settings(max_examples=100, deadline=None)
def test_fragments_are_a_partition_of_the_plan(rng: object, fragmenter: str) -> None:
    catalog = random_recording(rng).catalog  # type: ignore[arg-type]
    plan = planned(random_shape(rng, catalog).text(), catalog)  # type: ignore[arg-type]
    cut = fragments(plan, catalog, fragmenter)
    operators = list(walk(plan))
    assert [f.number for f in cut] == list(range(1, len(cut) + 1))
    placed = [position for f in cut for position in f.positions]
    assert sorted(placed) == [n for n, op in enumerate(operators) if not isinstance(op, Union)]
    for fragment in cut:
        assert tuple(operators[p] for p in fragment.positions) == fragment.operators
        check_connected(fragment)
        check_streams(fragment, catalog)
    # Every fragment but the last of a branch is read by exactly one other.
    read = [n for f in cut for n in f.upstream]
    branches = len(plan.branches) if isinstance(plan, Union) else 1
    assert len(read) == len(set(read)) == len(cut) - branches


def check_connected(fragment: PlanFragment) -> None:
    """Every operator but the last is the input of a later one."""
    for n, op in enumerate(fragment.operators[:-1]):
        assert any(op in children(later) for later in fragment.operators[n + 1 :])


def check_streams(fragment: PlanFragment, catalog: Catalog) -> None:
    top: LogicalOperator = fragment.operators[-1]
    assert fragment.stream in catalog
    assert fragment.stream in {op.stream for op in walk(top) if isinstance(op, Scan)}
