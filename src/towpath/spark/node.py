"""Spark sessions of nodes. The embedded node runs inside this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from towpath.errors import RuntimeFailure
from towpath.spark import class_archive
from towpath.spark.assignment_source import AssignmentSource, VersionSource
from towpath.spark.cuts import CutSource
from towpath.spark.feeds import FeedSource
from towpath.spark.links import LinkSource
from towpath.spark.modes import own_spark
from towpath.spark.table_source import TableSource

# The default manager forks `chmod` for every checkpoint file when Hadoop's native library is missing: 30 ms a commit
# instead of 8.
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_UNSOUND_RULES = (
    # Takes lower(upper(s)) for lower(s), which is another text for letters that grow: ß, SS, ss.
    "SimplifyCaseConversionExpressions",
    # Takes a + (b + 1) for (a + b) + 1, which overflows elsewhere: NULL where a number was asked for.
    "ReorderAssociativeOperator",
)

# For runs of minutes: they are over before the second compiler gains what it takes, and several cold JVMs would keep
# two cores busy with compiling. The first compiler alone has a code cache of 48 MB, full after a minute.
QUICK_JAVA = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"}

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # One row of one query must never stop a carrier: what can not be calculated is NULL.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.optimizer.excludedRules": ",".join(f"{_OPTIMIZER}.{rule}" for rule in _UNSOUND_RULES),
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A batch directory counts only once _SUCCESS is there, so files may go to their place at once.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.parquet.enable.summary-metadata": "false",
    # Local files need no checksum files beside them.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.scheduler.mode": "FAIR",
    # For every column of a plan PySpark would note which line of ours made it: most of the calls that a carrier's start
    # takes (docs/design/demo.md).
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Starting many carriers at once keeps a small machine busy; a Python worker may need more than 15 s to answer.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.sql.adaptive.enabled": "false",
    # Generated code has its plan in a comment, and comments go by a regular expression that recurs for each character:
    # a long one took more stack than there is.
    "spark.sql.debug.maxToStringFields": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

# A task holds its slot while it waits for a Python worker or for a file to be committed. With one slot per core the
# carriers' first micro-batches starve each other: 45 s instead of 16 s for the last of seven (docs/design/demo.md).
TASKS_PER_CORE = 2

# Planning is ten thousands of methods that run a few times in each micro-batch. By default each is compiled for speed
# once it has run 5,000 times: for minutes that takes half of the JVM's time. Loops still are, as early as ever.
JUST_IN_TIME = " ".join(
    f"-XX:Tier4{kind}Threshold={times}"
    for kind, times in {"Invocation": 100_000, "MinInvocation": 20_000, "Compile": 150_000}.items()
)

LOG4J = """\
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


@dataclass(frozen=True)
class NodeSettings:
    cores: int = 2
    memory: str = "4g"
    spark: Mapping[str, str] = field(default_factory=dict)


def open_session(settings: NodeSettings, log_folder: Path) -> SparkSession:
    """A session of its own on this process's Spark, which is started if need be (memory and cores count only then)."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", "120")
    builder = SparkSession.builder.master(f"local[{settings.cores * TASKS_PER_CORE}]").appName("towpath")
    everything = server_settings(log_folder, settings.spark) | session_settings(settings.cores, settings.spark)
    everything["spark.driver.memory"] = settings.memory
    for key, value in everything.items():
        builder = builder.config(key, value)
    try:
        with own_spark():
            session = builder.getOrCreate().newSession()
    except PySparkException as error:
        wanted = settings.spark.get("spark.jars.packages")
        hint = f"\n    -> if it could not fetch {wanted}, name jar files under `jars` of the node" if wanted else ""
        raise RuntimeFailure(f"Spark did not start: {error}{hint}") from error
    for key, value in session_settings(settings.cores, settings.spark).items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def server_settings(log_folder: Path, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a JVM has to be started with."""
    log_folder.mkdir(parents=True, exist_ok=True)
    config = log_folder / "log4j2.properties"
    config.write_text(LOG4J.format(level="warn", path=log_folder / "spark.log"))
    # Deep plans are compiled and printed recursively; the JVM's default stack is too small for that. Wide plans become
    # methods of more than 8,000 bytes, which the JVM would interpret for ever (docs/design/any_shape.md).
    java = f"-Dlog4j2.configurationFile={config.as_uri()} -Xss8m -XX:-DontCompileHugeMethods {JUST_IN_TIME}"
    settings = DEFAULTS | dict(given or {})
    given_java = settings.get("spark.driver.extraJavaOptions", "")
    archive = "" if "Archive" in given_java else class_archive.reading()
    settings["spark.driver.extraJavaOptions"] = " ".join(filter(None, (java, archive, given_java)))
    return settings


def session_settings(cores: int, given: Mapping[str, str]) -> dict[str, str]:
    """What a session can be given later."""
    settings = DEFAULTS | {"spark.sql.shuffle.partitions": str(cores)} | dict(given)
    return {key: value for key, value in settings.items() if key.startswith("spark.sql.")}


def register_sources(session: SparkSession) -> None:
    for source in (AssignmentSource, VersionSource, CutSource, FeedSource, LinkSource, TableSource):
        session.dataSource.register(source)
