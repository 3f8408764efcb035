from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from towpath.policies.zhou import Options
from towpath.reproduce import get, silent
from towpath.reproduce.draw import save
from towpath.reproduce.report import Scale
from towpath.reproduce.zhou.base import Case, Size, measure
from towpath.reproduce.zhou.fig4 import converged
from towpath.reproduce.zhou.fig6 import left_over, phases

TINY: Scale = "tiny"


@pytest.mark.parametrize(
    ("name", "statements", "plots"), [("zhou-fig4", 4, 3), ("zhou-fig5", 6, 2), ("zhou-fig6", 10, 2)]
)
def test_an_experiment_runs_to_its_end(name: str, statements: int, plots: int, tmp_path: Path) -> None:
    report = get(name)(TINY, [1], silent)
    assert len(report.statements) == statements
    assert all(np.isfinite(statement.ours) for statement in report.statements)
    assert report.scaled_down
    assert report.assumed
    for number, plot in enumerate(report.plots):
        save(plot, tmp_path / f"{number}.svg")
    assert len(list(tmp_path.iterdir())) == plots


def test_the_same_seed_measures_the_same() -> None:
    case = Case(Size(3, 12), 4.0, seed=3, options=Options(seed=3))
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
