from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import nan

import numpy as np
import pytest

from towpath import planners
from towpath.lab.reproduce.report import Scale
from towpath.lab.reproduce.zhou.base import ZhouCase, ZhouSize, measure, problem_of
from towpath.lab.reproduce.zhou.fig4 import converged
from towpath.lab.reproduce.zhou.fig4 import statements as statements_of_fig4
from towpath.lab.reproduce.zhou.fig5 import statements as statements_of_fig5
from towpath.lab.reproduce.zhou.fig6 import left_over, may_be_left, order, phases, ratios, returned
from towpath.placement.flows import usage
from towpath.policies.zhou import Options

TINY: Scale = "tiny"


def test_the_same_seed_measures_the_same() -> None:
    case = ZhouCase(ZhouSize(3, 12), 4.0, seed=3, options=Options(seed=3))
    first, second = measure(case), measure(case)
    assert first.sent.tolist() == second.sent.tolist()
    assert first.pr_max.tolist() == second.pr_max.tolist()
    assert (first.moves, first.message_bytes) == (second.moves, second.message_bytes)


def test_converged_is_when_the_deviation_stays_near_its_end() -> None:
    falling = np.array([1.0, 0.8, 0.1, 0.5, 0.19, *[0.1] * 10])
    assert converged(falling) == 4.0
    assert converged(np.full(12, 0.3)) == 0.0


def test_what_is_left_of_a_rise() -> None:
    assert [(p.start, p.stop) for p in phases((20, 50, 80))] == [(10, 20), (35, 50), (65, 80)]
    extra = np.array([0.0] * 10 + [1.0] * 10 + [4.0] * 15 + [5.0] * 15 + [9.0] * 15 + [2.0] * 15)
    assert left_over(extra, (20, 50, 80)) == pytest.approx(0.25)
    assert left_over(np.zeros(80), (20, 50, 80)) == 0.0


def test_what_kappa_lets_stay() -> None:
    """An eighth of the nodes at three times: 1.75 of 3 go abroad, 0.583 when rates are back; 1/6 may stay."""
    assert may_be_left(1.2, 1 / 8) == pytest.approx((1 / 6) / (1.75 / 3))
    assert may_be_left(1.0, 1 / 8) == 0.0


def test_the_start_of_fig6_is_balanced_and_its_filters_are_shared() -> None:
    case = ZhouCase(ZhouSize(8, 60), 1.0, seed=1, theta=0.0)
    deviations = []
    for balanced in (False, True):
        problem = problem_of(replace(case, balanced=balanced))
        loads = usage(problem, planners.run("zhou", problem)).load[:8]
        deviations.append(float(loads.std() / loads.mean()))
        assert all(o.signature for o in problem.operators() if o.kind == "filter")
        assert {len(q.fragments) for q in problem.queries} == {3}
        assert Counter(s.node for s in problem.streams) == dict.fromkeys((f"n{n}" for n in range(1, 9)), 3)
    assert deviations[1] < deviations[0] / 4


@pytest.mark.parametrize(
    ("balanced", "gain", "pr", "time", "verdict"),
    [(0.1, 0.1, 1.1, 6.0, True), (0.6, 0.4, 3.0, 20.0, False)],
)
def test_the_claims_of_fig4_can_be_false(balanced: float, gain: float, pr: float, time: float, verdict: bool) -> None:
    deviation = {0: [1.0, 1.0], 3: [0.4, 0.4], 4: [balanced, balanced], 5: [gain, gain]}
    times = {3: [time, nan], 4: [5.0, 5.0], 5: [nan, nan]}
    ratios = {max1: [pr if max1 == 4 else 1.0] * 2 for max1 in deviation}
    found = statements_of_fig4(deviation, ratios, {**times, 3: [time, time]})
    assert [s.holds for s in found] == [verdict] * 4
    assert statements_of_fig4(deviation, ratios, {**times, 3: [nan, nan]})[-1].holds is None


@pytest.mark.parametrize(("worse", "verdict"), [(3.0, True), (0.9, False)])
def test_the_claims_of_fig5_can_be_false(worse: float, verdict: bool) -> None:
    values = {("fragments", n): [1.0, 1.0] for n in (2, 8)} | {("operators", 2): [1.0, 1.0]}
    values["operators", 8] = [worse, worse]
    assert [s.holds for s in statements_of_fig5((2, 8), values, values, values)] == [verdict] * 6


@pytest.mark.parametrize("verdict", [True, False])
def test_the_claims_of_fig6_can_be_false(verdict: bool) -> None:
    times = (20, 50, 80)
    low, high, back = np.zeros(20), np.ones(30), np.full(30, 0.1)
    aware = np.concatenate([low, high, back])
    others = np.concatenate([low + 0.1, high + 0.1, back + 0.5])
    sent = [aware, others, others + 0.1] if verdict else [others + 0.1, others, aware]
    extra = {name: [e, e] for name, e in zip(("data_flow_aware", "intermediate", "elementary"), sent, strict=True)}
    assert [s.holds for s in order(extra, times)] == [verdict] * 6
    assert [s.holds for s in returned(extra, times, 0.286)] == [verdict] * 3
    far = 100.0 if verdict else 2.0
    pr = {name: [10.0 if verdict or name != "elementary" else 40.0] * 2 for name in extra} | {"static": [far, far]}
    assert [s.holds for s in ratios(pr)] == [verdict] * 2
