"""The `towpath` command. A new command is one file with a `command`, and its place in COMMANDS."""

from __future__ import annotations

import logging

import click
from rich.logging import RichHandler

from towpath.cli import (
    bench,
    check,
    demo,
    drain,
    explain,
    history,
    migrate,
    node,
    plan,
    reproduce,
    results,
    run,
    simulate,
    status,
    submit,
    top,
    up,
    what_if,
    withdraw,
)
from towpath.cli.failures import GuardedGroup
from towpath.cli.output import MESSAGES

COMMANDS: tuple[click.Command, ...] = (
    check.command,
    explain.command,
    run.command,
    up.command,
    status.command,
    top.command,
    submit.command,
    withdraw.command,
    migrate.command,
    drain.command,
    history.command,
    results.command,
    node.command,
    demo.command,
    bench.command,
    plan.command,
    simulate.command,
    what_if.command,
    reproduce.command,
)


@click.group(
    cls=GuardedGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="\b\n" + "\n".join(command.epilog or "" for command in COMMANDS),
)
@click.version_option(package_name="towpath", message="towpath %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Tell on stderr what is being done.")
def main(verbose: bool) -> None:
    """Run thousands of standing SQL queries over live streams on Spark."""
    told = RichHandler(console=MESSAGES, show_path=False)
    told.addFilter(logging.Filter("towpath"))  # what libraries log comes with stack traces
    logging.basicConfig(format="%(message)s", handlers=[told])
    logging.getLogger("towpath").setLevel(logging.DEBUG if verbose else logging.WARNING)


for _command in COMMANDS:
    main.add_command(_command)
