from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from towpath.reproduce import get, silent
from towpath.reproduce.draw import save
from towpath.reproduce.sqpr.setting import SHARE, Case, Size, measure, simulated

SIZE = Size(3, 12)


@pytest.mark.parametrize(("name", "statements", "plots"), [("sqpr-fig4a", 3, 1)])
def test_an_experiment_runs_to_its_end(name: str, statements: int, plots: int, tmp_path: Path) -> None:
    report = get(name)("tiny", [1], silent)
    assert len(report.statements) == statements
    assert all(np.isfinite(statement.ours) for statement in report.statements)
    assert report.scaled_down
    assert report.assumed
    for number, plot in enumerate(report.plots):
        save(plot, tmp_path / f"{number}.svg")
    assert len(list(tmp_path.iterdir())) == plots


def test_cpu_and_bandwidth_both_bind() -> None:
    system = simulated(SIZE, 1)
    both = measure(Case(system, "heuristic"))
    assert both.last < len(system.requests)
    assert measure(Case(system, "bound")).last >= measure(Case(system, "sqpr")).last
    assert both.last >= SHARE * len(system.requests) / 2


def test_batches_admit_as_a_whole_or_in_part() -> None:
    seen = measure(Case(simulated(SIZE, 1), "sqpr", batch=4))
    assert len(seen.admitted) == SIZE.queries
    assert all(later >= earlier for earlier, later in zip(seen.admitted, seen.admitted[1:], strict=False))
    assert sum(seen.statuses.values()) == SIZE.queries / 4
