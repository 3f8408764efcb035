"""Every experiment that needs neither Spark nor minutes, as small as it can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from towpath.lab.reproduce import get, silent
from towpath.lab.reproduce.draw import save

# The number of statements and of plots.
EXPERIMENTS = {
    "hummer-fig6": (7, 4),
    "hummer-fig7": (8, 5),
    "hummer-gap": (4, 1),
    "sbon-borealis": (4, 2),
    "sbon-migration": (7, 2),
    "sbon-reuse": (4, 1),
    "sbon-table1": (12, 2),
    "sqpr-fig4a": (3, 1),
    "sqpr-fig4b": (1, 1),
    "sqpr-fig4c": (2, 1),
    "sqpr-fig5a": (2, 1),
    "sqpr-fig5b": (1, 1),
    "sqpr-fig5c": (2, 1),
    "sqpr-fig6a": (2, 1),
    "sqpr-fig6b": (1, 1),
    "sqpr-fig7": (4, 3),
    "zhou-fig4": (4, 3),
    "zhou-fig5": (6, 2),
    "zhou-fig6": (11, 2),
}


@pytest.mark.parametrize(("name", "sizes"), EXPERIMENTS.items())
def test_an_experiment_runs_to_its_end(name: str, sizes: tuple[int, int], tmp_path: Path) -> None:
    report = get(name)("tiny", [1], silent)
    for number, plot in enumerate(report.plots):
        save(plot, tmp_path / f"{number}.svg")
    assert (len(report.statements), len(list(tmp_path.iterdir()))) == sizes
    assert all(np.isfinite(statement.ours) for statement in report.statements)
    assert report.scaled_down
    assert report.assumed
