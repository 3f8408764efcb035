from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towpath import planners
from towpath.cli import main
from towpath.placement.costs import METRICS
from towpath.problems import load

EXAMPLE = Path(__file__).parents[2] / "examples" / "problem.yaml"
FULL = "nodes: {n: {count: 2}}\nstreams: {s: {node: n1, rate: 1000}}\n"
FULL += "queries: {q: {operators: {a: {inputs: s, cost: 2 ms}}}}\n"


def plan(file: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["plan", str(file), *options])


def report(file: Path, *options: str) -> dict[str, Any]:
    result = plan(file, *options, "--json")
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_a_placement_is_shown_with_its_metrics() -> None:
    result = plan(EXAMPLE, "--planner", "producer")
    assert result.exit_code == 0, result.output
    lines = [re.split(" {2,}", line.strip()) for line in result.stdout.splitlines()]
    rows = {row[0]: row[1:] for row in lines}
    assert rows["edge1"][1:] == ["3", "high-bids.1, by-category.2, suspicious.bids"]
    assert METRICS.keys() <= rows.keys()
    assert "4 nodes, 2 streams, 3 queries, 4 fragments" in result.stdout


def test_json_has_everything() -> None:
    answer = report(EXAMPLE, "--planner", "random", "--set", "seed=3")
    assert answer["problem"] == {"nodes": 4, "streams": 2, "queries": 3, "fragments": 4, "operators": 8}
    placement = planners.run("random", load(EXAMPLE), planners.options("random", {"seed": "3"}))
    assert answer["placement"] == {name: list(nodes) for name, nodes in placement.nodes.items()}
    assert answer["metrics"].keys() == METRICS.keys()
    assert answer["seconds"].keys() == {"plan", "check", "metrics"}
    assert answer["violations"] == []


def test_compare_has_a_row_for_each_planner_and_all_metrics() -> None:
    result = plan(EXAMPLE, "--compare", "all")
    assert result.exit_code == 0, result.output
    assert all(name in result.stdout for name in METRICS)
    for name in planners.available():
        assert len(re.findall(rf"^{name} ", result.stdout, re.MULTILINE)) == 7  # six papers and the summary
    answer = report(EXAMPLE, "--compare", "single, random")
    assert [outcome["planner"] for outcome in answer["planners"]] == ["single", "random"]


def test_a_planner_that_fails_is_reported_beside_the_others(tmp_path: Path) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text("generate: {workload: {type: zhou, queries: 10}}\n")
    answer = report(file, "--compare", "brute_force,random")
    failed, random = answer["planners"]
    assert "brute_force is for small problems" in failed["failure"] and failed["placement"] is None
    assert random["failure"] is None
    alone = plan(file, "--planner", "brute_force")
    assert alone.exit_code == 1 and "brute_force is for small problems" in alone.stderr


def test_violations_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text(FULL)
    result = plan(file, "--planner", "producer")
    assert "violation: node n1: cpu: 2 seconds of work per second, but it has 1" in result.stdout
    answer = report(file, "--planner", "producer")
    assert [violation["where"] for violation in answer["violations"]] == ["node n1"]
    assert answer["metrics"]["zhou.pr_max"] is None  # infinite: the queue only grows


def test_out_is_what_the_file_takes_as_placement(tmp_path: Path) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text(FULL)
    assert plan(file, "--planner", "producer", "--out", str(tmp_path / "p.csv")).exit_code == 0
    file.write_text(f"{FULL}placement: p.csv\n")
    checked = plan(file, "--check-only", "--json")
    assert checked.exit_code == 1
    answer = json.loads(checked.stdout)
    assert answer["ok"] is False and [v["kind"] for v in answer["violations"]] == ["cpu"]
    assert answer["seconds"].keys() == {"load", "check"}


def test_check_only_says_what_is_there() -> None:
    result = plan(EXAMPLE, "--check-only")
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "ok: 4 nodes, 2 streams, 3 queries, 4 fragments, 8 operators; there is no placement"
    )


def test_the_seed_is_for_generators_and_planners(tmp_path: Path) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text("generate: {workload: {type: zhou, queries: 10}}\n")
    one, again, other = (report(file, "--planner", "random", "--seed", seed) for seed in ("1", "1", "2"))
    assert one["placement"] == again["placement"] != other["placement"]


def test_mistakes_of_the_file_are_reported_in_both_forms(tmp_path: Path) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text("nodes: 3\n")
    result = plan(file, "--planner", "random")
    assert result.exit_code == 1
    assert "nodes (line 1): expected keys with values, got 3" in result.stderr
    as_json = plan(file, "--planner", "random", "--json")
    assert as_json.exit_code == 1
    assert [problem["where"] for problem in json.loads(as_json.stdout)["problems"]] == ["nodes (line 1)", "streams"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "use one of --planner, --compare and --check-only; the planners are: brute_force"),
        (["--planner", "random", "--compare", "all"], "use one of"),
        (["--compare", ""], "--compare needs names of planners"),
        (["--planner", "random", "--set", "seed"], "--set expects KEY=VALUE, got 'seed'"),
        (["--compare", "all", "--out", "x.csv"], "use it with --planner"),
        (["--compare", "random,single", "--set", "sead=3"], "none of these planners has the option sead"),
    ],
)
def test_wrong_use_is_answered(options: list[str], said: str) -> None:
    result = plan(EXAMPLE, *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--planner", "randon"], "did you mean random?"),
        (["--planner", "random", "--set", "sead=3"], "sead: is not a known key"),
        (["--planner", "random", "--set", "seed=x"], "seed: expected a whole number"),
        (["--planner", "random", "--out", "/nowhere/p.yaml"], "/nowhere/p.yaml cannot be written: No such file"),
        (["--planner", "random", "--out", "/nowhere/p.csv"], "/nowhere/p.csv cannot be written: "),
    ],
)
def test_wrong_values_are_answered(options: list[str], said: str) -> None:
    result = plan(EXAMPLE, *options)
    assert result.exit_code == 1
    assert said in result.stderr


def test_ctrl_c_ends_a_comparison_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    run = planners.run

    def interrupted(name: str, *rest: Any) -> Any:
        if name == "random":
            raise KeyboardInterrupt
        return run(name, *rest)

    monkeypatch.setattr(planners, "run", interrupted)
    result = plan(EXAMPLE, "--compare", "single,producer,random,consumer", "--json")
    assert result.exit_code == 130
    assert [outcome["planner"] for outcome in json.loads(result.stdout)["planners"]] == ["single", "producer"]
