"""Adding a planner is one file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from figures import fig1
from towpath import planners
from towpath.cli.plan import command
from towpath.errors import PlannerError, UnknownNameError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of planners with the one that the documentation shows."""
    text = (ROOT / "docs" / "how_to_add_a_planner.md").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "largest_first.py").write_text(shown[0], encoding="utf-8")
    monkeypatch.setattr(planners, "__path__", list(planners.__path__))
    known = set(sys.modules)
    yield tmp_path
    for module in set(sys.modules) - known:
        if module.startswith("towpath.planners."):
            del sys.modules[module]


def test_a_file_is_a_planner(folder: Path) -> None:
    planners.use(folder)
    planners.use(folder)
    assert planners.available().count("largest_first") == 1
    planner = planners.get("largest_first")
    assert planner.help == "The largest fragments first, each on the node that is least busy then."
    assert planner.objective == "load.highest"
    placement = planners.run("largest_first", fig1(), planners.options("largest_first", {"reserve": "0.1"}))
    assert placement.nodes == {"lower": ("n1",), "upper": ("n2",)}


def test_it_is_compared(folder: Path) -> None:
    problem = str(ROOT / "examples" / "problem.yaml")
    environment = {planners.FOLDERS_VARIABLE: str(folder)}
    answer = CliRunner().invoke(command, [problem, "--compare", "all", "--json"], env=environment)
    assert answer.exit_code == 0, answer.output
    compared = {outcome["planner"]: outcome for outcome in json.loads(answer.stdout)["planners"]}
    assert compared["largest_first"]["metrics"]["load.highest"] > 0
    assert compared["largest_first"]["violations"] == []


def test_the_laws_are_tested_with_it(folder: Path) -> None:
    laws = str(Path(__file__).with_name("test_laws.py"))
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", laws],
        cwd=ROOT,
        env={**os.environ, planners.FOLDERS_VARIABLE: str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "without_breaking_a_rule[largest_first]" in listed
    assert "describes_itself[largest_first]" in listed


def test_an_unknown_planner() -> None:
    with pytest.raises(UnknownNameError, match="randon is not a known planner; did you mean random"):
        planners.get("randon")


def test_all_that_is_wrong_with_options() -> None:
    with pytest.raises(PlannerError) as caught:
        planners.options("brute_force", {"limit": "many", "sed": "1"})
    assert [problem.where for problem in caught.value.problems] == ["limit", "sed"]
    assert 'expected a whole number, got "many"' in str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import nothing_of_this_name", "cannot be loaded: ModuleNotFoundError"),
        ("Options = 3", "has no plan(problem, options)"),
        ("def plan(problem, options): ...", "has no dataclass Options"),
    ],
)
def test_a_file_that_is_no_planner(folder: Path, text: str, found: str) -> None:
    (folder / "broken.py").write_text(text, encoding="utf-8")
    planners.use(folder)
    with pytest.raises(PlannerError, match=re.escape(found)):
        planners.get("broken")


def test_a_folder_that_is_none_and_a_name_that_is_taken(folder: Path) -> None:
    with pytest.raises(PlannerError, match="expected a folder of planners, found nothing"):
        planners.use(folder / "missing")
    (folder / "single.py").write_text("", encoding="utf-8")
    with pytest.raises(PlannerError, match=re.escape("single.py: a planner of that name exists")):
        planners.use(folder)


WRONG = '''"""Places nothing."""
from dataclasses import dataclass
from towpath.placement.problem import Placement

@dataclass(frozen=True)
class Options:
    pass

def plan(problem, options):
    return Placement({"upper": ("n7",)})
'''


def test_an_invalid_answer_names_the_planner_and_every_fault(folder: Path) -> None:
    (folder / "wrong.py").write_text(WRONG, encoding="utf-8")
    planners.use(folder)
    with pytest.raises(PlannerError, match="the planner wrong answered with an invalid placement") as caught:
        planners.run("wrong", fig1())
    assert [problem.where for problem in caught.value.problems] == ["fragment upper", "query q"]
