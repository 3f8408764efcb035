"""Writes rows into a folder, second by second: `python -m towpath.lab.bench.feeder FOLDER ROWS FILES`, both per second.

A process of its own, at the lowest priority, so that making the data takes nothing from what is measured. It ends with
the process that started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.lab.bench.workloads import rows
from towpath.store import durable

SECOND_US = 1_000_000


class Feeder:
    """Rows arrive in the folder from `start` until the end of the `with` block."""

    def __init__(self, folder: Path, rate: int, files: int) -> None:
        self._command = [sys.executable, "-m", "towpath.lab.bench.feeder", str(folder), str(rate), str(files)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def start(self) -> None:
        """Only the first call does something."""
        if self._process is None:
            self._process = subprocess.Popen(self._command)


def write(folder: Path, name: str, table: pa.Table) -> None:
    """In one step, so that nobody reads half a file."""
    with durable.writing(folder / f"{name}.parquet", lasting=False) as scratch:
        pq.write_table(table, scratch)


def feed(folder: Path, rate: int, files: int) -> None:
    parent = os.getppid()
    os.nice(19)
    second = time.time_ns() // 10**9 + 1
    number = 0
    while os.getppid() == parent:
        # A second's rows arrive when it is over; event time is real time.
        table = rows(number, second * SECOND_US, SECOND_US, rate)
        time.sleep(max(0.0, second + 1 - time.time()))
        for n in range(files):
            part = table.slice(n * rate // files, (n + 1) * rate // files - n * rate // files)
            write(folder, f"{number:06}-{n}", part)
        second += 1
        number += 1


if __name__ == "__main__":
    feed(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
