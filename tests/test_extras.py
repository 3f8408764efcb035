"""What works without the packages of extras, and how what needs them says so."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from towpath import planners
from towpath.cli import main
from towpath.cli.app import COMMANDS
from towpath.extras import EXTRAS, missing, require

ROOT = Path(__file__).parents[1]
PROBLEM = ROOT / "examples" / "problem.yaml"
JOB = ROOT / "examples" / "market.yaml"
NEED_PLANNERS = {"relaxation", "soda", "sqpr", "sqpr_heuristic"}
ON_TRANSIT_STUB = "generate: {topology: {type: transit_stub}, workload: {type: sbon, queries: 2}}\n"
LAB = "pip install 'towpath[lab]'"
PLANNERS = "pip install 'towpath[planners]'"
ALL_OF_LAB = "the packages highspy, matplotlib, numba and scipy, which are not installed"

# One process for many commands: importing takes longer than running them.
RUN_ALL = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
from click.testing import CliRunner
from towpath.cli import main
results = (CliRunner().invoke(main, words) for words in json.loads(sys.argv[2]))
print(json.dumps([{"code": r.exit_code, "stdout": r.stdout, "stderr": r.stderr} for r in results]))
"""
IMPORT_ALL = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
for name in json.loads(sys.argv[2]):
    importlib.import_module(name)
