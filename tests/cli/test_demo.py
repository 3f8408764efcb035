from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from towpath.cli import demo, main
from towpath.lab.demo import FEWEST
from towpath.lab.demo.market import RUSH_SHARE
from towpath.lab.demo.play import DemoRun
from towpath.verify import Checked, Difference


def report(different: dict[str, str]) -> dict[str, Any]:
    return {
        **{
            "queries": 20,
            "equal": 20 - len(different),
            "different": different,
            "answers": 5,
            "carriers": {"c0": "filter"},
        },
        **{
            "carriers_restarted": 0,
            "submitted_live": 1,
            "withdrawn_live": 1,
            "fragments_moved": 2,
            "nodes": {"left": {"fragments": 9, "load": 0.5}, "right": {"fragments": 11, "load": 0.6}},
            "seconds": 10,
            "events": 20_000,
            "late": 0,
        },
        **{
            "first_results_s": 14.0,
            "caught_up_s": None,
            "most_behind_s": 2.5,
            "trigger_s": 2.0,
            "trigger_median_s": None,
            "trigger_95th_percentile_s": 1.5,
            "total_s": 30.0,
            "heap_mb": 500,
            "resident_mb": 2000,
        },
    }


@pytest.mark.parametrize(
    ("different", "code", "last"),
    [
        ({}, 0, ["20 of 20 queries equal to DuckDB"]),
        (
            {"q00003": "1 rows missing, 0 rows extra"},
            1,
            ["q00003: 1 rows missing, 0 rows extra", "19 of 20 queries equal to DuckDB"],
        ),
    ],
)
def test_the_verdict_is_reported_and_decides_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, different: dict[str, str], code: int, last: list[str]
) -> None:
    monkeypatch.setattr(demo, "_perform", lambda *_: report(different))
    result = CliRunner().invoke(main, ["demo", "--json", str(tmp_path / "figures.json")])
    assert result.exit_code == code
    assert result.stdout.splitlines()[-len(last) :] == last
    assert json.loads((tmp_path / "figures.json").read_text()) == report(different)


@pytest.mark.spark
@pytest.mark.live
def test_a_short_performance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All queries are checked, and one that differs is found: the answer to the first is spoilt on its way."""
    check = DemoRun.check

    def spoilt(play: DemoRun) -> Iterator[Checked]:
        for checked in check(play):
            yield checked if checked.name != "q00001" else Checked("q00001", 0, Difference(1, 0))

    monkeypatch.setattr(DemoRun, "check", spoilt)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = CliRunner().invoke(
        main, ["demo", "--queries", str(FEWEST), "--seconds", "10", "--json", str(tmp_path / "figures.json")]
    )
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert list(figures["different"]) == ["q00001"], result.output
    assert (figures["equal"], figures["carriers_restarted"], figures["late"]) == (FEWEST - 1, 0, 0)
    assert (figures["submitted_live"], figures["withdrawn_live"]) == (FEWEST // RUSH_SHARE + 1, 1)
    assert list(figures["nodes"]) == ["left", "middle", "right"]
    assert result.exit_code == 1
