from __future__ import annotations

import io
import json
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
from towpath.cli.output import json_option, print_json
from towpath.errors import JobError, Mistake, StoreError

PROBLEMS = JobError(
    "2 mistakes in market.yaml",
    [
        Mistake("streams.bids", "no time column [at]", hint="add `time: at`"),
        Mistake(
            "queries.hot, line 1, column 8", "no column pricee", "price?", "SELECT pricee FROM bids\n       ^^^^^^"
        ),
    ],
)
USAGE = "group fail --help says how it is used"
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


def run(failure: BaseException, folder: Path | None = None, *words: str, answers: object = None) -> Result:
    @click.group(cls=failures.GuardedGroup)
    def group() -> None:
        pass

    @group.command()
    @json_option
    def fail(as_json: bool) -> None:
        if folder:
            failures.log_in(folder)
        if as_json and answers is not None:
            print_json(answers)
        raise failure

    return CliRunner().invoke(group, ["fail", *words])


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
def test_failures_of_the_user_are_reported_without_a_trace(
    failure: BaseException, code: int, said: str, tmp_path: Path
) -> None:
    result = run(failure)
    assert (result.exit_code, result.stderr, result.stdout) == (code, said, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("failure", "code", "title", "problems"),
    [
        (StoreError("it is locked\n    -> stop it"), 1, "it is locked", [("", "it is locked", "stop it")]),
        (PROBLEMS, 1, PROBLEMS.title, [(p.where, p.message, p.hint) for p in PROBLEMS.problems]),
        (click.ClickException("no such thing"), 1, "no such thing", [("", "no such thing", "")]),
        (click.UsageError("one or the other"), 2, "one or the other", [("", "one or the other", USAGE)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_with_json_a_failure_is_the_answer(
    failure: BaseException, code: int, title: str, problems: list[tuple[str, str, str]]
) -> None:
    result = run(failure, None, "--json")
    assert (result.exit_code, result.stderr) == (code, "")
    answer = json.loads(result.stdout)
    assert (answer["ok"], answer["title"]) == (False, title)
    assert [(p["where"], p["message"], p["hint"]) for p in answer["problems"]] == problems


def test_with_json_an_internal_error_is_the_answer(tmp_path: Path) -> None:
    result = run(ZeroDivisionError("by zero"), None, "--json")
    assert (result.exit_code, result.stderr) == (70, "")
    said = f"internal error: ZeroDivisionError: by zero; the details are in {tmp_path / 'towpath.log'}"
    assert json.loads(result.stdout)["title"] == said


@pytest.mark.parametrize("words", [("--json", "--nope"), ("--nope", "--json")])
def test_with_json_an_unknown_option_is_the_answer(words: tuple[str, ...]) -> None:
    result = run(StoreError("not reached"), None, *words)
    assert (result.exit_code, result.stderr) == (2, "")
    assert "--nope" in json.loads(result.stdout)["title"]


def test_a_failure_behind_an_answer_leaves_stdout_one_answer() -> None:
    result = run(StoreError("not done in time"), None, "--json", answers={"state": "draining"})
    assert json.loads(result.stdout) == {"state": "draining"}
    assert (result.exit_code, result.stderr) == (1, "not done in time\n")


def test_problems_are_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False, width=200)
    monkeypatch.setattr(failures, "MESSAGES", terminal)
    failures.show(PROBLEMS)
    printed = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[31m" in printed
    assert re.sub(r"\x1b\[[0-9;]*m", "", printed) == f"{PROBLEMS}\n"


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
