from __future__ import annotations

from dataclasses import replace

import pytest

from figures import fig1, placed, twins
from towpath.placement.cluster import Cluster, Node
from towpath.placement.costs.sqpr import SqprWeights, admitted, cpu, highest, network, objective, weights_for
from towpath.placement.problem import Placement

APART = placed("upper:n1 lower:n2")


def test_the_four_objectives() -> None:
    assert admitted(fig1(), APART) == 1.0
    assert admitted(fig1(), Placement({}, {"q": "full"})) == 0.0
    assert network(fig1(), APART) == 1000.0  # o2
    assert cpu(fig1(), APART) == pytest.approx(0.05 + 0.19)
    assert highest(fig1(), APART) == pytest.approx(0.19)


def test_reuse_saves_cpu() -> None:
    assert cpu(twins("equal"), placed("a:n1 b:n1")) == pytest.approx(0.01)
    assert cpu(twins("equal"), placed("a:n1 b:n2")) == pytest.approx(0.02)


def test_network_is_scaled_by_bandwidth_and_cpu_by_cpu() -> None:
    cluster = Cluster((Node("n1", bandwidth_out=1000), Node("n2", bandwidth_out=1000)))
    problem = replace(fig1(), cluster=cluster)
    assert weights_for(problem.cluster) == SqprWeights(4.0, 1 / 2000, 1 / 2, 1.0)
    assert objective(problem, APART) == pytest.approx(4.0 - 1000 / 2000 - 0.24 / 2 - 0.19)
    assert objective(fig1(), APART) == pytest.approx(4.0 - 0.24 / 2 - 0.19)  # bandwidth without limit
