"""What a user sees when a command fails: a message and an exit code, never a stack trace."""

from __future__ import annotations

import dataclasses
import errno
import io
import logging
import os
import select
import sys
import traceback
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from towpath.cli.logs import JsonFormatter, say_error, speak_into, speaks_json
from towpath.cli.output import MESSAGES, owes_json, print_json
from towpath.errors import Mistake, ProblemsError, StoreError, TowpathError
from towpath.store.private import private_folder, private_umask

FAILED = 1
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
STOPPED = 130  # as a shell reports SIGINT
CLOSED = 141  # as a shell reports SIGPIPE

LOG_BYTES = 20_000_000
_LOG_FOLDER = "towpath.log_folder"
_HINT = "\n    -> "  # between the message of an error and what to do


class GuardedGroup(click.Group):
    """A group of commands whose failures are reported here."""

    def invoke(self, ctx: click.Context) -> Any:
        words = [*ctx._protected_args, *ctx.args]
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here and not when Python exits, where nobody could catch a closed pipe any more
            return result
        except click.exceptions.Exit:
            raise
        except click.ClickException as error:
            if not owes_json(ctx) and not _asked_in_vain(error, words):
                raise
            _answer(_usage_problem(error))
            ctx.exit(error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            MESSAGES.print("stopped")
            ctx.exit(STOPPED)
        except TowpathError as error:
            _report(ctx, error)
            ctx.exit(FAILED)
        except Exception as error:
            if isinstance(error, BrokenPipeError) and _reader_left():
                ctx.exit(CLOSED)
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                where = f"{error.filename}: " if error.filename else ""
                message = f"{where}the disk is full ({error.strerror})"
                hint = "nothing is lost; see to room on the disk, and start the job again"
                _report(ctx, StoreError(f"{message}{_HINT}{hint}"))
                ctx.exit(FAILED)
            _report_internal(ctx, error)
            ctx.exit(INTERNAL)


def _report(ctx: click.Context, error: TowpathError) -> None:
    """In JSON on stdout where that was asked for, in the form that docs/service.md describes; else on stderr."""
    if not owes_json(ctx):
        show(error)
    elif isinstance(error, ProblemsError):
        _answer(error)
    else:
        message, _, hint = str(error).partition(_HINT)
        _answer(ProblemsError(message, [Mistake("", message, hint)]))


def _answer(error: ProblemsError) -> None:
    print_json({"ok": False, "title": error.title, "problems": [dataclasses.asdict(p) for p in error.problems]})


def _usage_problem(error: click.ClickException) -> ProblemsError:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    message, hint = error.format_message(), f"{ctx.command_path} --help says how it is used" if ctx else ""
    return ProblemsError(message, [Mistake("", message, hint)])


def _asked_in_vain(error: click.ClickException, words: list[str]) -> bool:
    """Whether an option nobody knows kept click from seeing that JSON was asked for."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return False
    return "--json" in words and any(option.name == "as_json" for option in error.ctx.command.params)


def log_in(folder: Path) -> None:
    """From now on the details of an internal error go to this folder (the store's, once a command has one)."""
    click.get_current_context().meta[_LOG_FOLDER] = folder


def keep_log(folder: Path) -> None:
    """From now on what is logged goes to towpath.log in this folder of a store, and to the terminal what is an error.

    With --verbose everything goes to both.
    """
    private_folder(folder.parent)
    click.get_current_context().with_resource(private_umask())
    private_folder(folder)
    log_in(folder)
    handler = RotatingFileHandler(folder / "towpath.log", maxBytes=LOG_BYTES, backupCount=3, encoding="utf-8")
    lines = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if speaks_json() else lines)
    root, own = logging.getLogger(), logging.getLogger("towpath")
    terminals = root.handlers
    root.handlers = [handler, *terminals]  # in this order: what goes to the terminal is cut to a line
    for terminal in terminals:
        terminal.setLevel(logging.DEBUG if own.level == logging.DEBUG else logging.ERROR)
    own.setLevel(min(own.level, logging.INFO))

    def forget() -> None:
        root.handlers = terminals
        for terminal in terminals:
            terminal.setLevel(logging.NOTSET)
        handler.close()

    click.get_current_context().call_on_close(forget)
    _keep_what_processes_say(folder / "spark.err")


def _keep_what_processes_say(file: Path) -> None:
    """Spark's processes inherit stderr, and some of them, and PySpark here, end with a stack trace when stopped."""
    try:
        ours = os.dup(sys.stderr.fileno())
    except io.UnsupportedOperation:  # stderr is a stream in memory, which no process inherits
        return
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), sys.stderr.fileno())
    speak_into(os.fdopen(ours, "w", buffering=1, encoding="utf-8", errors="backslashreplace"))


def show(error: TowpathError) -> None:
    if say_error(str(error)):
        return
    if isinstance(error, ProblemsError):
        _print(Text(error.title, style="bold"))
        for problem in error.problems:
            _print(_coloured(problem))
    else:
        _print(Text(str(error)))


def _coloured(problem: Mistake) -> Text:
    """The same text as str(problem)."""
    text = Text()
    if problem.where:
        text.append(f"{problem.where}: ", style="bold")
    text.append(problem.message, style="red")
    for line in problem.excerpt.splitlines():
        text.append(f"\n    {line}", style="red" if set(line) <= {" ", "^"} else "")
    if problem.hint:
        text.append(f"\n    -> {problem.hint}", style="cyan")
    return text


def _reader_left() -> bool:
    """Whether it was stdout or stderr whose reader went away (`| head`), and not some other connection.

    They then lead nowhere, since Python flushes them once more when it exits.
    """
    left = False
    for stream in (sys.stdout, sys.stderr):
        with suppress(io.UnsupportedOperation):  # a stream in memory has no reader
            poll = select.poll()
            poll.register(stream.fileno(), 0)  # no events asked for: only errors are reported
            if poll.poll(0):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
                left = True
    return left


def _log_file(ctx: click.Context) -> Path:
    folder: Path = ctx.meta.get(_LOG_FOLDER, Path())
    return Path(os.environ.get("TOWPATH_LOG") or folder / "towpath.log").absolute()


def _report_internal(ctx: click.Context, error: Exception) -> None:
    log = _log_file(ctx)
    details = "".join(traceback.format_exception(error))
    message = f"internal error: {type(error).__name__}: {error}"
    try:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(sys.argv)}\n{details}\n")
    except OSError as failure:
        _print(Text(details))
        _report(ctx, TowpathError(f"{message}; its details are above, because they could not be written: {failure}"))
    else:
        _report(ctx, TowpathError(f"{message}; the details are in {log}"))


def _print(text: Text) -> None:
    # Without soft_wrap a pipe or a log file would get lines broken at column 80.
    MESSAGES.print(text, soft_wrap=True)
