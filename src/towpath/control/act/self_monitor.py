"""Detects pauses of the controller, clock steps and a full disk.

A thread looks twice a second, so that it also sees what happens while the controller is busy. What it noticed is logged
at once; whoever polls writes it into the history.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from towpath.control.state.history import EventKind

log = logging.getLogger(__name__)

EVERY_S = 0.5
STILL_S = 2.0  # a busy machine may well let a thread wait for less
CLOCK_S = 1.0  # a clock that is put right bit by bit does less between two looks
FULL_BYTES, FULL_SHARE = 64 << 20, 0.02  # of the disk: whichever is less


class Observation(NamedTuple):
    kind: EventKind
    text: str


class Moment(NamedTuple):
    monotonic_s: float
    wall_s: float
    free_bytes: int
    disk_bytes: int


@dataclass
class Vitals:
    """Compares each moment with the one before. Pure."""

    last: Moment
    full_since_s: float | None = None

    def look(self, now: Moment) -> list[Observation]:
        passed_s = now.monotonic_s - self.last.monotonic_s
        stepped_s = now.wall_s - self.last.wall_s - passed_s
        self.last = now
        found = []
        if passed_s > EVERY_S + STILL_S:
            text = f"the controller stood still for {passed_s:.1f} s: it was paused, or the machine had no time for it"
            found.append(Observation(EventKind.CONTROLLER_PAUSED, text))
        if abs(stepped_s) > CLOCK_S:
            way = "forward" if stepped_s > 0 else "back"
            text = f"the clock was put {way} by {abs(stepped_s):,.0f} s; times shown here depend on it, queries do not"
            found.append(Observation(EventKind.CLOCK_CHANGED, text))
        return found + self._disk(now)

    def _disk(self, now: Moment) -> list[Observation]:
        """It is recorded when it is over: before, there is nowhere to write it down."""
        full = now.free_bytes < min(FULL_BYTES, now.disk_bytes * FULL_SHARE)
        if full and self.full_since_s is None:
            self.full_since_s = now.monotonic_s
            log.error(
                "the disk that the store is on is full: %.1f MB are free; make room, or the job will end (it goes on "
                "where it was when it is started again)",
                now.free_bytes / 1e6,
            )
        elif not full and self.full_since_s is not None:
            text = f"the disk that the store is on was full for {now.monotonic_s - self.full_since_s:.1f} s"
            self.full_since_s = None
            return [Observation(EventKind.DISK_FULL, text)]
        return []


class SelfMonitor:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._noticed: list[Observation] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="self-monitor", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()

    def news(self) -> list[Observation]:
        """What was noticed since the last time."""
        with self._guard:
            found, self._noticed = self._noticed, []
        return found

    def _run(self) -> None:
        vitals = Vitals(self._now())
        while not self._done.wait(EVERY_S):
            found = vitals.look(self._now())
            for noticed in found:
                log.error("%s", noticed.text)  # seen on the terminal, too: the history may have nowhere to be written
            with self._guard:
                self._noticed += found

    def _now(self) -> Moment:
        try:
            total, _, free = shutil.disk_usage(self._folder)
        except OSError:
            total = free = 0  # who needs the folder will say so
        while True:
            before, wall, after = time.monotonic(), time.time(), time.monotonic()
            if after - before < CLOCK_S / 2:  # else it stood still between two looks at clocks
                return Moment(after, wall, free, total)
