from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from towpath.reproduce import get, silent
from towpath.reproduce.draw import save
from towpath.reproduce.sqpr.setting import SHARE, Case, Size, measure, simulated

SIZE = Size(3, 12)


STATEMENTS = {"4a": 3, "4b": 1, "4c": 2, "5a": 2, "5b": 1, "5c": 2, "6a": 2, "6b": 1, "7": 4}


@pytest.mark.parametrize(("figure", "statements"), STATEMENTS.items())
def test_an_experiment_runs_to_its_end(figure: str, statements: int, tmp_path: Path) -> None:
    report = get(f"sqpr-fig{figure}")("tiny", [1], silent)
    assert len(report.statements) == statements
    assert all(np.isfinite(statement.ours) for statement in report.statements)
    assert report.scaled_down
    assert report.assumed
    for number, plot in enumerate(report.plots):
        save(plot, tmp_path / f"{number}.svg")
    assert len(list(tmp_path.iterdir())) == (3 if figure == "7" else 1)


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
