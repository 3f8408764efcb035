from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from towpath.cli import main
from towpath.lab.testing.problems import random_problem
from towpath.placement.problem import Placement
from towpath.problems.dump import write
from towpath.store.layout import Store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """What a job has measured in which everything runs on one node."""
    made = random_problem(Random(1))
    busiest = max(made.cluster.nodes, key=lambda node: node.cpu).name
    current = Placement.single({fragment.name: busiest for fragment in made.fragments})
    write(replace(made, pinned={}, current=current), Store(tmp_path).situation)
    return tmp_path


def test_it_says_what_would_move_and_what_that_would_change(store: Path) -> None:
    result = CliRunner().invoke(main, ["what-if", str(store), "--planner", "round_robin", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["moves"] and all(move["source"] != move["target"] for move in report["moves"])
    assert len(report["moves"]) <= report["fragments"]
    assert report["metrics"]["load.highest"]["then"] != report["metrics"]["load.highest"]["now"]


def test_for_people(store: Path) -> None:
    result = CliRunner().invoke(main, ["what-if", "--store", str(store), "--planner", "round_robin"])
    assert result.exit_code == 0, result.output
    assert "load.highest" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("fragments would move")


def test_a_planner_that_changes_nothing(store: Path) -> None:
    result = CliRunner().invoke(main, ["what-if", str(store), "--planner", "single", "--json"])
    assert json.loads(result.stdout)["moves"] == []


def test_without_measurements_it_says_how_to_get_them(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["what-if", str(tmp_path), "--planner", "single"])
    assert result.exit_code != 0
    assert "nothing was measured yet" in result.output and "control: {policy: static}" in result.output
