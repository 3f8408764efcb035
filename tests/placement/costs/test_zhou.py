"""Fig. 1 of the paper with numbers. Times in ms, with t_c = 20 ms:

s1: t_1 = 1, t_2 = 2 * 2 = 4 (o1 makes two of one), t_5 = 4 * 2 * max(0.5, 1) = 8; p = 13
s2: t_3 = 1, t_4 = 2, t_5 = 4 * 3 = 12; p = 15
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from figures import MS, fig1, placed, twins
from towpath.placement.cluster import Cluster, Node
from towpath.placement.costs.zhou import (
    Ratios,
    cpr_max,
    evaluation_times,
    m_m_1,
    node_delay,
    ppr_max,
    pr_max,
    processing_time,
    ratios,
    transfer_delay,
)
from towpath.placement.paths import Path, nodes_on, paths
from towpath.placement.problem import Placement

S1 = Path("s1", ("o1", "o2", "o5"))
S2 = Path("s2", ("o3", "o4", "o5"))
APART = placed("upper:n1 lower:n2")  # rho_1 = 0.05, rho_2 = 0.19


def test_the_paths_of_fig_1() -> None:
    assert sorted(paths(fig1()), key=str) == [("q", S1), ("q", S2)]
    assert nodes_on(fig1(), APART, "q", S1) == ("n1", "n1", "n2")
    assert nodes_on(fig1(), Placement({}), "q", S1) == ()


def test_processing_times() -> None:
    assert evaluation_times(fig1(), S1) == pytest.approx([1 * MS, 4 * MS, 8 * MS])
    assert processing_time(fig1(), S1) == pytest.approx(13 * MS)
    assert processing_time(fig1(), S2) == pytest.approx(15 * MS)


def test_delays() -> None:
    rho = {"n1": 0.5, "n2": 0.75}
    assert node_delay(fig1(), S1, ("n1", "n1", "n2"), rho) == pytest.approx((2 * (1 + 4) + 4 * 8) * MS)
    assert transfer_delay(fig1(), S1, ("n1", "n1", "n2")) == pytest.approx(20 * MS)
    assert transfer_delay(fig1(), S1, ("n2", "n1", "n2")) == pytest.approx(60 * MS)


def test_the_slowdown_is_pluggable() -> None:
    def doubled(rho: float) -> float:
        return 2.0

    assert ratios(fig1(), APART, doubled)["q"].ppr == pytest.approx(2.0)
    assert m_m_1(0.5) == 2.0
    assert m_m_1(1.0) == inf


def test_ratios() -> None:
    of_s1 = (5 / 0.95 + 8 / 0.81) / 13
    found = ratios(fig1(), APART)
    assert found == {"q": Ratios(pytest.approx(of_s1 + 20 / 13), pytest.approx(1 / 0.81), pytest.approx(20 / 13))}
    assert (pr_max(fig1(), APART), ppr_max(fig1(), APART), cpr_max(fig1(), APART)) == (
        found["q"].pr,
        found["q"].ppr,
        found["q"].cpr,
    )


def test_the_worst_query_counts() -> None:
    # Each works 10 ms/s; b1 gets its tuples after 20 ms, 20 times the 1 ms it takes.
    assert pr_max(twins(), placed("a:n1 b:n2")) == pytest.approx(1 / 0.99 + 20)
    assert pr_max(twins(), Placement({"a": ("n1",)}, {"qb": "refused"})) == pytest.approx(1 / 0.99)


def test_a_slower_node_takes_longer_and_one_that_cannot_keep_up_forever() -> None:
    slow = replace(fig1(), cluster=Cluster((Node("n1", cpu=0.48), Node("n2"))))  # rho = 0.24 / 0.48 = 0.5
    assert ratios(slow, placed("upper:n1 lower:n1"))["q"].ppr == pytest.approx(2 / 0.48)
    full = replace(fig1(), cluster=Cluster((Node("n1", cpu=0.1), Node("n2"))))
    assert pr_max(full, placed("upper:n1 lower:n1")) == inf
