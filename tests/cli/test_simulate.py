from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from towpath.cli import main
from towpath.cli import simulate as command

EXAMPLE = Path(__file__).parents[2] / "examples" / "problem.yaml"


def simulate(*options: str) -> Result:
    return CliRunner().invoke(main, ["simulate", str(EXAMPLE), "--seconds", "2", *options])


def test_shows_nodes_queries_and_sums() -> None:
    result = simulate("--planner", "producer")
    assert result.exit_code == 0, result.output
    assert "edge1" in result.stdout and "by-category" in result.stdout
    assert "2 simulated seconds" in result.stdout and "lost: nothing" in result.stdout


def test_shows_what_deciding_costs() -> None:
    arguments = ["--planner", "single", "--policy", "dcape", "--set", "policy.group_by=site", "--seconds", "1"]
    result = CliRunner().invoke(main, ["simulate", str(EXAMPLE.parent / "sites.yaml"), *arguments])
    assert result.exit_code == 0, result.output
    assert "messages in" in result.stdout and "manager.1.west" in result.stdout
    assert "messages in" not in simulate("--planner", "producer").stdout


def test_json_is_the_same_every_time() -> None:
    reports = [json.loads(simulate("--planner", "random", "--seed", "4", "--json").stdout) for _ in range(2)]
    for report in reports:
        assert report.pop("took") > 0
    assert reports[0] == reports[1]
    assert reports[0]["seed"] == 4
    assert reports[0]["results"] > 0


def test_writes_tables_and_plots(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = simulate("--planner", "single", "--policy", "zhou", "--set", "policy.kappa=1.5", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert {"load.png", "load.svg", "pr.png", "pr.svg"} <= {file.name for file in out.iterdir()}
    assert pd.read_parquet(out / "windows.parquet")["at"].tolist() == [1.0, 2.0]


def test_what_was_reported_to_managers_can_be_opened_in_a_spreadsheet(tmp_path: Path) -> None:
    policy = ("--policy", "dcape", "--set", "policy.window=0.5")
    result = simulate("--planner", "single", *policy, "--out", str(tmp_path), "--format", "csv")
    assert result.exit_code == 0, result.output
    reported = pd.read_csv(tmp_path / "reported.csv")
    assert list(reported) == ["seconds", "kind", "name", "property", "value"]
    assert {"edge1", "core"} < set(reported[reported["kind"] == "processor"]["name"])


def test_ctrl_c_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @contextmanager
    def interrupted(seconds: float) -> Iterator[Callable[[float], None]]:
        yield lambda at: signal.raise_signal(signal.SIGINT) if at == 1.0 else None

    monkeypatch.setattr(command, "_progress", interrupted)
    result = simulate("--planner", "single", "--out", str(tmp_path), "--format", "csv")
    assert result.exit_code == 130
    assert "stopped at 1.000 of 2 simulated seconds" in result.stderr
    assert pd.read_csv(tmp_path / "windows.csv")["at"].tolist() == [1.0]


WRONG = {
    "no planner": ([], 2, "there is no placement in"),
    "planner": (["--planner", "produce"], 1, "producer"),
    "policy": (["--planner", "single", "--policy", "zhu"], 1, "zhou"),
    "set": (["--planner", "single", "--set", "kappa=1"], 2, "planner.KEY=VALUE or policy.KEY=VALUE, got 'kappa=1'"),
    "option": (["--planner", "single", "--policy", "zhou", "--set", "policy.cappa=1"], 1, "cappa"),
    "seconds": (["--planner", "single", "--seconds", "0"], 2, "--seconds"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_reported(case: str) -> None:
    options, code, text = WRONG[case]
    result = simulate(*options)
    assert result.exit_code == code, result.output
    assert text in " ".join(result.output.split())


def series(folder: Path, *matrices: str) -> str:
    for number, text in enumerate(matrices, 1):
        (folder / f"{number}.txt").write_text(text, encoding="utf-8")
    return str(folder)


def rows(nodes: int, milliseconds: int) -> str:
    """Round-trip times, the same between all."""
    return "\n".join(" ".join("0" if a == b else str(milliseconds) for a in range(nodes)) for b in range(nodes))


def test_latencies_change_with_a_numbered_series(tmp_path: Path) -> None:
    delays = []
    for name, later in (("same", 2), ("slower", 400)):
        (tmp_path / name).mkdir()
        folder = series(tmp_path / name, rows(4, 2), rows(4, later))
        result = simulate("--planner", "producer", "--latencies", folder, "--slice", "1", "--out", str(tmp_path / name))
        assert result.exit_code == 0, result.output
        delays.append(pd.read_parquet(tmp_path / name / "paths.parquet")["delay_max"].max())
    assert delays[1] > delays[0] + 0.15, "half of 400 ms more, at least once"


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ((), "holds no numbered files"),
        (("1 2\n3",), "is no matrix of numbers"),
        ((rows(3, 2),), "1.txt has 3 rows, expected one for each of the 4 nodes"),
    ],
)
def test_a_series_that_does_not_fit_is_refused(matrices: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = simulate("--planner", "producer", "--latencies", series(tmp_path, *matrices))
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
