"""Was the machine left alone? What others took of the processors while something was measured."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from towpath.lab.usage import family
from towpath.spark import processes

LOOK_S = 1.0
KERNEL = 2  # the parent of the kernel's own threads, which work for whoever reads and writes: for what is measured
# Cores. Two runs on a machine that does nothing else differ by more than this much of other work brings about.
QUIET = 0.1
IDLE, WAITING, STOLEN = 3, 4, 7  # places among the times of /proc/stat
GUEST = 8  # from here on times that are part of others


@dataclass(frozen=True)
class Ticks:
    """CPU times since the machine was started, seen at a time."""

    at: float
    busy: int
    stolen: int
    ours: Mapping[int, int]  # by process


@dataclass(frozen=True)
class Company:
    """Cores that were taken, on average, by other processes, and by other machines on the same processors."""

    others: float
    stolen: float

    @property
    def quiet(self) -> bool:
        return self.others + self.stolen <= QUIET

    def to_json(self) -> dict[str, Any]:
        return {name: round(cores, 2) for name, cores in asdict(self).items()} | {"quiet": self.quiet}

    def __str__(self) -> str:
        if self.quiet:
            return "the machine was quiet"
        return (
            f"the machine was not quiet: other processes took {self.others:.2f} cores, other machines on its "
            f"processors {self.stolen:.2f}; run it again when there is nothing else to do"
        )


class QuietWatch:
    """Looks every second, since a process that has ended can not be asked any more what it took."""

    def __init__(self) -> None:
        self._others = self._stolen = 0
        self._seconds = 0.0
        self._last = look()

    def add(self, now: Ticks) -> None:
        ours = sum(ticks - self._last.ours.get(pid, 0) for pid, ticks in now.ours.items())
        # Single looks are off by a tick or two, in both directions: only the sum is looked at.
        self._others += now.busy - self._last.busy - ours
        self._stolen += now.stolen - self._last.stolen
        self._seconds += now.at - self._last.at
        self._last = now

    def company(self) -> Company:
        per_tick = processes.TICK_S / self._seconds if self._seconds else 0.0
        return Company(max(0.0, self._others * per_tick), self._stolen * per_tick)


@contextmanager
def watched() -> Iterator[QuietWatch]:
    """What others take until the end of the `with` block; of this process and its descendants nothing counts."""
    watch, ended = QuietWatch(), threading.Event()

    def go_on() -> None:
        while not ended.wait(LOOK_S):
            watch.add(look())

    thread = threading.Thread(target=go_on, name="quiet", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()


def look() -> Ticks:
    times = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
    busy = sum(times[:GUEST]) - times[IDLE] - times[WAITING] - times[STOLEN]
    mine = [*family(os.getpid()), *family(KERNEL)]
    return Ticks(time.monotonic(), busy, times[STOLEN], {pid: processes.own_ticks(pid) for pid in mine})
