from __future__ import annotations

from dataclasses import replace
from math import sqrt

import pytest

from figures import fig1, placed
from towpath.placement.cluster import Cluster, Node
from towpath.placement.costs.load import deviation, highest, imbalance, loads
from towpath.placement.problem import Placement

APART = placed("upper:n1 lower:n2")  # rho = 0.05 and 0.19, mean 0.12


def test_loads() -> None:
    assert loads(fig1(), APART) == {"n1": pytest.approx(0.05), "n2": pytest.approx(0.19)}
    assert highest(fig1(), APART) == pytest.approx(0.19)


def test_a_faster_node_is_less_busy_and_one_without_cpu_does_not_count() -> None:
    cluster = Cluster((Node("n1", cpu=2.0), Node("n2"), Node("sink", cpu=0.0)))
    problem = replace(fig1(), cluster=cluster)
    assert loads(problem, APART) == {"n1": pytest.approx(0.025), "n2": pytest.approx(0.19)}


def test_deviation_and_imbalance() -> None:
    assert deviation(fig1(), APART) == pytest.approx(sqrt((0.07**2 + 0.07**2) / (2 - 1)))
    assert imbalance(fig1(), APART) == pytest.approx(0.19 / 0.12)
    assert imbalance(fig1(), Placement({})) == 1.0
    one = replace(fig1(), cluster=Cluster((Node("n1"), Node("n2", cpu=0.0))))
    assert deviation(one, placed("upper:n1 lower:n1")) == 0.0
