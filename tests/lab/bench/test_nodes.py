from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from towpath.cli.app import main
from towpath.lab.bench.nodes import QUICK, Loss, NodesReport, Throughput

LOSS = Loss(1.6, 7.5, 1.2, 1.9, 1.0, 1.3, trigger_s=1.0)


@pytest.mark.parametrize(("pause", "gap"), [(1.9, 0.0), (2.0, 0.0), (3.5, 1.5)])
def test_a_pause_is_a_gap_beyond_the_usual_one_and_a_trigger(pause: float, gap: float) -> None:
    assert replace(LOSS, pause_s=pause).gap_s == pytest.approx(gap)


def test_the_command_shows_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    report = NodesReport(QUICK, {"two streams": Throughput(10_000, 19_000)}, LOSS)
    monkeypatch.setattr("towpath.lab.bench.nodes.run", lambda plan, say: report)
    shown = CliRunner().invoke(main, ["bench", "nodes", "--quick"])
    assert shown.exit_code == 0, shown.output
    assert "10,000 rows/s" in shown.output and "1.90" in shown.output
    assert "noticed after 1.6 s" in shown.output


@pytest.mark.spark
@pytest.mark.live
@pytest.mark.long
def test_nodes_are_measured_on_endpoints() -> None:
    done = CliRunner().invoke(main, ["bench", "nodes", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output.splitlines()[-1])
    assert found["two streams"]["two_nodes_rows_per_s"] > 0
    assert found["loss"]["again_s"] >= found["loss"]["noticed_s"]
