"""Topics of Kafka, read through Spark's own connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from towpath.arrow import arrow_schema
from towpath.config.kafka import revealed
from towpath.errors import RuntimeFailure
from towpath.schema import Type, internal
from towpath.spark.types import ddl
from towpath.streams.definition import StreamDef, decimals
from towpath.streams.fields import as_pairs
from towpath.streams.messages import KEY, OFFSET, PARTITION, VALUE, MessageReader
from towpath.streams.sources import KafkaSource

SCALA = "2.13"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{pyspark.__version__}"
_JARS = {"spark.jars", "spark.jars.packages"}

# Messages of a transaction that was given up never were.
DEFAULTS = {"kafka.isolation.level": "read_committed"}


def jar_settings(jars: Sequence[str], given: Mapping[str, str], *, kafka: bool) -> dict[str, str]:
    """How Spark inside this process comes to the jars it needs: they are named, or Spark fetches the connector."""
    if jars:
        return {"spark.jars": ",".join(jars)}
    return {"spark.jars.packages": CONNECTOR} if kafka and not given.keys() & _JARS else {}


def with_connector(spark: SparkSession, node: str) -> SparkSession:
    """The session, if it can read topics; no broker is asked for that."""
    reader = spark.readStream.format("kafka").option("subscribe", "any")
    try:
        _ = reader.option("kafka.bootstrap.servers", "any:9092").load().schema
    except AnalysisException as error:
        raise RuntimeFailure(
            f"node {node}: its Spark has no connector for Kafka ({CONNECTOR})\n"
            f"    -> an endpoint is started with it: towpath node start NAME --packages {CONNECTOR}, or --jars FILE;\n"
            "       Spark inside this process gets it when it starts, so start the job in a process of its own"
        ) from error
    return spark


def read_topic(
    spark: SparkSession, streams: Sequence[StreamDef], source: KafkaSource, since_us: int, rejected: Path
) -> DataFrame:
    """The messages of a topic as rows under internal names, with `_key`. All that is there comes at once.

    A limit per trigger would take partitions in at different speeds, and what comes of a slow one would be late.
    """
    reader = spark.readStream.format("kafka").option("subscribe", source.topic)
    for name, value in (_start(source, since_us) | DEFAULTS | revealed(source.options)).items():
        reader = reader.option(name, value)
    messages = reader.option("kafka.bootstrap.servers", source.servers).load()
    first, columns = streams[0].stream, {c.name: c.type for c in streams[0].stream.columns}
    taken = messages.select(F.col("key").cast("string").alias(KEY), PARTITION, OFFSET, VALUE)
    if source.key is not None:
        # Others are of no stream, whatever is in them.
        taken = taken.where(F.col(KEY).isin([s.source.key for s in streams if isinstance(s.source, KafkaSource)]))
    rows = MessageReader(
        source.topic,
        [s.stream.name for s in streams],
        arrow_schema(columns).serialize().to_pybytes(),
        first.time,
        [internal(name) for name in columns],
        str(rejected),
        source.time_format,
        as_pairs(source.fields),
        decimals(first.columns),
    )
    types = {KEY: Type.STRING, **{internal(name): type_ for name, type_ in columns.items()}}
    return taken.mapInArrow(rows, ddl(types))


def _start(source: KafkaSource, since_us: int) -> dict[str, str]:
    """Where a carrier begins: at the same message as all others of the job, whenever it is started."""
    if source.start == "earliest":
        return {"startingOffsets": "earliest"}
    return {"startingTimestamp": str(since_us // 1000), "startingOffsetsByTimestampStrategy": "latest"}
