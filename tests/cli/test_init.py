"""A job file to begin with: whoever writes one can run it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from towpath.cli import main
from towpath.cli.init import JOB


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize("name", [(), ("shop.yaml",)])
def test_it_passes_check_as_it_is(name: tuple[str, ...]) -> None:
    done = run("init", *name)
    file = name[0] if name else "job.yaml"
    assert done.exit_code == 0 and f"towpath check {file}" in done.output
    checked = run("check", file)
    assert checked.exit_code == 0, checked.output


def test_what_is_commented_out_can_be_used_too(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    lines = [
        line.replace("# ", "", 1) if line.startswith("  # ") and ":" in line.partition("# ")[2].split()[0] else line
        for line in JOB.splitlines()
    ]
    text = "\n".join(line.replace("  #   ", "    ", 1) if line.startswith("  #   ") else line for line in lines)
    assert set(yaml.safe_load(text)["streams"]) == {"bids", "orders", "payments"}
    (tmp_path / "all.yaml").write_text(text)
    checked = run("check", "all.yaml")
    assert checked.exit_code == 0, f"{text}\n{checked.output}"


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("mine")
    done = run("init")
    assert done.exit_code == 1 and "job.yaml is there already\n    -> name another file" in done.output
    assert (tmp_path / "job.yaml").read_text() == "mine"


def test_a_folder_that_is_not_there_is_reported() -> None:
    done = run("init", "nowhere/job.yaml")
    assert done.exit_code == 1 and "nowhere/job.yaml: cannot be written: No such file" in done.output
