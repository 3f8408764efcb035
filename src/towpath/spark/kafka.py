"""Topics of Kafka, read through Spark's own connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from towpath.errors import RuntimeFailure
from towpath.kafka import revealed
from towpath.schema import Type, internal
from towpath.spark.types import NO_CORRUPT, ddl
from towpath.streams.sources import KafkaSource

SCALA = "2.13"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{pyspark.__version__}"
KEY = "_key"
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


def read_topic(spark: SparkSession, source: KafkaSource, columns: Mapping[str, Type], since_us: int) -> DataFrame:
    """The messages of a topic as rows under internal names, with `_key`. All that is there comes at once.

    A limit per trigger would take partitions in at different speeds, and what comes of a slow one would be late.
    """
    reader = spark.readStream.format("kafka").option("subscribe", source.topic)
    for name, value in (_start(source, since_us) | DEFAULTS | revealed(source.options)).items():
        reader = reader.option(name, value)
    messages = reader.option("kafka.bootstrap.servers", source.servers).load()
    # What is not JSON, or not of the column's type, is NULL.
    row = F.from_json(F.col("value").cast("string"), ddl(columns), dict([NO_CORRUPT])).alias("row")
    fields = (F.col("row").getField(name).alias(internal(name)) for name in columns)
    return messages.select(F.col("key").cast("string").alias(KEY), row).select(KEY, *fields)


def _start(source: KafkaSource, since_us: int) -> dict[str, str]:
    """Where a carrier begins: at the same message as all others of the job, whenever it is started."""
    if source.start == "earliest":
        return {"startingOffsets": "earliest"}
    return {"startingTimestamp": str(since_us // 1000), "startingOffsetsByTimestampStrategy": "latest"}
