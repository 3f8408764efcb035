"""Planners of SBON: `optimal` is, `relaxation` comes near it, and both beat the baselines of Table 1."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from towpath import planners
from towpath.errors import PlannerError
from towpath.placement.cluster import Cluster, Network, Node
from towpath.placement.costs.sbon import delays, network_usage
from towpath.placement.problem import (
    EVERYWHERE,
    Fragment,
    Operator,
    Placement,
    PlacementQuery,
    PlacementStream,
    Problem,
)
from towpath.problems.generate.sbon import Sbon, sbon
from towpath.problems.generate.transit_stub import TransitStub, transit_stub

SMALL = TransitStub(transit_domains=4, transit_nodes=3, stub_domains=24, stub_nodes=6)


def plane(count: int, rng: Random, cpu: float = 1.0) -> Cluster:
    points = np.array([[rng.random(), rng.random()] for _ in range(count)]) * 0.1
    matrix = np.linalg.norm(points[:, None] - points[None], axis=2).astype(np.float32)
    return Cluster(tuple(Node(f"n{n}", cpu=cpu) for n in range(count)), Network(latencies=matrix))


def random_trees(rng: Random, nodes: int = 4, queries: int = 2) -> Problem:
    """Queries of two joins below a third, over streams of their own."""
    cluster = plane(nodes, rng)
    streams, fragments, standing = [], [], []
    for q in (f"q{n}" for n in range(queries)):
        own = [PlacementStream(f"{q}s{n}", f"n{rng.randrange(nodes)}", rng.choice((1.0, 5.0, 20.0))) for n in range(4)]
        below = [
            Operator(f"{q}j{n}", (own[2 * n].name, own[2 * n + 1].name), "join", selectivity=rng.choice((0.1, 0.5, 2)))
            for n in range(2)
        ]
        top = Operator(f"{q}top", (f"{q}j0", f"{q}j1"), "join", selectivity=0.5)
        streams += own
        fragments += [Fragment(f"{q}f{n}", q, (o,)) for n, o in enumerate([*below, top])]
        standing.append(PlacementQuery(q, tuple(f"{q}f{n}" for n in range(3)), f"n{rng.randrange(nodes)}"))
    return Problem(cluster, tuple(streams), tuple(fragments), tuple(standing))


@pytest.mark.parametrize("seed", range(10))
def test_optimal_equals_brute_force(seed: int) -> None:
    problem = random_trees(Random(seed), nodes=4, queries=2)
    if seed % 3 == 0:
        problem = replace(problem, pinned={"q0f1": "n2"})
    best = planners.run("brute_force", problem, planners.options("brute_force", {"metric": "sbon.network_usage"}))
    found = planners.run("optimal", problem)
    assert network_usage(problem, found) == pytest.approx(network_usage(problem, best))


def test_optimal_says_what_it_cannot_solve() -> None:
    problem = random_trees(Random(0))
    shared = replace(problem.fragments[0].operators[0], name="again")
    extra = Fragment("extra", "q0", (shared,))
    query = replace(problem.queries[0], fragments=(*problem.queries[0].fragments, "extra"))
    both = replace(problem, fragments=(*problem.fragments, extra), queries=(query, *problem.queries[1:]))
    with pytest.raises(PlannerError, match="streams and results are read by several fragments, as q0s"):
        planners.run("optimal", both)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_table_1(seed: int) -> None:
    problem = sbon(Sbon(queries=100), seed, transit_stub(SMALL, seed))
    used = {
        name: network_usage(problem, planners.run(name, problem))
        for name in ("optimal", "relaxation", "producer", "consumer", "random")
    }
    assert used["optimal"] < used["relaxation"] < used["producer"] < used["consumer"] < used["random"]
    assert used["relaxation"] < 1.3 * used["optimal"]


@pytest.mark.parametrize("seed", range(5))
def test_several_unpinned_operators_come_to_rest_near_the_optimum(seed: int) -> None:
    problem = random_trees(Random(seed), nodes=40, queries=10)
    least = network_usage(problem, planners.run("optimal", problem))
    assert network_usage(problem, planners.run("relaxation", problem)) < 1.5 * least


def one_aggregator(cluster: Cluster, cost: float = 0.0, signature: str | None = None, queries: int = 1) -> Problem:
    streams = (PlacementStream("a", "n0", 10.0), PlacementStream("b", "n1", 10.0))
    names = [f"q{n}" for n in range(queries)]
    fragments = tuple(
        Fragment(q, q, (Operator(f"{q}.o", ("a", "b"), "join", cost, 0.1, signature=signature),)) for q in names
    )
    return Problem(cluster, streams, fragments, tuple(PlacementQuery(q, (q,), "n2") for q in names))


def test_a_full_node_is_passed_over() -> None:
    cluster = plane(12, Random(4))
    alone = planners.run("relaxation", one_aggregator(cluster, cost=0.03))
    two = planners.run("relaxation", one_aggregator(cluster, cost=0.03, queries=2))  # 0.6 of a cpu each
    assert two.nodes["q0"] == alone.nodes["q0"] != two.nodes["q1"]


def test_an_equal_operator_nearby_is_used_again() -> None:
    cluster = plane(12, Random(4))
    two = planners.run("relaxation", one_aggregator(cluster, cost=0.03, signature="same", queries=2))
    assert two.nodes["q0"] == two.nodes["q1"], "together they are one operator, which fits"


def test_a_busy_node_moves_away() -> None:
    problem = one_aggregator(plane(12, Random(4)), cost=0.02, queries=2)  # both would fit on one node
    parted = planners.run("relaxation", problem, planners.options("relaxation", {"load_scale": "10"}))
    assert parted.nodes["q0"] != parted.nodes["q1"]
    together = planners.run("relaxation", problem, planners.options("relaxation", {"load_scale": "0"}))
    assert together.nodes["q0"] == together.nodes["q1"]


def test_an_operator_stands_where_the_routes_meet() -> None:
    """a and b meet in m, which is one hop before the sink d; c comes from the other side."""
    names = ("a", "b", "c", "m", "d")
    hops = {"a": "m", "b": "m", "c": "d", "m": "d", "d": "d"}  # towards d
    next_hops = np.tile(np.arange(5, dtype=np.int32), (5, 1))
    next_hops[4] = [names.index(hops[name]) for name in names]
    cluster = Cluster(tuple(map(Node, names)), Network(0.01, next_hops=next_hops))
    streams = tuple(PlacementStream(f"s{at}", at, 10.0) for at in "abc")
    near = Fragment("near", "q", (Operator("near.o", ("sa", "sb"), "join"),))
    all_three = Fragment("all", "q", (Operator("all.o", ("near.o", "sc"), "join"),))
    problem = Problem(cluster, streams, (all_three, near), (PlacementQuery("q", ("all", "near"), "d"),))
    placed = planners.run("ip_multicast", problem)
    assert placed.nodes == {"near": ("m",), "all": ("d",)}
    assert cluster.route("a", "d") == ("a", "m", "d")
    assert cluster.route("a", "a") == ("a",)


@pytest.mark.parametrize("seed", range(3))
def test_tuples_that_stay_on_their_routes_are_as_fast_as_packets(seed: int) -> None:
    problem = sbon(Sbon(queries=50), seed, transit_stub(SMALL, seed))
    fast, direct = (delays(problem, planners.run(name, problem)) for name in ("ip_multicast", "consumer"))
    assert fast == pytest.approx(direct, rel=1e-5)


def test_what_reads_streams_that_every_node_has_stays_where_it_is_and_costs_no_network() -> None:
    cluster = plane(6, Random(1))
    stream = PlacementStream("s", EVERYWHERE, 100.0, 50.0)
    problem = Problem(
        cluster,
        (stream,),
        (Fragment("f", "q", (Operator("o", ("s",), cost=1e-6),)),),
        (PlacementQuery("q", ("f",)),),
        current=Placement.single({"f": cluster.nodes[4].name}),
    )
    for name in ("relaxation", "optimal"):
        placed = planners.run(name, problem)
        assert network_usage(problem, placed) == 0 and delays(problem, placed) == {"q": 0.0}
    assert planners.run("relaxation", problem).nodes["f"] == (cluster.nodes[4].name,)
