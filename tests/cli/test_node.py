"""`towpath node start`: what the options become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towpath.cli.node import command
from towpath.spark import server
from towpath.spark.server import Server


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How the server was asked for; none is started."""
    found: dict[str, Any] = {}

    def start(name: str, cores: int, memory: str, port: int | None, spark: Any, look: Any, **others: Any) -> Server:
        found.update(others, spark=spark)
        return Server(name, 1, 1, "sc://127.0.0.1:1", cores, memory, "spark.log")

    monkeypatch.setattr(server, "start", start)
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["start", "left", *arguments])


def test_a_node_of_this_machine(asked: dict[str, Any]) -> None:
    assert run().exit_code == 0
    assert asked == {"spark": {}, "master": None, "json_log": False}


def test_a_node_whose_log_is_json(asked: dict[str, Any]) -> None:
    assert run("--log-format", "json").exit_code == 0
    assert asked["json_log"]


def test_a_cluster_with_jars(asked: dict[str, Any], tmp_path: Path) -> None:
    jars = [tmp_path / "a.jar", tmp_path / "b.jar"]
    for jar in jars:
        jar.touch()
    options = ["--master", "spark://host:7077", "--conf", "spark.executor.memory=4g", "--packages", "g:n:1"]
    done = run(*options, *(text for jar in jars for text in ("--jars", str(jar))))
    assert done.exit_code == 0
    assert asked["master"] == "spark://host:7077"
    assert asked["spark"] == {
        "spark.executor.memory": "4g",
        "spark.jars": f"{jars[0]},{jars[1]}",
        "spark.jars.packages": "g:n:1",
    }


def test_settings_that_are_not_sparks_are_refused(asked: dict[str, Any]) -> None:
    done = run("--conf", "executor.memory=4g", "--conf", "spark.ui.enabled")
    assert done.exit_code == 2
    assert "expected spark.NAME=VALUE, got executor.memory, spark.ui.enabled" in done.output
    assert not asked
