from __future__ import annotations

import pytest

from towpath.placement.statistics import OperatorStatistics
from towpath.policies.zhou.workload import NodeLoad, OperatorLoads


def test_the_first_window_is_taken_as_it_is_then_smoothed() -> None:
    load = NodeLoad(alpha=0.9, kappa=1.2)
    load.collect(0.5)
    assert load.rho == 0.5
    load.collect(1.0)
    assert load.rho == pytest.approx(0.55)


def test_broadcast_when_it_grew_by_kappa_or_fell_by_its_inverse() -> None:
    load = NodeLoad(alpha=0.0, kappa=1.2)
    announced = []
    for rho in (0.0, 0.5, 0.55, 0.59, 0.61, 0.52, 0.5, 0.0, 0.0):
        load.collect(rho)
        announced.append(load.news())
    assert announced == [None, 0.5, None, None, 0.61, None, 0.5, 0.0, None]


def test_a_fluctuation_as_in_the_paper_is_not_announced() -> None:
    """Twice the load for one window after rising within one: hidden with 0.9, seen with less than 0.894."""

    def announced(alpha: float) -> bool:
        load = NodeLoad(alpha, kappa=1.2)
        load.collect(0.4)
        assert load.news() == 0.4
        load.collect(0.8)
        load.collect(0.8)
        return load.news() is not None

    assert not announced(0.9)
    assert announced(0.89)


def test_what_is_on_its_way_counts_where_it_goes() -> None:
    load = NodeLoad(alpha=0.5, kappa=1.2)
    load.collect(1.0)
    load.leaves("f", 0.25)
    load.leaves("g", 0.125)
    assert load.rho == 0.625
    load.collect(1.0)  # it works on what waited for f and g
    assert (load.rho, load.is_leaving("f")) == (0.625, True)
    load.left("f")
    assert load.rho == 0.625
    load.stays("g")
    assert load.rho == 0.75
    load.collect(0.75)
    assert load.rho == 0.75


def test_what_will_come_counts_before_it_is_there() -> None:
    load = NodeLoad(alpha=0.5, kappa=1.2)
    load.collect(0.25)
    load.expect("f", "n1", 0.25)
    load.expect("g", "n2", 0.25)
    assert load.rho == 0.75
    load.came("f")
    assert load.rho == 0.75
    load.lost("n2")
    assert load.rho == 0.5
    load.expect("h", "n1", 0.25)
    load.expect("h", "n1", 0.0)  # it does not come after all
    assert load.rho == 0.5


def test_operators_count_for_the_node_they_run_on() -> None:
    loads = OperatorLoads(alpha=0.5, cpu=2.0)
    loads.collect({"o": OperatorStatistics(rate=100, selectivity=1, cost=0.01, state_bytes=7)})
    assert (loads.load("o"), loads.state_bytes("o")) == (0.5, 7)
    loads.collect({"o": OperatorStatistics(rate=0, selectivity=1, cost=0.01, state_bytes=9)})
    assert (loads.load("o"), loads.state_bytes("o")) == (0.25, 9)
    loads.drop("o")
    assert loads.load("o") == 0
