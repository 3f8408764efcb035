"""Runs a measurement in a process of its own, so that every system starts with a fresh JVM."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TypeVar, cast

from towpath.errors import RuntimeFailure, TowpathError
from towpath.lab.bench.steps import Say

TIME_TO_STOP_S = 60.0  # a streaming query ends with its micro-batch
STDOUT, STDERR = 1, 2

Result = TypeVar("Result")


def apart(measure: Callable[..., Result], *arguments: object, log: Path, say: Say) -> Result:
    """`measure(*arguments, say)` in a new process. What it and Spark print goes to a log."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(measure, arguments, theirs, log))
    process.start()
    theirs.close()
    try:
        return cast(Result, _heard(ours, say, log))
    except BaseException:
        _interrupt(process)
        raise
    finally:
        process.join(TIME_TO_STOP_S)
        process.kill()


def new_log() -> Path:
    """A file of a name that nobody knows before: whoever does could have it lead elsewhere, or read it."""
    handle, path = tempfile.mkstemp(prefix="towpath-bench-", suffix=".log")
    os.close(handle)
    return Path(path)


def _heard(pipe: Connection, say: Say, log: Path) -> object:
    while True:
        try:
            kind, value = pipe.recv()
        except EOFError:
            raise RuntimeFailure(f"a measurement ended without an answer; see {log}") from None
        if kind == "said":
            say(value)
        elif kind == "failed":
            raise RuntimeFailure(f"{value}; see {log}")
        else:
            return value


def _interrupt(process: SpawnProcess) -> None:
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, signal.SIGINT)


def _work(measure: Callable[..., object], arguments: tuple[object, ...], pipe: Connection, log: Path) -> None:
    # Ctrl-C reaches the parent alone, which passes it on once: a second one would cut the cleaning up short.
    os.setsid()
    with log.open("a") as file:
        os.dup2(file.fileno(), STDOUT)
        os.dup2(file.fileno(), STDERR)
    try:
        pipe.send(("done", measure(*arguments, lambda text: pipe.send(("said", text)))))
    except KeyboardInterrupt:
        return
    except TowpathError as error:
        pipe.send(("failed", str(error)))
    except Exception as error:
        pipe.send(("failed", f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"))
        raise
