"""Whether the next micro-batch of a carrier passes: done on a copy of its checkpoint, with results that go nowhere."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from towpath.spark.failures import StoppedByOthers

LOOK_S = 0.1


def copy(epoch: Path, to: Path) -> None:
    """What a carrier starts from. Spark never changes a file of a checkpoint, so a link does, whatever its size."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    if (epoch / "checkpoint").exists():
        shutil.copytree(epoch / "checkpoint", to / "checkpoint", copy_function=_link)
    if (epoch / "tables").exists():
        shutil.copytree(epoch / "tables", to / "tables")  # the micro-batch is to have the tables that it had
    for index in epoch.glob("*/files"):  # of a feed; it is appended to
        (to / index.parent.name).mkdir()
        shutil.copyfile(index, to / index.parent.name / index.name)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # not every file system has links
        shutil.copy2(source, target)


def discard(rows: DataFrame, batch: int) -> None:
    rows.write.format("noop").mode("overwrite").save()


def failure_of(query: StreamingQuery) -> BaseException | None:
    """Waits for the first micro-batch, or until there is nothing to do; None if that went well. Stops the query."""
    idle = threading.Event()

    def wait() -> None:
        try:
            query.processAllAvailable()
            idle.set()
        except PySparkException:
            return  # it is looked at below

    threading.Thread(target=wait, name="trial", daemon=True).start()
    try:
        while query.isActive:
            if idle.is_set() or any("addBatch" in progress["durationMs"] for progress in query.recentProgress):
                return None
            time.sleep(LOOK_S)
        return query.exception() or StoppedByOthers()
    finally:
        query.stop()