"""


def without(packages: tuple[str, ...], code: str, words: Any) -> str:
    """What a program prints where these packages are not installed."""
    command = [sys.executable, "-c", code, json.dumps(packages), json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_all(*commands: list[str]) -> Iterator[tuple[int, str, str]]:
    for result in json.loads(without(EXTRAS["lab"], RUN_ALL, commands)):
        yield result["code"], result["stdout"], result["stderr"]


def test_the_extras_are_those_of_the_package() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    def packages(extra: str) -> set[str]:
        names = {text.partition(">")[0].replace("-", "_") for text in stated[extra]}
        inner = {name for name in names if name.startswith("towpath[")}
        of_inner = (packages(part) for name in inner for part in name.removeprefix("towpath[")[:-1].split(","))
        return (names - inner).union(*of_inner)

    assert {extra: set(names) for extra, names in EXTRAS.items()} == {extra: packages(extra) for extra in EXTRAS}
    assert packages("dev") >= packages("lab") | packages("kafka")


def test_everything_else_is_imported_without_them() -> None:
    needing = (
        "towpath.lab.sim",
        "towpath.lab.reproduce",
        "towpath.cli.simulated",
        "towpath.reuse",
        "towpath.policies.sqpr",
    )
    needing += tuple(f"towpath.planners.{name}" for name in NEED_PLANNERS)
    files = (file.relative_to(ROOT / "src").with_suffix("") for file in (ROOT / "src" / "towpath").rglob("*.py"))
    modules = [".".join(file.parts).removesuffix(".__init__") for file in files]
    chosen = [name for name in modules if not name.startswith(needing)]
    assert {"towpath.lab.demo.play", "towpath.lab.bench.sharing", "towpath.policies.zhou.workload"} <= set(chosen)
    assert len(chosen) > 300
    without((*EXTRAS["lab"], *EXTRAS["kafka"], "hypothesis"), IMPORT_ALL, chosen)


def test_every_command_shows_its_help_without_them() -> None:
    for name, (code, stdout, _) in zip(COMMANDS, run_all(*([name, "--help"] for name in COMMANDS)), strict=True):
        assert (code, stdout.startswith("Usage: ")) == (0, True), name


def test_commands_that_need_the_laboratory_say_how_to_get_it(tmp_path: Path) -> None:
    commands = {
        "towpath simulate": ["simulate", str(PROBLEM), "--planner", "single"],
        "towpath reproduce": ["reproduce", "--list"],
        "--simulate": ["what-if", str(tmp_path), "--planner", "single", "--simulate", "1"],
    }
    for who, answer in zip(commands, run_all(*commands.values()), strict=True):
        assert answer == (1, "", f"{who} needs {ALL_OF_LAB}\n    -> {LAB}\n")
    for who, (code, stdout, stderr) in zip(
        commands, run_all(*([*w, "--json"] for w in commands.values())), strict=True
    ):
        assert (code, stderr) == (1, "")
        (problem,) = json.loads(stdout)["problems"]
        assert (problem["message"], problem["hint"]) == (f"{who} needs {ALL_OF_LAB}", LAB)


def test_commands_that_do_not_need_it_work(tmp_path: Path) -> None:
    planned = ["plan", str(PROBLEM), "--planner", "single", "--out", str(tmp_path / "placement.yaml")]
    checked = ["plan", str(PROBLEM), "--check-only"]
    job = tmp_path / "market.yaml"
    job.write_text(JOB.read_text())
    for answer in run_all(planned, checked, ["check", str(job)], ["explain", str(job)]):
        assert answer[0] == 0, answer
    # It looks for what the job has measured, which there is none of.
    ((code, _, stderr),) = run_all(["what-if", str(tmp_path), "--planner", "single"])
    assert (code, "nothing was measured yet" in stderr) == (1, True)


def test_every_planner_runs_or_says_how_to_get_what_it_needs() -> None:
    known = planners.available()
    assert set(known) >= NEED_PLANNERS
    commands = [["plan", str(PROBLEM), "--planner", name, "--json"] for name in known]
    for name, command, (code, stdout, stderr) in zip(known, commands, run_all(*commands), strict=True):
        answer = json.loads(stdout)
        if name in NEED_PLANNERS:
            (problem,) = answer["problems"]
            assert (code, stderr) == (1, "")
            answer = {f"the planner {name} needs the package {p}, which is not installed" for p in EXTRAS["planners"]}
            assert problem["message"] in answer and problem["hint"] == PLANNERS
        else:  # some cannot solve this problem, whatever is installed
            here = json.loads(CliRunner().invoke(main, command).stdout)
            assert [answer.get(key) for key in ("ok", "title", "placement")] == [
                here.get(key) for key in ("ok", "title", "placement")
            ]


def test_planners_that_lack_something_are_listed_and_compared() -> None:
    bare, compared, wrong = run_all(
        ["plan", str(PROBLEM)],
        ["plan", str(PROBLEM), "--compare", "all", "--json"],
        ["plan", str(PROBLEM), "--planner", "sqrp"],
    )
    listed = [f"{name} ({PLANNERS})" if name in NEED_PLANNERS else name for name in planners.available()]
    assert (bare[0], f"the planners are: {', '.join(listed)}\n" in bare[2]) == (2, True)
    outcomes = {outcome["planner"]: outcome for outcome in json.loads(compared[1])["planners"]}
    assert (compared[0], outcomes.keys()) == (0, set(planners.available()))
    for name, outcome in outcomes.items():
        assert (outcome["failure"] is not None and PLANNERS in outcome["failure"]) == (name in NEED_PLANNERS), name
        assert (outcome["placement"] is None) == (outcome["failure"] is not None)
    assert wrong[0] == 1 and "sqrp is not a known planner" in wrong[2]


def test_a_job_whose_policy_lacks_something_is_refused_by_check(tmp_path: Path) -> None:
    job = tmp_path / "market.yaml"
    job.write_text(f"{JOB.read_text()}\ncontrol: {{policy: sqpr}}\n")
    ((code, stdout, _),) = run_all(["check", str(job), "--json"])
    (problem,) = json.loads(stdout)["problems"]
    assert (code, problem["where"], problem["hint"]) == (1, "control.policy", PLANNERS)
    assert problem["message"].startswith("the policy sqpr needs the package ")


def test_a_job_whose_planner_lacks_something_is_refused_by_check(tmp_path: Path) -> None:
    job = tmp_path / "market.yaml"
    control = "control: {planner: relaxation, policy: replan, options: {planner: relaxation}}"
    job.write_text(f"{JOB.read_text()}\n{control}\n")
    ((code, stdout, _),) = run_all(["check", str(job), "--json"])
    answer = {problem["where"]: (problem["message"], problem["hint"]) for problem in json.loads(stdout)["problems"]}
    lack = "the planner relaxation needs the package scipy, which is not installed", PLANNERS
    assert (code, answer) == (1, {"control.planner": lack, "control.policy": lack})


def test_a_topology_that_needs_more_says_so(tmp_path: Path) -> None:
    (tmp_path / "problem.yaml").write_text(ON_TRANSIT_STUB)
    ((code, stdout, stderr),) = run_all(["plan", str(tmp_path / "problem.yaml"), "--planner", "single"])
    assert (code, stdout) == (1, "")
    answer = "the topology transit_stub needs the package scipy, which is not installed"
    assert stderr == f"{answer}\n    -> {PLANNERS}\n"


@pytest.mark.parametrize("extra", EXTRAS)
def test_nothing_is_asked_for_that_is_installed(extra: str) -> None:
    assert missing(extra) == []
    require(extra, "this test")
