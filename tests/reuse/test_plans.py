"""Query plans: taken out of allocations, and what is wrong with them."""

from __future__ import annotations

import pytest

from reuse.systems import pair
from towpath.reuse.allocation import AllocatedFlow, AllocatedRun, Allocation, pruned
from towpath.reuse.check import check
from towpath.reuse.plans import Plans, PlanSource, PlanStep, UnfoundedError, conditions

ADMITTED = frozenset({"q"})
GOOD = Allocation(
    frozenset({AllocatedRun("n1", "join")}), frozenset({AllocatedFlow("n2", "n1", "b")}), {"ab": "n1"}, ADMITTED
)
JOIN = PlanStep("n1", "join", "ab", (PlanSource("n1", "a"), PlanStep("n1", None, "b", (PlanSource("n2", "b"),))))


def test_a_plan_is_taken_out_of_an_allocation() -> None:
    assert check(pair(), GOOD) == []
    assert Plans(pair(), GOOD).extract("ab", "n1") == JOIN
    assert conditions(pair(), JOIN, "ab") == []


def test_a_result_that_is_relayed() -> None:
    relayed = Allocation(GOOD.runs, GOOD.flows | {AllocatedFlow("n1", "n2", "ab")}, {"ab": "n2"}, ADMITTED)
    assert check(pair(), relayed) == []
    assert Plans(pair(), relayed).extract("ab", "n2") == PlanStep("n2", None, "ab", (JOIN,))


@pytest.mark.parametrize(
    ("plan", "broken"),
    [
        (PlanStep("n1", None, "a", (PlanSource("n1", "a"),)), "C1"),
        (PlanStep("n1", "join", "ab", (PlanSource("n1", "a"),)), "C2"),
        (PlanStep("n2", None, "ab", (PlanSource("n2", "b"),)), "C3"),
        (PlanStep("n2", "join", "ab", (PlanSource("n2", "a"), PlanSource("n2", "b"))), "C4"),
    ],
)
def test_each_condition_is_checked(plan: PlanStep, broken: str) -> None:
    assert broken in {violation.text[:2] for violation in conditions(pair(), plan, "ab")}


def test_streams_that_feed_each_other_are_unfounded() -> None:
    circle = frozenset({AllocatedFlow("n2", "n3", "a"), AllocatedFlow("n3", "n2", "a")})
    allocation = Allocation(frozenset({AllocatedRun("n2", "join")}), circle, {"ab": "n2"}, ADMITTED)
    with pytest.raises(UnfoundedError, match="comes from itself"):
        Plans(pair(nodes=3), allocation).extract("ab", "n2")
    assert {violation.kind for violation in check(pair(nodes=3), allocation)} == {"query plan", "input"}


def test_everything_wrong_is_reported_at_once() -> None:
    missing = Allocation(frozenset({AllocatedRun("n1", "join")}), frozenset(), {}, ADMITTED)
    kinds = {violation.kind for violation in check(pair(cpu=0.1, out=0.5), missing)}
    assert kinds == {"query plan", "input", "cpu"}
    crowded = check(pair(cpu=0.1, out=5.0), GOOD)
    assert {(v.kind, v.where) for v in crowded} == {("cpu", "node n1"), ("bandwidth out", "node n2")}


def test_what_nobody_needs_is_pruned() -> None:
    idle = {AllocatedRun("n2", "join")}
    extra = Allocation(GOOD.runs | idle, GOOD.flows | {AllocatedFlow("n1", "n2", "a")}, GOOD.provides, ADMITTED)
    assert pruned(pair(), extra) == GOOD


def test_the_nodes_to_notify() -> None:
    assert GOOD.changed(Allocation()) == ["n1", "n2"]
    assert GOOD.changed(GOOD) == []
