from __future__ import annotations

from pathlib import Path

import numpy as np

from towpath.reproduce import get, silent
from towpath.reproduce.draw import save
from towpath.reproduce.sbon.table1 import SIZES, Case, measure


def test_table1_runs_to_its_end(tmp_path: Path) -> None:
    report = get("sbon-table1")("tiny", [1], silent)
    assert len(report.statements) == 12
    assert all(np.isfinite(statement.ours) for statement in report.statements)
    assert report.scaled_down and report.assumed
    for number, plot in enumerate(report.plots):
        save(plot, tmp_path / f"{number}.svg")
    assert len(list(tmp_path.iterdir())) == 2


def test_what_table1_measures_of_algorithms_that_are_known_by_hand() -> None:
    seen = measure(Case(SIZES["tiny"], 3))
    assert seen.usage["optimal"] == 0
    assert min(seen.usage.values()) == 0, "nothing is below the optimum"
    assert abs(seen.delay["consumer"]) < 1e-3, "tuples go straight to the consumer"
    assert abs(seen.delay["ip_multicast"]) < 1e-3, "tuples stay on their routes"
