from __future__ import annotations

from random import Random

import pytest

from towpath import planners
from towpath.lab.reproduce.hummer.adding import snapshot
from towpath.lab.reproduce.hummer.optimum import optimum
from towpath.lab.reproduce.hummer.setting import begun
from towpath.placement.costs.hummer import objective
from towpath.placement.problem import Placement
from towpath.problems.generate.hummer import Hummer, hummer

TINY = [
    Hummer(nodes=2, sources=3, queries=2),
    Hummer(nodes=2, sources=4, queries=3, inputs=2),
    Hummer(nodes=3, sources=2, queries=2, inputs=2, event_bytes=600),
    Hummer(nodes=3, sources=5, queries=2, inputs=2, event_bytes=2000),
]


@pytest.mark.parametrize("setting", TINY)
def test_the_optimum_is_what_brute_force_finds(setting: Hummer) -> None:
    problem = hummer(setting)
    best = planners.run("brute_force", problem, planners.options("brute_force", {"metric": "hummer.F"}))
    found = optimum(setting)
    assert found.cost == pytest.approx(objective(problem, best))
    assert found.bound == found.cost, "proven"


@pytest.mark.long
def test_nothing_is_better_than_the_optimum_of_the_paper() -> None:
    # Each of seven nodes has a source at least: 9 inputs are above the least load. Seven of ten pairs are cut.
    setting = Hummer(queries=10)
    assert optimum(setting, known=4.25).cost == pytest.approx(9 * 0.25 + 7 * 0.25)


def test_what_is_known_and_is_not_the_best_is_improved() -> None:
    assert optimum(TINY[0], known=100.0).cost == optimum(TINY[0]).cost


def test_a_new_query_begins_on_one_node_and_the_others_stay() -> None:
    problem = hummer(Hummer(queries=2))
    first = Placement.single({"q1.i1": "n1", "q1.i2": "n2", "q1.i3": "n3"})
    current = begun(problem, first, Random(1)).current
    assert current is not None
    assert {f: current.nodes[f] for f in first.nodes} == first.nodes
    assert len({current.nodes[f"q2.i{n}"] for n in (1, 2, 3)}) == 1


def test_what_a_snapshot_counts() -> None:
    # q1 reads s1, s2, s3; its second input waits for the first. q2 reads s4, s1, s2.
    problem = hummer(Hummer(nodes=2, sources=4, queries=2, buffered=100.0))
    at = {"q1.i1": "n1", "q1.i2": "n2", "q1.i3": "n2", "q2.i1": "n1", "q2.i2": "n1", "q2.i3": "n1"}
    seen = snapshot(problem, Placement.single(at))
    assert seen.buffers == {"n1": {"s1", "s2", "s4"}, "n2": {"s2", "s3"}}
    assert seen.inputs == {"n1": 4, "n2": 2}
    assert seen.between == {("n1", "n2"): 0.25}
    assert (seen.transfer, seen.cut, seen.subscriptions) == (0.25, 1, 5)
    assert seen.memory == 5 * 100 * 250
    assert seen.events == (3.0, 2.0)
