from __future__ import annotations

import numpy as np
import pytest

from towpath.lab.reproduce.sbon.borealis import HOSTS, BorealisCase, Draw
from towpath.lab.reproduce.sbon.borealis import measure as measure_borealis
from towpath.lab.reproduce.sbon.migration import better, delay_saved, migrations, saved
from towpath.lab.reproduce.sbon.pairs import (
    MOVES,
    STAYS,
    Pair,
    PairsCase,
    PairsSeen,
    PairsSize,
    paired,
    run_pairs,
    waiting,
)
from towpath.lab.reproduce.sbon.reuse import separate, shared
from towpath.lab.reproduce.sbon.table1 import SIZES, Table1Case, measure
from towpath.placement.cluster import Cluster, Network, Node
from towpath.placement.costs.sbon import network_usage
from towpath.placement.problem import Placement
from towpath.problems.generate.drifting import Drifting
from towpath.problems.generate.geography import geography


def test_what_table1_measures_of_algorithms_that_are_known_by_hand() -> None:
    seen = measure(Table1Case(SIZES["tiny"], 3))
    assert seen.usage["optimal"] == 0
    assert min(seen.usage.values()) == 0, "nothing is below the optimum"
    assert abs(seen.delay["consumer"]) < 1e-3, "tuples go straight to the consumer"
    assert abs(seen.delay["ip_multicast"]) < 1e-3, "tuples stay on their routes"


# --- migration -------------------------------------------------------------------------------------------------------


def test_both_of_a_pair_are_equal_and_share_nothing() -> None:
    problem = paired(geography(cities=["Boston", "Paris", "Davis", "Tokyo"]), 3, 1)
    moves = [f for f in problem.fragments if f.name.endswith(MOVES)]
    stays = [f for f in problem.fragments if f.name.endswith(STAYS)]
    assert len(moves) == len(stays) == 3
    for one, other in zip(moves, stays, strict=True):
        ends = [
            [*(problem.stream[name].node for name in f.operators[0].inputs), problem.query[f.query].sink]
            for f in (one, other)
        ]
        assert ends[0] == ends[1]
        assert not set(one.operators[0].inputs) & set(other.operators[0].inputs)


def test_who_has_not_moved_costs_the_same_as_who_stays() -> None:
    seen = run_pairs(PairsCase(PairsSize(12, 3, 900.0), 1, Drifting(), 0.1, 0.1))
    assert len(seen.series) == 3
    assert sum(pair.usage[1] for pair in seen.pairs) == pytest.approx(np.mean([stays for _, stays in seen.series]))
    for pair in seen.pairs:
        assert (pair.migrations == 0) == (pair.usage[0] == pair.usage[1])


def test_what_is_stated_of_pairs() -> None:
    both = PairsSeen((Pair((1.0, 2.0), (1.0, 1.0), (3.0, 4.0), 3), Pair((3.0, 2.0), (1.0, 1.0), (3.0, 4.0), 4)), ())
    assert (saved(both), better(both), migrations(both), delay_saved(both)) == (0.0, 50.0, 3.5, 25.0)


def test_waiting_at_a_busy_node() -> None:
    """Half busy with pieces of 100 ms: 50 ms; idle: none."""
    np.testing.assert_allclose(waiting(np.array([0.0, 0.5, 0.8]), 0.1), [0.0, 0.05, 0.2])


# --- reuse -----------------------------------------------------------------------------------------------------------


def line() -> Cluster:
    """Two producers in one place, 10 ms to a, 50 ms to m, 10 ms to both consumers."""
    places = np.array([0.0, 0.0, 0.01, 0.06, 0.07, 0.07])
    nodes = tuple(map(Node, ("p0", "p1", "a", "m", "c0", "c1")))
    return Cluster(nodes, Network(latencies=np.abs(places[:, None] - places[None]).astype(np.float32)))


def test_network_usage_with_and_without_reuse_by_hand() -> None:
    """1,000 B/s of each producer, 500 B/s of the aggregate."""
    apart = separate(line(), ["p0", "p1"], ["c0", "c1"], None)
    alone = network_usage(apart, Placement.single({"a0": "a", "a1": "a"}))
    assert alone == pytest.approx(2 * (2 * 1000 * 0.01 + 500 * 0.06), rel=1e-5)
    joint = shared(line(), ["p0", "p1"], [["c0", "c1"]])
    placed = Placement.single({"a0": "a", "m0": "m", "c0.0": "c0", "c0.1": "c1"})
    assert network_usage(joint, placed) == pytest.approx(2 * 1000 * 0.01 + 500 * 0.05 + 2 * 500 * 0.01, rel=1e-5)


def test_a_query_that_shares_nothing_has_no_multicast() -> None:
    joint = shared(line(), ["p0", "p1"], [["c0"], ["c1"]])
    assert [f.name for f in joint.fragments] == ["a0", "c0.0", "a1", "c1.0"]


# --- borealis --------------------------------------------------------------------------------------------------------


def test_the_rank_of_a_host() -> None:
    assert Draw((3.0, 1.0, 2.0), 1).rank == 1
    assert Draw((3.0, 1.0, 2.0), 0).rank == 3


def test_every_host_is_tried() -> None:
    draws = measure_borealis(BorealisCase(1, 2))
    assert [len(draw.usage) for draw in draws] == [HOSTS, HOSTS]
    assert draws[0].usage != draws[1].usage
