from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from towpath.cli import main
from towpath.lab.bench.quiet import Company
from towpath.lab.bench.sharing import Comparison, SharingReport
from towpath.lab.bench.single import Single
from towpath.lab.bench.steps import Limit, Measure, Trigger
from towpath.lab.bench.submission import LateSubmission

BEST = Measure(40, (Trigger(0.5, 5000, {"addBatch": 400, "triggerExecution": 500}, 7),), 2.0)


def test_a_report_as_json() -> None:
    comparison = Comparison(Limit(40, True, BEST), Limit(50_000, False, BEST), "the best")
    report = SharingReport(
        {"alerts": comparison},
        {"alerts": Single((9.0, 1.0, 2.0), (2.5, 2.5, 2.5))},
        LateSubmission(1000, 2, 1.5, 0),
        Company(0.5, 0.0),
    )
    found = report.to_json()
    alerts = found.pop("alerts")
    assert (alerts["plain"], alerts["towpath"], alerts["ratio"]) == (40, ">=50000", 1250.0)
    assert alerts["at_the_limit"]["towpath"]["state_rows"] == 7
    assert found == {
        "single": {"alerts": 0.8},
        "submit": {"running": 1000, "triggers": 2, "seconds": 1.5, "carriers_started": 0},
        "machine": {"others": 0.5, "stolen": 0.0, "quiet": False},
    }


def test_no_ratio_to_nothing() -> None:
    assert Comparison(Limit(0, True, None), Limit(10, True, None), "").ratio is None


def test_an_unknown_kind_is_refused() -> None:
    result = CliRunner().invoke(main, ["bench", "sharing", "--kinds", "alerts,unions"])
    assert result.exit_code == 2
    assert "expected some of alerts, windows, joins" in result.output


@pytest.mark.spark
@pytest.mark.live
def test_a_quick_run_ends_with_one_line_of_json() -> None:
    result = CliRunner().invoke(main, ["bench", "sharing", "--quick", "--kinds", "joins", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout.splitlines()[-1])
    assert set(report) == {"joins", "single", "submit", "machine"}
    assert set(report["joins"]) >= {"plain", "towpath", "ratio"}
    assert report["submit"]["carriers_started"] == 0
