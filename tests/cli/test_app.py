from __future__ import annotations

import logging
from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner

from towpath.cli import main
from towpath.cli.app import COMMANDS


def test_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"towpath {version('towpath')}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_shows_every_command_with_an_example(command: click.Command) -> None:
    example = f"Example: towpath {command.name} "
    for arguments in (["--help"], [str(command.name), "-h"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0
        assert example in result.output


@pytest.mark.parametrize(("arguments", "level"), [([], logging.WARNING), (["-v"], logging.DEBUG)])
def test_verbose_tells_more(arguments: list[str], level: int) -> None:
    CliRunner().invoke(main, [*arguments, "check", "no-such-job.yaml"])
    assert logging.getLogger("towpath").getEffectiveLevel() == level


def test_an_unknown_command_is_a_mistake_of_usage() -> None:
    result = CliRunner().invoke(main, ["chekc"])
    assert result.exit_code == 2
    assert "No such command 'chekc'" in result.stderr
