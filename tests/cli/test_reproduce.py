from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from towpath.cli import main
from towpath.lab import reproduce
from towpath.lab.reproduce import ExperimentReport, Lines, Progress, Scale, Series, Statement, Table


def small(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """A small experiment."""
    progress("half", 0.5)
    return ExperimentReport(
        (Statement.over("it is 1", "1", [1.0] * len(seeds), lambda mean: mean == 1),),
        (Table("numbers", ("scale", "seeds"), ((scale, len(seeds)),)),),
        (Lines("a line", "x", "y", (Series("a", (1.0, 2.0), (0.0, 1.0)),)),),
    )


@pytest.fixture(autouse=True)
def experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "available", lambda: {"small-one": small, "small-two": small})


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["reproduce", *arguments])


def test_the_list_says_what_each_is_about() -> None:
    assert "small-one" in run("--list").stdout and "A small experiment." in run("--list").stdout
    assert json.loads(run("--list", "--json").stdout) == dict.fromkeys(
        ["small-one", "small-two"], "A small experiment."
    )


def test_it_ends_with_one_line_of_json() -> None:
    result = run("small-one", "--seeds", "2")
    assert result.exit_code == 0
    summary = json.loads(result.stdout.splitlines()[-1])
    assert (summary["experiment"], summary["scale"], summary["seeds"]) == ("small-one", "default", 2)
    assert summary["statements"] == [{"claim": "it is 1", "paper": "1", "ours": 1.0, "spread": 0.0, "holds": True}]
    assert "half" in result.stderr


@pytest.mark.parametrize(("options", "seeds", "scale"), [((), 3, "default"), (("--full",), 5, "full")])
def test_seeds_and_scale(options: tuple[str, ...], seeds: int, scale: str) -> None:
    (line,) = run("small-two", "--json", *options).stdout.splitlines()
    assert (json.loads(line)["seeds"], json.loads(line)["scale"]) == (seeds, scale)


def test_files_are_written(tmp_path: Path) -> None:
    run("small-one", "--out", str(tmp_path))
    names = sorted(file.name for file in (tmp_path / "small-one").iterdir())
    assert names == ["plot1.png", "plot1.svg", "statements.json", "table1.csv"]
    assert (tmp_path / "small-one" / "table1.csv").read_text() == "scale,seeds\ndefault,3\n"


def test_one_page_for_all(tmp_path: Path) -> None:
    result = run("--all", "--report", str(tmp_path), "--json")
    assert [json.loads(line)["experiment"] for line in result.stdout.splitlines()] == ["small-one", "small-two"]
    assert (tmp_path / "index.html").read_text().count("<svg") == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "name an experiment, or use --all"),
        (("small-one", "--all"), 2, "name an experiment, or use --all"),
        (("small-one", "other"), 1, "no experiment 'other'; there are small-one, small-two"),
    ],
)
def test_what_was_wrong_is_reported_before_anything_runs(arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.stderr and "half" not in result.stderr
