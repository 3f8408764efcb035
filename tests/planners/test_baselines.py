from __future__ import annotations

from dataclasses import replace

import pytest

from figures import fig1, placed
from towpath import planners
from towpath.errors import PlannerError
from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Placement, PlacementQuery, Problem


def _with_sink(problem: Problem, sink: str | None, copies: int = 1) -> Problem:
    return replace(problem, queries=(PlacementQuery("q", ("upper", "lower"), sink, copies),))


def _run(name: str, problem: Problem, **texts: str) -> Placement:
    return planners.run(name, problem, planners.options(name, texts))


def test_producer() -> None:
    assert _run("producer", fig1()) == placed("upper:n1 lower:n2")
    # Without a native node, lower follows the heavier of s2 (1,000 bytes per second) and o2.
    upper, lower = fig1().fragments
    strangers = replace(fig1(), fragments=(upper, replace(lower, native=None)))
    assert _run("producer", strangers) == placed("upper:n1 lower:n2")
    faster = replace(strangers, streams=(replace(strangers.streams[0], rate=20.0), strangers.streams[1]))
    assert _run("producer", faster) == placed("upper:n1 lower:n1")


def test_consumer() -> None:
    assert _run("consumer", _with_sink(fig1(3), "n3")) == placed("upper:n3 lower:n3")
    assert _run("consumer", fig1()) == placed("upper:n1 lower:n1")


def test_single() -> None:
    strong = replace(fig1(), cluster=Cluster((Node("n1"), Node("n2", cpu=2.0))))
    assert _run("single", strong) == placed("upper:n2 lower:n2")
    assert _run("single", strong, node="n1") == placed("upper:n1 lower:n1")
    with pytest.raises(PlannerError, match="n7 is not in the cluster"):
        _run("single", strong, node="n7")


def test_random_is_the_same_for_a_seed() -> None:
    problem = fig1(3)
    assert _run("random", problem, seed="1") == _run("random", problem, seed="1")
    assert len({str(_run("random", problem, seed=str(seed))) for seed in range(20)}) > 1


def test_copies_and_pinned_fragments() -> None:
    copied = _with_sink(fig1(3), "n3", copies=2)
    assert _run("consumer", copied) == placed("upper:n3,n1 lower:n3,n1")
    assert _run("consumer", replace(_with_sink(fig1(3), "n3"), pinned={"upper": "n1"})) == placed("upper:n1 lower:n3")


def test_brute_force_finds_the_best_that_fits() -> None:
    problem = _with_sink(fig1(), "n2")
    together = _run("brute_force", problem, metric="hummer.T").nodes
    assert together["upper"] == together["lower"]
    assert _run("brute_force", problem, metric="load.highest") == placed("upper:n1 lower:n2")
    weak = replace(problem, cluster=Cluster((Node("n1"), Node("n2", cpu=0.1))))
    assert _run("brute_force", weak, metric="sqpr.O2") == placed("upper:n1 lower:n1")


def test_brute_force_says_why_it_cannot() -> None:
    with pytest.raises(PlannerError, match="2 fragments on 2 nodes have 4 placements, above 3"):
        _run("brute_force", fig1(), limit="3")
    with pytest.raises(PlannerError, match=r"did you mean load\.highest"):
        _run("brute_force", fig1(), metric="load.higest")
    weak = replace(fig1(), cluster=Cluster((Node("n1", cpu=0.01), Node("n2", cpu=0.01))))
    with pytest.raises(PlannerError, match="finds no placement"):
        _run("brute_force", weak)
