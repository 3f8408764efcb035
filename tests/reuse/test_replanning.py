"""Queries that are planned again when what they take has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reuse.systems import pair, small_systems
from towpath.reuse.admission import SolveLimits, submit
from towpath.reuse.allocation import AllocatedFlow, AllocatedRun, Allocation, placed, routed
from towpath.reuse.check import check
from towpath.reuse.replanning import at_once, replan, to_replan, without
from towpath.reuse.system import System

LIMITS = SolveLimits(gap=0.01)
ON_N1 = Allocation(
    frozenset({AllocatedRun("n1", "join")}), frozenset({AllocatedFlow("n2", "n1", "b")}), {"ab": "n1"}, frozenset({"q"})
)


def with_load(system: System, factor: float) -> System:
    return replace(system, operators=tuple(replace(o, load=o.load * factor) for o in system.operators))


def test_a_query_is_planned_again_when_its_use_has_drifted() -> None:
    assert to_replan(pair(), pair(), ON_N1) == {}
    assert to_replan(pair(), with_load(pair(), 1.19), ON_N1) == {}
    assert to_replan(pair(), with_load(pair(), 1.21), ON_N1) == {"q": "cpu 0.484 instead of 0.4"}
    assert to_replan(pair(), with_load(pair(), 0.79), ON_N1) == {"q": "cpu 0.316 instead of 0.4"}


def test_a_query_is_planned_again_when_a_node_that_serves_it_is_full() -> None:
    assert to_replan(pair(), pair(cpu=0.39), ON_N1) == {"q": "node n1: cpu: 0.4, but it has 0.39"}
    assert to_replan(pair(), pair(out=9.0), ON_N1) == {"q": "node n2: bandwidth out: 10, but it has 9"}


def test_it_moves_to_a_node_that_has_room() -> None:
    first, second = pair().cluster.nodes
    weaker = replace(pair(), cluster=replace(pair().cluster, nodes=(replace(first, cpu=0.3), second)))
    found = replan(weaker, ON_N1, ["q"])
    assert found.lost == ()
    assert found.allocation.runs == {AllocatedRun("n2", "join")}
    assert check(weaker, found.allocation) == []


def test_who_has_no_room_any_more_is_lost_and_who_has_is_not() -> None:
    found = replan(pair(cpu=0.3), ON_N1, ["q"])
    assert (found.lost, found.allocation) == (("q",), Allocation())
    assert replan(pair(), ON_N1, ["q"]).lost == ()


def test_queries_that_ask_for_the_same_move_together() -> None:
    system = replace(pair(), requests=(*pair().requests, replace(pair().requests[0], name="twin")))
    first, second = system.cluster.nodes
    weaker = replace(system, cluster=replace(system.cluster, nodes=(replace(first, cpu=0.3), second)))
    both = replace(ON_N1, admitted=frozenset({"q", "twin"}))
    found = replan(weaker, both, [*to_replan(system, weaker, both)])
    assert len(found.steps) == 2
    assert found.allocation.runs == {AllocatedRun("n2", "join")}
    assert found.allocation.admitted == {"q", "twin"}


def test_operators_change_nodes_at_once_only_if_both_nodes_have_room_meanwhile() -> None:
    """On n2 the join needs a, which n1 then sends; on n1 it goes on until it is done."""
    system = pair()
    there = AllocatedRun("n2", "join")
    assert at_once(system, ON_N1, [there]) == [there]
    first, second = system.cluster.nodes
    slow = replace(system, cluster=replace(system.cluster, nodes=(replace(first, bandwidth_out=9.0), second)))
    assert at_once(slow, ON_N1, [there]) == []  # a is 10 bytes a second
    weak = replace(system, cluster=replace(system.cluster, nodes=(first, replace(second, cpu=0.3))))
    assert at_once(weak, ON_N1, [there]) == []


def test_two_that_would_change_places_cannot() -> None:
    system = pair(cpu=0.5)
    other = replace(system.operators[0], name="other", outputs=("ba",))
    streams = (*system.streams, replace(system.streams[2], name="ba"))
    system = replace(system, streams=streams, operators=(*system.operators, other))
    requests = (*system.requests, replace(system.requests[0], name="r", streams=("ba",)))
    system = replace(system, requests=requests)
    now = routed(system, placed({"join": "n1", "other": "n2"}), frozenset({"q", "r"}))
    assert check(system, now) == []
    assert at_once(system, now, [AllocatedRun("n2", "join"), AllocatedRun("n1", "other")]) == []


def test_a_withdrawn_query_leaves_nothing_behind() -> None:
    assert without(pair(), ON_N1, pair().requests) == Allocation()


def steps_keep_the_law(seeds: range) -> None:
    moved = 0
    for which, random, system in small_systems(seeds):
        allocation = Allocation()
        for request in system.requests:
            allocation = submit(system, allocation, [request], LIMITS).allocation
        changed = tuple(replace(o, load=o.load * random.choice([0.5, 1.0, 1.5])) for o in system.operators)
        measured = replace(system, operators=changed)
        found = replan(measured, allocation, [*to_replan(system, measured, allocation)], LIMITS)
        faults = {(fault.kind, fault.where) for fault in check(measured, allocation)}
        for step in found.steps:
            left = {(fault.kind, fault.where) for fault in check(measured, step)}
            assert left <= faults, f"{which}: a step made something full"
            faults = left
        assert not faults, f"{which}: something is still full"
        assert found.allocation.admitted == allocation.admitted - set(found.lost)
        moved += len(found.steps) - 1
    assert moved > len(seeds) / 2


def test_no_step_makes_anything_full() -> None:
    steps_keep_the_law(range(30))


@pytest.mark.long
def test_no_step_makes_anything_full_in_500_systems() -> None:
    steps_keep_the_law(range(500))
