"""Plain Spark: one Structured Streaming query for each standing query, all in one session."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from towpath.lab.bench.feeder import Feeder
from towpath.lab.bench.steps import Say, Trigger
from towpath.lab.bench.workloads import DDL, WorkloadKind
from towpath.spark.inputs import MOST_FILES
from towpath.spark.node import NodeSettings, open_session

MEMORY = "6g"
REPORT_EVERY = 5  # queries
# Asking for progress costs time that the queries need, so they are asked seldom, and for no more than happened since.
LOOK_S, PROGRESS_KEPT = 5.0, {"spark.sql.streaming.numRecentProgressUpdates": "10"}


@dataclass(frozen=True)
class SparkSetting:
    """One way to set plain Spark up; the benchmark takes the best. All begin with the settings towpath itself has."""

    name: str
    spark: dict[str, str] = field(default_factory=dict)
    partitions: int | None = None  # that the input is brought down to


SETTINGS = (
    SparkSetting("as towpath's node: FAIR, shuffle partitions = cores, light checkpoints"),
    SparkSetting("one task per stage", {"spark.sql.shuffle.partitions": "1"}, partitions=1),
    SparkSetting(
        "one task per stage, no more tasks than cores",
        {"spark.sql.shuffle.partitions": "1", "spark.master": "local[2]"},
        partitions=1,
    ),
    SparkSetting(
        "one task per stage, no more tasks than cores, no batches without data",
        {
            "spark.sql.shuffle.partitions": "1",
            "spark.master": "local[2]",
            "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        },
        partitions=1,
    ),
)


def read(spark: SparkSession, data: Path, setting: SparkSetting) -> DataFrame:
    reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", MOST_FILES)
    rows = reader.parquet(str(data))
    return rows if setting.partitions is None else rows.coalesce(setting.partitions)


def run(rows: DataFrame, folder: Path, name: str, trigger_ms: int) -> StreamingQuery:
    """Spark's Parquet sink is the cheapest of its exactly-once ways to a file."""
    return (
        rows.writeStream.queryName(name)
        .format("parquet")
        .option("path", str(folder / "out" / name))
        .option("checkpointLocation", str(folder / "checkpoints" / name))
        .trigger(processingTime=f"{trigger_ms} milliseconds")
        .start()
    )


class Plain:
    """Streaming queries that become more."""

    def __init__(
        self, spark: SparkSession, folder: Path, kind: WorkloadKind, setting: SparkSetting, feeder: Feeder, say: Say
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._kind = kind
        self._setting = setting
        self._feeder = feeder
        self._say = say
        self._queries: list[StreamingQuery] = []
        self._seen: list[int] = []
        self._looked = 0.0

    def grow_to(self, n: int) -> None:
        while len(self._queries) < n:
            number = len(self._queries)
            rows = self._kind.by_hand(read(self._spark, self._folder / "data", self._setting), number)
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"q{number}")
            self._queries.append(run(rows, self._folder, f"q{number}", trigger_ms=1000))
            self._seen.append(-1)
            if number % REPORT_EVERY == REPORT_EVERY - 1:
                self._say(f"{number + 1:,} of {n:,} queries started")
        self._feeder.start()  # after the first queries, or they would begin with a backlog

    def triggers(self) -> Sequence[Trigger]:
        if time.monotonic() - self._looked < LOOK_S:
            return []
        self._looked = time.monotonic()
        return [t for n in range(len(self._queries)) for t in self._fresh(n)]

    def _fresh(self, n: int) -> Iterator[Trigger]:
        last = self._queries[n].lastProgress
        if last is None or last["batchId"] <= self._seen[n]:
            return
        for progress in self._queries[n].recentProgress:
            duration = progress["durationMs"]
            if progress["batchId"] > self._seen[n] and "addBatch" in duration:
                state = sum(s["numRowsTotal"] for s in progress["stateOperators"])
                yield Trigger(duration["triggerExecution"] / 1000, progress["numInputRows"], dict(duration), state)
        self._seen[n] = last["batchId"]

    def stop(self) -> None:
        for query in self._queries:
            query.stop()


@contextmanager
def opened(kind: WorkloadKind, setting: SparkSetting, rate: int, cores: int, say: Say) -> Iterator[Plain]:
    with tempfile.TemporaryDirectory(prefix="towpath-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        (folder / "data").mkdir()
        spark = open_session(NodeSettings(cores, MEMORY, PROGRESS_KEPT | setting.spark), folder / "log")
        with Feeder(folder / "data", rate, cores) as feeder:
            plain = Plain(spark, folder, kind, setting, feeder, say)
            try:
                yield plain
            finally:
                plain.stop()
