from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from towpath.cli import failures
from towpath.errors import JobError, Problem, StoreError

PROBLEMS = JobError(
    "2 mistakes in market.yaml",
    [
        Problem("streams.bids", "no time column [at]", hint="add `time: at`"),
        Problem(
            "queries.hot, line 1, column 8", "no column pricee", "price?", "SELECT pricee FROM bids\n       ^^^^^^"
        ),
    ],
)
WRITES_MUCH = """
import click
from towpath.cli.failures import GuardedGroup

@click.group(cls=GuardedGroup)
def group(): pass

@group.command()
def write():
    for _ in range(10_000):
        click.echo("x" * 100)

group(["write"])
"""


def run(failure: BaseException, folder: Path | None = None) -> Result:
    @click.group(cls=failures.GuardedGroup)
    def group() -> None:
        pass

    @group.command()
    def fail() -> None:
        if folder:
            failures.log_in(folder)
        raise failure

    return CliRunner().invoke(group, ["fail"])


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOWPATH_LOG", raising=False)


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (StoreError("market.store is [locked]"), 1, "market.store is [locked]\n"),
        (PROBLEMS, 1, f"{PROBLEMS}\n"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (click.Abort(), 130, "stopped\n"),
        (click.ClickException("no such thing"), 1, "Error: no such thing\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_failures_of_the_user_are_told_without_a_trace(
    failure: BaseException, code: int, said: str, tmp_path: Path
) -> None:
    result = run(failure)
    assert (result.exit_code, result.stderr, result.stdout) == (code, said, "")
    assert not list(tmp_path.iterdir())


def test_problems_are_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False, width=200)
    monkeypatch.setattr(failures, "MESSAGES", terminal)
    failures.show(PROBLEMS)
    told = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[31m" in told
    assert re.sub(r"\x1b\[[0-9;]*m", "", told) == f"{PROBLEMS}\n"


def test_a_long_line_is_not_broken() -> None:
    message = "word " * 100
    assert run(StoreError(message)).stderr == f"{message}\n"


@pytest.mark.parametrize(
    ("variable", "store", "log"),
    [
        (None, None, "towpath.log"),
        (None, "store", "store/towpath.log"),
        ("mine.log", "store", "mine.log"),
    ],
)
def test_an_internal_error_leaves_its_trace_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, store: str | None, log: str
) -> None:
    if variable:
        monkeypatch.setenv("TOWPATH_LOG", variable)
    (tmp_path / "store").mkdir()
    result = run(ZeroDivisionError("by zero"), folder=Path(store) if store else None)
    assert result.exit_code == 70
    assert result.stderr == f"internal error: ZeroDivisionError: by zero; the details are in {tmp_path / log}\n"
    assert "Traceback" in (tmp_path / log).read_text()


def test_details_that_cannot_be_logged_are_shown(tmp_path: Path) -> None:
    result = run(ZeroDivisionError("by zero"), folder=tmp_path / "missing")
    assert result.exit_code == 70
    assert "Traceback" in result.stderr
    assert "internal error: ZeroDivisionError: by zero; its details are above" in result.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_left_ends_the_command_silently(unbuffered: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES_MUCH],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    with process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_a_broken_connection_is_not_taken_for_a_reader_that_left() -> None:
    result = run(BrokenPipeError(32, "Broken pipe"))
    assert result.exit_code == 70
    assert "BrokenPipeError" in result.stderr
