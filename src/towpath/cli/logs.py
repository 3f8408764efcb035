"""How logs are written: lines for people, or with `--log-format json` an object a line for what collects logs."""

from __future__ import annotations

import io
import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Any

import click

from towpath.cli.output import MESSAGES

TEXT, JSON = FORMATS = ("text", "json")


def _choose(ctx: click.Context, _: click.Parameter, log_format: str) -> None:
    if log_format == JSON:
        _speak_json(ctx)


# Eager: what is wrong with the other options is said in JSON, too.
log_format_option: Callable[[Any], Any] = click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default=TEXT,
    show_default=True,
    envvar="TOWPATH_LOG_FORMAT",
    show_envvar=True,
    is_eager=True,
    expose_value=False,
    callback=_choose,
    help="Of the log, and of what is said on stderr.",
)


class JsonFormatter(logging.Formatter):
    """An object a line: time, level, logger, message, and of an error its kind and its trace."""

    def format(self, record: logging.LogRecord) -> str:
        said = _object(record.created, record.levelname.lower(), record.name, record.getMessage())
        if record.exc_info and (error := record.exc_info[1]) is not None:
            said["error"] = type(error).__name__
            said["trace"] = "".join(traceback.format_exception(error))
        return _line(said)


class _JsonLines(io.TextIOBase):
    """What is said to people, each message as an object in a line."""

    def __init__(self, beneath: IO[str]) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        if message := click.unstyle(text).strip("\n"):
            self.put(_line(_object(time.time(), "info", "towpath", message)))
        return len(text)

    def put(self, line: str) -> None:
        self.beneath.write(f"{line}\n")
        self.beneath.flush()


class _JsonHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(MESSAGES.file, _JsonLines):
            MESSAGES.file.put(self.format(record))


def _speak_json(ctx: click.Context) -> None:
    """From now on what this process says on stderr, and logs there, is JSON."""
    MESSAGES.file = _JsonLines(MESSAGES.file)  # type: ignore[assignment]
    root = logging.getLogger()
    before = root.handlers
    handler = _JsonHandler()
    handler.setFormatter(JsonFormatter())
    handler.addFilter(logging.Filter("towpath"))
    root.handlers = [handler]

    def end() -> None:
        root.handlers = before
        if isinstance(lines := MESSAGES.file, _JsonLines):
            MESSAGES.file = None if lines.beneath is sys.stderr else lines.beneath  # type: ignore[assignment]

    ctx.find_root().call_on_close(end)  # an error is reported when the context of the command is closed already


def speaks_json() -> bool:
    return isinstance(MESSAGES.file, _JsonLines)


def say_error(text: str) -> bool:
    """Says it in JSON if that was chosen; False if people are to read it."""
    if isinstance(lines := MESSAGES.file, _JsonLines):
        lines.put(_line(_object(time.time(), "error", "towpath", text)))
        return True
    return False


def speak_into(file: IO[str]) -> None:
    """What is said goes to this file, in the format that was chosen."""
    MESSAGES.file = _JsonLines(file) if speaks_json() else file  # type: ignore[assignment]


def _object(seconds: float, level: str, logger: str, message: str) -> dict[str, str]:
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": moment, "level": level, "logger": logger, "message": message}


def _line(said: dict[str, str]) -> str:
    return json.dumps(said, ensure_ascii=False)
