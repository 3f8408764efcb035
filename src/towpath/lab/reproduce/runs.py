"""Many simulations, as many at once as there are processors; and what is kept of long ones, to go on another time."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from towpath.lab.reproduce.report import Progress
from towpath.store import durable

KEEP_EVERY_S = 10.0

Case = TypeVar("Case")
Seen = TypeVar("Seen")


# The folder in which experiments that can be interrupted keep what they have done; None: they begin anew.
kept_in: ContextVar[Path | None] = ContextVar("kept_in", default=None)


class Kept:
    """A file that says how far something has come."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._saved = time.monotonic()

    def load(self) -> Any:
        """What was saved last, if anything."""
        if self._file is None or not self._file.exists():
            return None
        return pickle.loads(self._file.read_bytes())

    def save(self, state: object, *, now: bool = False) -> None:
        """Every now and then, or `now`."""
        if self._file is None or not (now or time.monotonic() - self._saved >= KEEP_EVERY_S):
            return
        with durable.writing(self._file) as scratch:
            scratch.write_bytes(pickle.dumps(state))
        self._saved = time.monotonic()


def run_all(measure: Callable[[Case], Seen], cases: Sequence[Case], progress: Progress) -> list[Seen]:
    """What `measure` answers for each case, in the order of the cases. Both must be picklable."""
    workers = min(_processors(), len(cases))
    if workers <= 1:
        return [_counted(measure(case), n, len(cases), progress) for n, case in enumerate(cases, start=1)]
    # spawn: a fork would copy locks that threads hold. Ctrl-C is the business of the process that waits here.
    with ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:
        try:
            answers = pool.map(measure, cases)
            return [_counted(seen, n, len(cases), progress) for n, seen in enumerate(answers, start=1)]
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()  # else leaving the pool would wait for simulations that nobody wants
            raise


def _counted(seen: Seen, number: int, of: int, progress: Progress) -> Seen:
    progress(f"{number} of {of} simulations", number / of)
    return seen


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
