from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from figures import fig1
from towpath.lab.testing.problems import problems
from towpath.placement.cluster import Cluster, Network, NetworkLink, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.placement.validate import validate

NODES = (Node("n1"), Node("n2"))


@given(problems())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_problems_are_valid(problem: Problem) -> None:
    assert validate(problem) == []


def _operator(operator: Operator) -> Callable[[Problem], Problem]:
    """The upper fragment, which has o1 and o2, gets one more."""

    def change(problem: Problem) -> Problem:
        upper, lower = problem.fragments
        return replace(problem, fragments=(replace(upper, operators=(*upper.operators, operator)), lower))

    return change


CASES: list[tuple[Callable[[Problem], Problem], str]] = [
    (lambda p: replace(p, cluster=Cluster((*NODES, NODES[0]))), "node n1: 2 have this name, expected one"),
    (lambda p: replace(p, cluster=Cluster(())), "cluster: has no nodes, expected at least one"),
    (lambda p: replace(p, cluster=Cluster((*NODES, Node("", 1.0)))), "node: has an empty name"),
    (_operator(Operator("s1", ("o2",))), "stream or operator s1: 2 have this name, expected one"),
    (
        lambda p: replace(p, cluster=Cluster((NODES[0], Node("n2", cpu=-1)))),
        "node n2: cpu is -1, expected a finite number from 0",
    ),
    (
        lambda p: replace(p, cluster=Cluster((NODES[0], Node("n2", memory=nan)))),
        "node n2: memory is nan, expected at least 0",
    ),
    (
        lambda p: replace(p, streams=(replace(p.streams[0], rate=inf), p.streams[1])),
        "stream s1: rate is inf, expected a finite number from 0",
    ),
    (
        _operator(Operator("o", ("o2",), selectivity=-0.5)),
        "operator o: selectivity is -0.5, expected a finite number from 0",
    ),
    (
        lambda p: replace(p, queries=(replace(p.queries[0], copies=0),)),
        "query q: copies is 0, expected a finite number from 1",
    ),
    (lambda p: replace(p, migration_cost=-1.0), "problem: migration_cost is -1, expected a finite number from 0"),
    (
        lambda p: replace(p, cluster=Cluster(NODES, Network(links=(NetworkLink("n1", "n7", -1.0),)))),
        "link n1 -> n7: latency is -1, expected a finite number from 0",
    ),
    (
        lambda p: replace(p, cluster=Cluster(NODES, Network(links=(NetworkLink("n1", "n7"),)))),
        "link n1 -> n7: connects n7, which is not in the cluster",
    ),
    (
        lambda p: replace(p, cluster=Cluster(NODES, Network(latencies=np.zeros((2, 3), np.float32)))),
        "network: latencies have the shape (2, 3), expected (2, 2): a row and a column for each node",
    ),
    (
        lambda p: replace(p, cluster=Cluster(NODES, Network(latencies=np.full((2, 2), -1, np.float32)))),
        "network: 4 latencies are negative, expected at least 0",
    ),
    (
        lambda p: replace(p, streams=(*p.streams, PlacementStream("s3", "n7", 1.0))),
        "stream s3: is delegated to n7, which is not in the cluster",
    ),
    (
        lambda p: replace(p, queries=(*p.queries, PlacementQuery("r", ()))),
        "query r: has no fragments, expected at least one",
    ),
    (
        lambda p: replace(p, queries=(replace(p.queries[0], fragments=("upper", "lower", "side")),)),
        "query q: lists side, but there is no such fragment",
    ),
    (
        lambda p: replace(p, queries=(*p.queries, PlacementQuery("r", ("upper",)))),
        "query r: lists upper, a fragment of query q",
    ),
    (
        lambda p: replace(p, queries=(replace(p.queries[0], sink="n7"),)),
        "query q: wants its results on n7, which is not in the cluster",
    ),
    (
        lambda p: replace(p, queries=(replace(p.queries[0], copies=3),)),
        "query q: wants 3 copies on different nodes, but 2 have cpu",
    ),
    (
        lambda p: replace(p, fragments=(*p.fragments, Fragment("side", "r", (Operator("o6", ("s1",)),)))),
        "fragment side: belongs to r, but there is no such query",
    ),
    (
        lambda p: replace(p, fragments=(*p.fragments, Fragment("side", "q", (Operator("o6", ("s1",)),)))),
        "fragment side: belongs to query q, which does not list it",
    ),
    (
        lambda p: replace(p, fragments=(replace(p.fragments[0], native="s9"), p.fragments[1])),
        "fragment upper: is native to s9, but there is no such stream",
    ),
    (_operator(Operator("o", ())), "operator o: has no inputs, expected at least one"),
    (_operator(Operator("o", ("o9",))), "operator o: reads o9, but there is no such stream or operator"),
    (
        lambda p: replace(
            p, fragments=(replace(p.fragments[0], operators=p.fragments[0].operators[::-1]), p.fragments[1])
        ),
        "operator o2: comes before its input o1, expected inputs first",
    ),
    (
        _operator(Operator("o", ("s2",))),
        "fragment upper: its operators fall into 2 parts that share nothing: o1, o; expected one",
    ),
    (
        lambda p: replace(p, pinned={"side": "n1"}),
        "pinned side: is pinned, but there is no such fragment",
    ),
    (lambda p: replace(p, pinned={"upper": "n7"}), "pinned upper: is pinned to n7, which is not in the cluster"),
    (
        lambda p: replace(p, pinned={"upper": "n1"}, queries=(replace(p.queries[0], copies=2),)),
        "pinned upper: is pinned to one node, but query q wants 2 copies on different nodes",
    ),
    (
        _operator(Operator("o", ("o2", "o"))),
        "operators: 1 read each other's results in a circle: o; expected streams at the beginning",
    ),
    (
        lambda p: replace(p, current=Placement({"side": ("n1",)})),
        "current side: has a place, but there is no such fragment",
    ),
    (
        lambda p: replace(p, current=Placement({"upper": ("n7",)})),
        "current upper: runs on n7, which is not in the cluster",
    ),
    (
        lambda p: replace(p, current=Placement({}, {"r": "full"})),
        "current r: is refused, but there is no such query",
    ),
]


@pytest.mark.parametrize(("change", "found"), CASES, ids=[found.partition(":")[0] for _, found in CASES])
def test_what_is_wrong_in_a_problem(change: Callable[[Problem], Problem], found: str) -> None:
    assert found in [str(violation) for violation in validate(change(fig1()))]


def test_a_valid_problem() -> None:
    assert validate(fig1()) == []


def test_everything_at_once() -> None:
    problem = fig1()
    for change, _ in CASES[12:]:
        problem = change(problem)
    assert len(validate(problem)) > 10
