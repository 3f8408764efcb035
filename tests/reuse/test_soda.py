"""SODA's three stages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reuse.systems import pair
from towpath.problems.generate.sqpr import Sqpr, sqpr
from towpath.reuse.admission import SolveLimits
from towpath.reuse.allocation import AllocatedFlow, Allocation, placed, routed
from towpath.reuse.check import check
from towpath.reuse.fragments import of_problem
from towpath.reuse.soda import Soda

LIMITS = SolveLimits(gap=0.01)


def test_a_query_that_fits_is_admitted_and_placed() -> None:
    soda = Soda(pair(), LIMITS)
    assert soda.epoch(pair().requests) == {"q"}
    assert soda.status == "optimal"
    assert check(pair(), soda.allocation) == []


def test_macro_q_admits_by_the_cpu_of_all_nodes_though_no_single_one_has_enough() -> None:
    """Two nodes with 0.3 have 0.6 together, but the join takes 0.4 of one: macroW and miniW find no place."""
    soda = Soda(pair(cpu=0.3), LIMITS)
    assert soda.epoch(pair().requests) == frozenset()
    assert soda.status == "infeasible"
    assert soda.allocation == Allocation()
    poor = Soda(pair(cpu=0.1), LIMITS)
    assert poor.epoch(pair().requests) == frozenset()
    assert poor.status is None  # macroQ refused it


def test_mini_w_moves_an_operator_away_from_the_busiest_node() -> None:
    system = pair()
    second = replace(system.operators[0], name="second", outputs=("ba",))
    more = replace(
        system,
        streams=(*system.streams, replace(system.streams[2], name="ba")),
        operators=(*system.operators, second),
        requests=(*system.requests, replace(system.requests[0], name="r", streams=("ba",))),
    )
    crowded = routed(more, placed({"join": "n1", "second": "n1"}), frozenset({"q", "r"}))
    assert crowded.flows == {AllocatedFlow("n2", "n1", "b")}
    soda = Soda(more, LIMITS)
    soda.allocation = crowded
    soda.epoch([])
    assert {run.node for run in soda.allocation.runs} == {"n1", "n2"}
    assert check(more, soda.allocation) == []


@pytest.mark.parametrize("seed", range(3))
def test_every_epoch_leaves_an_allocation_that_can_run(seed: int) -> None:
    problem = sqpr(Sqpr(nodes=3, streams=10, queries=24, ways=(2, 3)), seed)
    nodes = tuple(replace(node, cpu=0.2) for node in problem.cluster.nodes)
    system = of_problem(replace(problem, cluster=replace(problem.cluster, nodes=nodes))).system
    soda = Soda(system, SolveLimits(seconds=1.0, gap=0.01))
    before: frozenset[str] = frozenset()
    for first in range(0, 24, 8):
        soda.epoch(system.requests[first : first + 8])
        assert before <= soda.allocation.admitted
        assert check(system, soda.allocation) == []
        before = soda.allocation.admitted
    assert 0 < len(before) < 24


def test_a_search_that_ends_early_gives_the_same_answer_every_time_and_says_that_it_did() -> None:
    problem = sqpr(Sqpr(nodes=4, streams=8, queries=12, ways=(2, 3)), 1)
    found = []
    for _ in range(2):
        system = of_problem(problem).system
        soda = Soda(system, SolveLimits(gap=0.0, branches=1))
        soda.epoch(system.requests)
        assert soda.status == "feasible"
        assert check(system, soda.allocation) == []
        found.append(soda.allocation)
    assert found[0] == found[1]
