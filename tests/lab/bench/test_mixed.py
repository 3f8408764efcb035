from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from towpath.cli import main
from towpath.lab.bench import MIXED_KINDS
from towpath.lab.bench.mixed import UNSEEN, ColdStart, MixedQueries, MixedReport, shapes_of, workload
from towpath.lab.bench.quiet import Company
from towpath.lab.bench.steps import Limit, Measure, Trigger
from towpath.lab.bench.submission import LateSubmission
from towpath.lab.bench.workloads import streams
from towpath.lang import parse
from towpath.plan.cut import plan
from towpath.plan.serial import dump_pipeline


def test_five_queries_of_each_shape_that_differ(tmp_path: Path) -> None:
    catalog = {name: definition.stream for name, definition in streams(tmp_path).items()}
    texts = [workload(MIXED_KINDS).sql(n) for n in range(10)]
    drawn = workload(MIXED_KINDS)
    made = [drawn.sql(n) for n in range(500)]
    assert made[:10] == texts
    assert len(set(made)) > 480  # a shape may have no constants
    found = [plan(parse(sql, catalog, f"q{n}"), catalog).pipelines[0] for n, sql in enumerate(made)]
    assert {"FROM trades WHERE", "[RANGE", "JOIN", "GROUP BY", "HAVING"} <= {
        word for word in ("FROM trades WHERE", "[RANGE", "JOIN", "GROUP BY", "HAVING") if any(word in s for s in made)
    }
    assert len({dump_pipeline(p)[0] for p in found}) >= 60  # in towpath's own sense, with windows and streams as data


def test_a_kind_alone() -> None:
    assert all("JOIN" not in workload(("filters", "windows")).sql(n) for n in range(50))
    refused = CliRunner().invoke(main, ["bench", "mixed", "--kinds", "unions"])
    assert refused.exit_code == 2
    assert "expected some of filters, windows, joins" in refused.output


def test_an_unseen_shape_is_unseen(tmp_path: Path) -> None:
    catalog = {name: definition.stream for name, definition in streams(tmp_path).items()}

    def shape(sql: str) -> str:
        return dump_pipeline(plan(parse(sql, catalog, "q"), catalog).pipelines[0])[0]

    drawn = workload(MIXED_KINDS)
    assert not {shape(sql) for sql in UNSEEN.values()} & {shape(drawn.sql(n)) for n in range(0, 1000, 5)}
    assert set(UNSEEN) == set(MIXED_KINDS)


def test_no_more_shapes_than_asked_for() -> None:
    few = MixedQueries(MIXED_KINDS, 3)
    assert len({(q.kind, len(q.conditions), len(q.items), q.window) for q in map(few, range(30))}) <= 3
    assert few(0) != few(3)  # other constants


def test_the_report() -> None:
    best = Measure(1000, tuple(Trigger(1.0, 5000) for _ in range(5)), 2.0)
    late = LateSubmission(1000, 2, 1.5, 0)
    report = MixedReport(Limit(8, True, None), Limit(1000, True, best), ColdStart(12.34, 3), late, Company(0.004, 0.0))
    assert report.to_json() == {
        "shapes": {"plain": 2, "towpath": 200},
        "queries": {"plain": 8, "towpath": 1000},
        "start_s": 12.3,
        "carriers": 3,
        "p95_s": 1.0,
        "unseen_shape": {"running": 1000, "triggers": 2, "carriers_started": 0},
        "machine": {"others": 0.0, "stolen": 0.0, "quiet": True},
    }
    assert shapes_of(0) == 0


@pytest.mark.spark
@pytest.mark.live
def test_a_quick_run_ends_with_one_line_of_json() -> None:
    result = CliRunner().invoke(main, ["bench", "mixed", "--quick", "--kinds", "filters,windows", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout.splitlines()[-1])
    assert set(report) == {"shapes", "queries", "start_s", "carriers", "p95_s", "unseen_shape", "machine"}
    assert report["unseen_shape"]["carriers_started"] == 0
    assert report["queries"] == {"plain": 1, "towpath": 10}
    assert report["carriers"] == 2  # one for filters, one for windows, of whatever shape
