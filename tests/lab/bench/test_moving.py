from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from towpath.cli.app import main
from towpath.lab.bench.endpoints import Faults
from towpath.lab.bench.moving import QUICK, MeasuredMove, MovingReport


def report() -> MovingReport:
    moves = (
        MeasuredMove("alerts", 6.0, 1, 3.0, 2.5),
        MeasuredMove("alerts", 8.0, 2, 2.0, 2.5),
        MeasuredMove("large2", 9.0, 1, 4.0, 2.0),
    )
    return MovingReport(QUICK, moves, 0, 6, Faults(0, 0, ()), (9.0,), (0.5, 0.7, 0.6), {"large2": 5000})


def test_added_delay_is_what_a_moved_query_has_more_than_those_that_stay() -> None:
    found = report().to_json()
    alerts, large = found["alerts"], found["large2"]
    assert isinstance(alerts, dict) and isinstance(large, dict)
    assert (alerts["moves"], alerts["added_delay_median_s"], alerts["added_delay_worst_s"]) == (2, 0.25, 0.5)
    assert alerts["fences_missed"] == 1
    assert "state_rows" not in alerts and large["state_rows"] == 5000
    assert found["micro_batch_median_s"] == 0.6


def test_the_command_shows_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.lab.bench.moving.run", lambda plan, say: report())
    shown = CliRunner().invoke(main, ["bench", "moves", "--quick"])
    assert shown.exit_code == 0, shown.output
    assert "5,000 rows of state" in shown.output
    assert "6 of 6 queries equal to DuckDB: 0 rows lost, 0 doubled" in shown.output


@pytest.mark.spark
@pytest.mark.live
@pytest.mark.long
def test_moves_are_measured_on_endpoints() -> None:
    done = CliRunner().invoke(main, ["bench", "moves", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output.splitlines()[-1])
    assert (found["rows_lost"], found["rows_doubled"], found["refused"]) == (0, 0, 0)
    assert found["queries"] == 9 and len(found["stop_and_restart_s"]) == 1
