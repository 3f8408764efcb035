"""Algorithm 1: who is admitted, who stays, and what the solver said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from random import Random

import pytest

from reuse.systems import pair, random_system, small_systems
from towpath.placement.cluster import Cluster, Node
from towpath.reuse.admission import AdmissionOutcome, SolveLimits, binding, submit
from towpath.reuse.allocation import AllocatedFlow, AllocatedRun, Allocation
from towpath.reuse.bound import AggregateNode, optimistic_bound
from towpath.reuse.check import check
from towpath.reuse.heuristic import Heuristic, abstract_plans
from towpath.reuse.model import Rules
from towpath.reuse.system import SharedOperator, SharedStream, StreamRequest, System

LIMITS = SolveLimits(gap=0.01)


def outcomes(system: System, random: Random) -> Iterator[AdmissionOutcome]:
    """Requests one at a time, or two at once now and then."""
    waiting = list(system.requests)
    allocation = Allocation()
    while waiting:
        size = random.choice([1, 1, 2])
        group, waiting = waiting[:size], waiting[size:]
        limits = replace(LIMITS, beside=random.choice([0, 2]), idle=random.choice([None, 0, 1]))
        outcome = submit(system, allocation, group, limits)
        allocation = outcome.allocation
        yield outcome


def sequences_keep_the_law(seeds: range) -> None:
    refused = 0
    for which, random, system in small_systems(seeds):
        before = Allocation()
        for outcome in outcomes(system, random):
            now = outcome.allocation
            assert before.admitted <= now.admitted, f"{which}: a query was dropped"
            assert not check(system, now), which
            assert outcome.changed == tuple(now.changed(before))
            before = now
        assert optimistic_bound(system, system.requests) >= len(before.admitted), which
        refused += len(system.requests) - len(before.admitted)
    assert refused > len(seeds) / 2  # else it would be easy to keep them all


def test_admitted_queries_are_never_dropped() -> None:
    sequences_keep_the_law(range(60))


@pytest.mark.long
def test_admitted_queries_are_never_dropped_in_1000_sequences() -> None:
    sequences_keep_the_law(range(1000))


def two_ways(cpu: float) -> System:
    """The join abc by way of ab or of ac, acd by way of ac alone. All joins take 0.3, but ab 0.29."""
    base = tuple(SharedStream(name, 1.0, nodes=frozenset({"n1"})) for name in "abcd")
    made = tuple(SharedStream(name, 1.0) for name in ("ab", "ac", "abc", "acd"))
    joins = (
        SharedOperator("a with b", ("a", "b"), ("ab",), 0.29),
        SharedOperator("a with c", ("a", "c"), ("ac",), 0.3),
        SharedOperator("ab with c", ("ab", "c"), ("abc",), 0.3),
        SharedOperator("ac with b", ("ac", "b"), ("abc",), 0.3),
        SharedOperator("ac with d", ("ac", "d"), ("acd",), 0.3),
    )
    requests = (StreamRequest("first", ("abc",)), StreamRequest("second", ("acd",)))
    return System(Cluster((Node("n1", cpu, inf, 100.0, 100.0),)), (*base, *made), joins, requests)


def operators(allocation: Allocation) -> set[str]:
    return {run.operator for run in allocation.runs}


def test_an_admitted_query_is_made_in_another_way_so_that_another_one_has_room() -> None:
    """Apart they take 0.59 and 0.6; by way of ac, which both can use, 0.9 together."""
    system = two_ways(cpu=1.0)
    first, second = system.requests
    now = submit(system, Allocation(), [first], LIMITS).allocation
    assert operators(now) == {"a with b", "ab with c"}
    alone = submit(system, now, [second], LIMITS)
    assert (alone.admitted, alone.status) == (frozenset(), "infeasible")
    found = submit(system, now, [second], replace(LIMITS, beside=1))
    assert found.allocation.admitted == {"first", "second"}
    assert operators(found.allocation) == {"a with c", "ac with b", "ac with d"}
    assert check(system, found.allocation) == []


def test_where_that_brings_no_room_either_nothing_is_changed() -> None:
    system = two_ways(cpu=0.8)
    first, second = system.requests
    now = submit(system, Allocation(), [first], LIMITS).allocation
    refused = submit(system, now, [second], replace(LIMITS, beside=1))
    assert (refused.allocation, refused.status) == (now, "infeasible")


def test_nodes_that_are_left_aside_at_first_are_used_when_they_are_needed() -> None:
    """The join fits on n3 alone, which has nothing of it."""
    system = pair(nodes=3)
    weak = tuple(replace(node, cpu=cpu) for node, cpu in zip(system.cluster.nodes, (0.3, 0.3, 1.0), strict=True))
    system = replace(system, cluster=replace(system.cluster, nodes=weak))
    found = submit(system, Allocation(), system.requests, replace(LIMITS, idle=0))
    assert found.allocation.runs == {AllocatedRun("n3", "join")}


def test_what_is_asked_for_twice_is_made_once() -> None:
    system = pair()
    twin = replace(system.requests[0], name="twin")
    system = replace(system, requests=(*system.requests, twin))
    first = submit(system, Allocation(), [system.requests[0]])
    second = submit(system, first.allocation, [twin])
    assert second.admitted == {"twin"}
    assert second.changed == ()
    assert second.allocation.runs == first.allocation.runs


def test_what_runs_makes_way_for_a_query_that_needs_its_place() -> None:
    """The join may run on n1 or n2; then one comes that can only run where it is. The heuristic has to refuse it."""
    system = pair(cpu=0.5)
    pinned = replace(system.operators[0], name="pinned", outputs=("ba",), nodes=frozenset({"n1"}))
    ba = replace(system.streams[2], name="ba")
    later = replace(system.requests[0], name="r", streams=("ba",))
    system = replace(
        system, streams=(*system.streams, ba), operators=(*system.operators, pinned), requests=(*system.requests, later)
    )
    on_n1 = Allocation(
        frozenset({AllocatedRun("n1", "join")}),
        frozenset({AllocatedFlow("n2", "n1", "b")}),
        {"ab": "n1"},
        frozenset({"q"}),
    )
    assert not Heuristic(system, on_n1).submit(later)
    # ab is no part of a plan for ba, so by Algorithm 1 it stays as well: only related streams are planned anew.
    assert submit(system, on_n1, [later]).status == "infeasible"
    assert submit(system, Allocation(), [later, system.requests[0]]).admitted == {"q", "r"}


def test_a_status_is_never_swallowed() -> None:
    system = pair()
    request = system.requests[0]
    done = submit(system, Allocation(), [request])
    assert (done.status, done.gap) == ("optimal", pytest.approx(0.0, abs=1e-6))
    for resource, poor in (("cpu", pair(cpu=0.3)), ("bandwidth", pair(out=0.5))):
        refused = submit(poor, Allocation(), [request])
        assert (refused.status, refused.admitted, refused.allocation) == ("infeasible", frozenset(), Allocation())
        assert binding(poor, Allocation(), request, LIMITS, Rules()) == [resource]
    nothing = pair(cpu=0.3, out=0.5)
    assert binding(nothing, Allocation(), request, LIMITS, Rules()) == []


def test_a_search_without_time_says_so() -> None:
    system = random_system(Random(3), nodes=3, streams=6, queries=1, ways=(4, 4))
    crowded = replace(
        system,
        cluster=replace(
            system.cluster,
            nodes=tuple(replace(node, cpu=0.06, bandwidth_in=1e9, bandwidth_out=1e9) for node in system.cluster.nodes),
        ),
    )
    outcome = submit(crowded, Allocation(), crowded.requests, SolveLimits(seconds=1e-9))
    assert outcome.status == "out of time"
    assert outcome.admitted == frozenset()


def test_the_heuristic_runs_a_query_on_one_node_and_reuses_results() -> None:
    system = pair()
    heuristic = Heuristic(system)
    assert heuristic.submit(system.requests[0])
    assert check(system, heuristic.allocation) == []
    assert heuristic.allocation.runs == {AllocatedRun("n1", "join")}
    assert heuristic.allocation.flows == {AllocatedFlow("n2", "n1", "b")}
    assert not Heuristic(pair(cpu=0.3)).submit(system.requests[0])
    assert not Heuristic(pair(out=5.0)).submit(system.requests[0])


def test_every_order_of_a_join_is_considered() -> None:
    system = random_system(Random(1), nodes=2, streams=4, queries=1, ways=(4, 4))
    plans = list(abstract_plans(system, system.requests[0].streams))
    assert len(plans) == 15  # binary trees over four streams, left and right alike


def test_the_aggregate_node_makes_every_result_once() -> None:
    system = pair(cpu=0.2)
    twin = replace(system.requests[0], name="twin")
    system = replace(system, requests=(*system.requests, twin))
    node = AggregateNode(system)
    assert [node.submit(request) for request in system.requests] == [True, True]
    assert node.load == pytest.approx(0.4)
    assert optimistic_bound(system, system.requests) == 2
    assert optimistic_bound(pair(cpu=0.19), system.requests[:1]) == 0
