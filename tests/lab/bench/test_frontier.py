from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from towpath.cli import main
from towpath.lab.bench.frontier import QUICK, FrontierReport, Point
from towpath.lab.bench.quiet import Company


def test_a_report_as_json() -> None:
    point = Point("towpath", "mixed shapes", 1000, 123_456.7, 12.34)
    assert FrontierReport((point,), 10, Company(0.0, 0.0)).to_json()["points"] == [
        {"system": "towpath", "workload": "mixed shapes", "queries": 1000, "rows_per_s": 123_457, "start_s": 12.3}
    ]


@pytest.mark.spark
@pytest.mark.long  # its parts are those of `bench mixed`, whose quick run every change has to pass
def test_a_quick_run_ends_with_one_line_of_json() -> None:
    result = CliRunner().invoke(main, ["bench", "frontier", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout.splitlines()[-1])
    assert report["rows"] == QUICK.files * QUICK.rows
    assert [(p["system"], p["queries"]) for p in report["points"]] == [("plain", 1), ("towpath", 10), ("towpath", 10)]
    assert all(point["rows_per_s"] > 0 for point in report["points"])
