from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from towpath.cli import main
from towpath.lab.bench.crowd import Crowd, CrowdReport
from towpath.lab.bench.quiet import Company


def test_a_report_as_json() -> None:
    report = CrowdReport(40, (Crowd(400, 3, 9.876, 0.5, 0.75, True, 2.345),), Company(0.0, 0.0))
    (step,) = report.to_json()["steps"]
    assert step["start_s"] == 9.88 and step["carriers"] == 3 and step["keeps_up"] is True


def test_numbers_that_are_none_are_refused() -> None:
    result = CliRunner().invoke(main, ["bench", "crowd", "--queries", "40,many"])
    assert result.exit_code == 2
    assert "expected whole numbers above 0" in result.output


@pytest.mark.spark
@pytest.mark.long  # its parts are those of `bench mixed`, whose quick run every change has to pass
def test_a_quick_run_ends_with_one_line_of_json() -> None:
    result = CliRunner().invoke(main, ["bench", "crowd", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout.splitlines()[-1])
    assert [step["queries"] for step in report["steps"]] == [5, 10]
    assert all(step["carriers"] == 2 for step in report["steps"])
