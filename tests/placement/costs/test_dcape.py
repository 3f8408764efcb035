from __future__ import annotations

from dataclasses import replace

import pytest

from figures import fig1, placed, twins
from towpath.placement.costs.dcape import (
    connections,
    join_cost,
    most_tuples_in_memory,
    network_output_rate,
    network_output_rates,
    operator_costs,
    stateless_cost,
    tuples_in_memory,
)
from towpath.placement.problem import PlacementQuery

APART = placed("upper:n1 lower:n2")


def test_operator_costs() -> None:
    # 10 read at 2, tested at 3, 5 written at 2
    assert stateless_cost(10, omega=2, rho=3, sigma=0.5) == 10 * 2 + 10 * 3 + 5 * 2
    # 5 read at 1, 30 purged at 0.5, 2 * 20 + 3 * 10 pairs tested at 0.1, 10 written at 1
    assert join_cost((2, 3), (10, 20), omega=1, psi=0.5, rho=0.1, sigma=2) == pytest.approx(5 + 15 + 7 + 10)


def test_only_what_leaves_a_node_is_network_output() -> None:
    assert network_output_rates(fig1(), APART) == {"n1": 10.0, "n2": 0.0}  # o2; s1 and s2 are no operators
    assert operator_costs(fig1(), APART) == {"n1": {"o2": 1.0}}
    assert network_output_rate(fig1(), placed("upper:n1 lower:n1")) == 0.0


def test_each_operator_has_its_share() -> None:
    sinks = tuple(PlacementQuery(q.name, q.fragments, sink="n2") for q in twins().queries)
    problem = replace(twins(), queries=sinks)
    assert network_output_rates(problem, placed("a:n1 b:n1")) == {"n1": 20.0, "n2": 0.0}
    assert operator_costs(problem, placed("a:n1 b:n1")) == {"n1": {"a1": 0.5, "b1": 0.5}}


def test_tuples_in_memory() -> None:
    assert tuples_in_memory(fig1(), APART) == {"n1": 0.0, "n2": 5.0}  # 500 bytes, 100 each
    assert most_tuples_in_memory(fig1(), APART) == 5.0


def test_connections_are_between_nodes_and_from_streams() -> None:
    assert connections(fig1(), APART) == 1 + 2
    assert connections(fig1(), placed("upper:n1 lower:n1")) == 0 + 2
