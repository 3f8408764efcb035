from __future__ import annotations

import logging
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from towpath.cli import main
from towpath.cli.app import COMMANDS, _in_a_line, _terminal_handler


def test_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"towpath {version('towpath')}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_every_command_with_an_example(command: str) -> None:
    example = f"Example: towpath {command} "
    for arguments in (["--help"], [command, "-h"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0
        assert example in result.output


@pytest.mark.parametrize(("arguments", "level"), [([], logging.WARNING), (["-v"], logging.DEBUG)])
def test_verbose_prints_more(arguments: list[str], level: int) -> None:
    CliRunner().invoke(main, [*arguments, "check", "no-such-job.yaml"])
    assert logging.getLogger("towpath").getEffectiveLevel() == level


def test_an_unknown_command_is_a_mistake_of_usage() -> None:
    result = CliRunner().invoke(main, ["chekc"])
    assert result.exit_code == 2
    assert "No such command 'chekc'" in result.stderr


HEAVY = [
    "duckdb",
    "highspy",
    "httpx2",
    "matplotlib",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "pyspark",
    "scipy",
    "sqlglot",
    "starlette",
    "yaml",
]
LOADED = f"""
import sys
from towpath.cli import main
try:
    main()
finally:
    print("loaded:", *sorted(set({HEAVY}) & sys.modules.keys()))
"""


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=lambda words: " ".join(words) or "all")
def test_help_loads_no_heavy_package(words: list[str]) -> None:
    command = [sys.executable, "-c", LOADED, *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: ")
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_the_package_itself_loads_no_heavy_package() -> None:
    code = f"import sys, towpath; print(sorted({{'click', 'rich', *{HEAVY}}} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_is_logged_is_reported_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("towpath.test").exception("node %s: %s", "n1", "first\nsecond")
    (record,) = caplog.records
    assert _in_a_line(record)
    assert record.getMessage() == "node n1: first" and record.exc_info is None


def test_lines_stay_whole_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    long = "the disk is full " * 10
    _terminal_handler().handle(logging.LogRecord("towpath.test", logging.ERROR, "", 0, long, (), None))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f" ERROR {long}")


ERRS = """
import logging, pathlib, sys
import click
from towpath.cli.app import main
from towpath.cli.failures import keep_log

@click.command()
@click.argument("folder", type=pathlib.Path)
def command(folder):
    main.callback(verbose=False)
    keep_log(folder)
    logging.getLogger("towpath.test").error("the disk is full " * 10)
    sys.stderr.write("a stack trace of Spark's")

command()
"""


def test_errors_are_reported_also_while_stderr_is_kept_in_a_file(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ERRS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stderr.endswith(f" ERROR {'the disk is full ' * 10}\n")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("word", "hint"), [("chek", "; did you mean check?"), ("sumbit", "; did you mean submit?"), ("q", ".")]
)
def test_a_command_that_there_is_not_is_answered_with_one_that_there_is(word: str, hint: str) -> None:
    done = CliRunner().invoke(main, [word])
    assert done.exit_code == 2 and f"No such command '{word}'{hint}" in done.output
