"""`--log-format json`: every line is an object, whatever is said."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from towpath.cli.failures import GuardedGroup, keep_log, show
from towpath.cli.logs import log_format_option
from towpath.cli.output import MESSAGES
from towpath.errors import Mistake, QueryError, StoreError

log = logging.getLogger("towpath.somewhere")


@click.group(cls=GuardedGroup)
def main() -> None:
    pass


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@log_format_option
def work(folder: Path) -> None:
    keep_log(folder)
    MESSAGES.print("running: 3 queries", soft_wrap=True)
    log.info("it goes on")
    try:
        raise ValueError("odd")
    except ValueError:
        log.exception("a part %s", "failed")
    show(QueryError("1 mistake:", [Mistake("q", "no column x", "did you mean y?", "SELECT x\n       ^")]))
    raise StoreError("the disk is full")


@pytest.fixture
def in_json(tmp_path: Path) -> Result:
    return CliRunner().invoke(main, ["work", str(tmp_path), "--log-format", "json"])


def test_each_line_of_stderr_is_an_object(in_json: Result) -> None:
    said = [json.loads(line) for line in in_json.stderr.splitlines()]
    assert [(entry["level"], entry["logger"], entry["message"].partition("\n")[0]) for entry in said] == [
        ("info", "towpath", "running: 3 queries"),
        ("error", "towpath.somewhere", "a part failed"),
        ("error", "towpath", "1 mistake:"),
        ("error", "towpath", "the disk is full"),
    ]
    assert said[1]["error"] == "ValueError" and said[1]["trace"].endswith("ValueError: odd\n")
    assert "       ^" in said[2]["message"]
    assert in_json.exit_code == 1


def test_each_line_of_the_log_is_an_object(in_json: Result, tmp_path: Path) -> None:
    said = [json.loads(line) for line in (tmp_path / "towpath.log").read_text().splitlines()]
    assert [entry["message"] for entry in said] == ["it goes on", "a part failed"]
    assert all(entry["time"].endswith("Z") for entry in said)


def test_afterwards_everything_is_as_it_was(in_json: Result, tmp_path: Path) -> None:
    plain = CliRunner().invoke(main, ["work", str(tmp_path)])
    assert "running: 3 queries\n" in plain.stderr
    assert not plain.stderr.startswith("{")


def test_the_environment_can_choose_it(tmp_path: Path) -> None:
    result = CliRunner(env={"TOWPATH_LOG_FORMAT": "json"}).invoke(main, ["work", str(tmp_path)])
    assert json.loads(result.stderr.splitlines()[0])["message"] == "running: 3 queries"
