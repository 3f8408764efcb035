from __future__ import annotations

import numpy as np
import pytest

from towpath.lab.reproduce.report import Scale
from towpath.lab.reproduce.zhou.base import ZhouCase, ZhouSize, measure
from towpath.lab.reproduce.zhou.fig4 import converged
from towpath.lab.reproduce.zhou.fig6 import left_over, phases
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
