"""Tuples that cross the network cost work at both ends (Node.transfer_cost)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plans import drawn
from towpath.lab.sim import simulate
from towpath.placement.problem import Placement

RATE, COST, TRANSFER = 10.0, 1e-3, 5e-3
CHAIN = drawn("a(s) b(a)", transfer_cost=TRANSFER)


def loads(placement: dict[str, str]) -> list[float]:
    outcome = simulate(CHAIN, Placement.single(placement), 100.0, record=100.0)
    return outcome.nodes["load"].tolist()


def test_each_end_of_a_connection_is_charged() -> None:
    apart = loads({"a": "n1", "b": "n2"})
    # n1 gets each tuple and sends it on, n2 only gets it; the source is not a processor
    assert apart == pytest.approx([RATE * (COST + 2 * TRANSFER), RATE * (COST + TRANSFER), 0.0], rel=0.02)


def test_neighbours_on_one_node_save_it() -> None:
    assert loads({"a": "n1", "b": "n1"}) == pytest.approx([RATE * (2 * COST + TRANSFER), 0.0, 0.0], rel=0.02)


def test_results_on_their_way_to_a_sink_are_charged() -> None:
    query = replace(CHAIN.queries[0], sink="source")
    outcome = simulate(replace(CHAIN, queries=(query,)), Placement.single({"a": "n1", "b": "n1"}), 100.0, record=100.0)
    assert outcome.nodes["load"].tolist()[0] == pytest.approx(RATE * (2 * COST + 2 * TRANSFER), rel=0.02)
