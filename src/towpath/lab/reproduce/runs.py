"""Many simulations, as many at once as there are processors."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from towpath.lab.reproduce.report import Progress

Case = TypeVar("Case")
Seen = TypeVar("Seen")


def run_all(measure: Callable[[Case], Seen], cases: Sequence[Case], progress: Progress) -> list[Seen]:
    """What `measure` answers for each case, in the order of the cases. Both must be picklable."""
    workers = min(_processors(), len(cases))
    if workers <= 1:
        return [_told(measure(case), n, len(cases), progress) for n, case in enumerate(cases, start=1)]
    # spawn: a fork would copy locks that threads hold. Ctrl-C is the business of the process that waits here.
    with ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:
        try:
            answers = pool.map(measure, cases)
            return [_told(seen, n, len(cases), progress) for n, seen in enumerate(answers, start=1)]
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()  # else leaving the pool would wait for simulations that nobody wants
            raise


def _told(seen: Seen, number: int, of: int, progress: Progress) -> Seen:
    progress(f"{number} of {of} simulations", number / of)
    return seen


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
