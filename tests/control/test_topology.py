"""How far the nodes of a job are from each other: what a site says, what was measured, what follows from that."""

from __future__ import annotations

from itertools import pairwise

import pytest

from towpath.control.observe.topology import CONTROLLER, Topology
from towpath.placement.cluster import Cluster, Node


def latency(topology: Topology, one: str, other: str, nodes: tuple[str, ...] = ("a", "b", "c")) -> float:
    return Cluster(tuple(map(Node, nodes)), topology.network(nodes)).latency(one, other)


def test_without_any_measurement_nobody_is_far_from_anybody() -> None:
    assert latency(Topology(), "a", "c") == 0.0 and Topology().how("a", "c") == "estimated"


def test_what_a_site_says_comes_before_what_was_measured() -> None:
    topology = Topology({("a", "b"): 0.010})
    topology.heard("b", "a", 0.5)
    topology.heard("c", "a", 0.030)
    assert latency(topology, "a", "b") == latency(topology, "b", "a") == 0.010
    assert latency(topology, "a", "c") == 0.030
    assert (topology.how("b", "a"), topology.how("a", "c"), topology.how("b", "c")) == (
        "given",
        "measured",
        "estimated",
    )


def test_of_ten_measurements_the_twentieth_percentile_counts() -> None:
    topology = Topology()
    for seconds in [9.0, *(n / 100 for n in range(1, 11))]:  # the first is forgotten
        topology.heard("a", "b", seconds)
    assert topology.latency("a", "b") == pytest.approx(0.028)  # 0.01 + 0.2 * (0.10 - 0.01)


def test_what_nobody_has_measured_follows_from_the_rest() -> None:
    """a, b and c on a line, 40 ms apart: c is seen from b and from the controller, which is where a is."""
    topology = Topology()
    for one, other in pairwise(("a", "b", "c")):
        topology.heard(one, other, 0.040)
    for node, seconds in (("a", 0.0), ("b", 0.040), ("c", 0.080)):
        topology.heard(CONTROLLER, node, seconds)
    assert topology.latency("a", "c") is None
    assert latency(topology, "a", "c") == pytest.approx(0.080, rel=0.2)


def test_a_node_that_comes_later_is_estimated_too() -> None:
    topology = Topology({("a", "b"): 0.010})
    assert latency(topology, "a", "b", ("a", "b")) == 0.010
    topology.heard("a", "d", 0.020)
    assert latency(topology, "a", "d", ("a", "b", "d")) == 0.020
