"""The `towpath` command. A new command is one file with a `command`, and its name in COMMANDS."""

from __future__ import annotations

import difflib
import importlib
import logging

import click
from rich.logging import RichHandler

from towpath.cli.failures import GuardedGroup
from towpath.cli.output import MESSAGES

COMMANDS = (
    "init",
    "check",
    "explain",
    "run",
    "up",
    "console",
    "status",
    "top",
    "submit",
    "withdraw",
    "migrate",
    "drain",
    "history",
    "rejected",
    "results",
    "sql",
    "node",
    "prepare",
    "demo",
    "bench",
    "docs",
    "plan",
    "simulate",
    "what-if",
    "reproduce",
)


def command(name: str) -> click.Command:
    module = importlib.import_module(f"towpath.cli.{name.replace('-', '_')}")
    found = module.command
    assert isinstance(found, click.Command)
    return found


class _Commands(GuardedGroup):
    """Imports a command when it is asked for: nobody should wait for what only the others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        if name in COMMANDS or not close:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {name!r}; did you mean {close[0]}?", ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.epilog = "\b\n" + "\n".join(command(name).epilog or "" for name in COMMANDS)
        super().format_epilog(ctx, formatter)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="towpath", message="towpath %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Say on stderr what is being done.")
def main(verbose: bool) -> None:
    """Run thousands of standing SQL queries over live streams on Spark."""
    handler = _terminal_handler()
    handler.addFilter(logging.Filter("towpath"))  # what libraries log comes with stack traces
    if not verbose:
        handler.addFilter(_in_a_line)
    logging.basicConfig(handlers=[handler])
    logging.getLogger("towpath").setLevel(logging.DEBUG if verbose else logging.WARNING)


def _terminal_handler() -> logging.Handler:
    """In colours on a terminal, which breaks long lines; a file or a pipe gets them whole."""
    if MESSAGES.is_terminal:
        handler: logging.Handler = RichHandler(console=MESSAGES, show_path=False)
        handler.setFormatter(logging.Formatter("%(message)s"))
    else:
        handler = _Lines()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    return handler


class _Lines(logging.Handler):
    """Writes where all messages go, which is not always where this process has its stderr (failures.py)."""

    def emit(self, record: logging.LogRecord) -> None:
        MESSAGES.print(self.format(record), soft_wrap=True)


def _in_a_line(record: logging.LogRecord) -> bool:
    """What goes to the terminal: the first line, without a stack trace."""
    record.msg, record.args = record.getMessage().partition("\n")[0], ()
    record.exc_info = record.exc_text = record.stack_info = None
    return True
