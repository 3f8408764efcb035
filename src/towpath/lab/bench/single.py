"""One query alone: towpath against the same query written by hand, on a backlog of files, as fast as each can."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from towpath.api.running import start
from towpath.control.decide.requests import Request
from towpath.lab.bench import plain, shared
from towpath.lab.bench.feeder import write
from towpath.lab.bench.steps import Say
from towpath.lab.bench.workloads import KINDS, WorkloadKind, rows
from towpath.lang import parse
from towpath.spark.node import NodeSettings, open_session

SECOND_US = 1_000_000
START_US = 1_767_225_600 * SECOND_US  # 2026-01-01
TRIGGER_MS = 10
BY_HAND, TOWPATH = "by hand", "towpath"


@dataclass(frozen=True)
class Backlog:
    files: int = 400
    rows: int = 100_000  # of each file
    rounds: int = 4  # that count; one more goes before, for the JVM to compile


@dataclass(frozen=True)
class Single:
    """Seconds of both sides, round by round."""

    by_hand: tuple[float, ...]
    towpath: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Throughput of towpath relative to the query written by hand."""
        return median(self.by_hand) / median(self.towpath)


def compare(kind_name: str, backlog: Backlog, rate: int, cores: int, say: Say) -> Single:
    kind = KINDS[kind_name]
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        say("writing the backlog")
        _write(folder / "data", backlog, rate)
        spark = open_session(NodeSettings(cores, plain.MEMORY), folder / "log")
        ours, theirs = [], []
        for number in range(backlog.rounds + 1):
            say(f"round {number} of {backlog.rounds}" if number else "warming up")
            # The JVM goes on compiling from round to round, so each side goes first in every other one.
            for side in (BY_HAND, TOWPATH) if number % 2 else (TOWPATH, BY_HAND):
                if side == BY_HAND:
                    theirs.append(_by_hand(spark, kind, folder))
                else:
                    ours.append(_towpath(kind, folder, cores))
        return Single(tuple(theirs[1:]), tuple(ours[1:]))


def _write(folder: Path, backlog: Backlog, rate: int) -> None:
    folder.mkdir()
    length_us = backlog.rows * SECOND_US // rate
    for n in range(backlog.files):
        write(folder, f"{n:04}", rows(n, START_US + n * length_us, length_us, backlog.rows))


def _by_hand(spark: SparkSession, kind: WorkloadKind, folder: Path) -> float:
    work = folder / "by-hand"
    data = plain.read(spark, folder / "data", plain.SETTINGS[0])
    begin = time.monotonic()
    query = plain.run(kind.by_hand(data, 0), work, "q0", TRIGGER_MS)
    query.processAllAvailable()
    seconds = time.monotonic() - begin
    query.stop()
    shutil.rmtree(work)
    return seconds


def _towpath(kind: WorkloadKind, folder: Path, cores: int) -> float:
    work = folder / "towpath"
    work.mkdir()
    everything = shared.job(work, folder / "data", cores, TRIGGER_MS)
    query = parse(kind.sql(0), everything.catalog, "q0")
    used = {name: everything.streams[name] for name in query.streams}
    # The query written by hand names the streams it needs, so this job has no others either.
    with start(replace(everything, streams=used)) as running:
        begin = time.monotonic()
        running.engine.submit([Request(query)])
        running.engine.finishing.settle()
        seconds = time.monotonic() - begin
    shutil.rmtree(work)
    return seconds
