"""Sources of a carrier as streaming DataFrames.

A class with a single stream of files, or with streams that share a folder and differ in the value of a column, is read
by Spark's own reader: a lone query pays for nothing. So is a topic of Kafka; streams of different topics are never of
one class. Derived streams come through links. Everything else (several streams that must be aligned, generators) comes
through a feed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from towpath.arrow import arrow_schema
from towpath.plan.assignment import input_column
from towpath.schema import BEFORE_1970_US, MS, STREAM, Stream, Type, internal
from towpath.spark.cuts import FORMAT as CUT
from towpath.spark.feeds import FEED
from towpath.spark.kafka import read_topic
from towpath.spark.links import LINKS
from towpath.spark.types import NO_CORRUPT, ddl
from towpath.store import durable
from towpath.streams.definition import StreamDef, described, is_native
from towpath.streams.messages import KEY
from towpath.streams.portions import MOST_ROWS
from towpath.streams.sources import FilesSource, KafkaSource

# So that catching up comes in portions, of Parquet files. Spark takes one bound only, so it gets the smaller one.
MOST_BYTES = 256 << 20
MOST_FILES = 1000
TICKS_KEPT = 100
MOST_LINKS = 10_000
EVER = "36500d"  # Spark passes over files that are older than those it has seen by so much
EXACTLY_MS = 1  # what a join of Spark would drop too early
DIGITS = 13  # of the number of a stream: so many hexadecimal ones fit into a double


@dataclass(frozen=True)
class InputPlace:
    """Where a carrier's input keeps its files: ticks, the index of a feed, the sign that it is to be drained."""

    folder: Path
    index: Path  # of a feed's files
    drain: Path
    rejected: Path  # what is not taken in
    offsets: Path  # of the carrier's checkpoint
    anchor_us: int  # wall-clock time at which generators start
    parallelism: int
    let_in: Callable[[Sequence[StreamDef]], str]  # where Spark's own reader finds the good files of a folder
    away: Mapping[str, float]  # by node, the seconds that what comes from there is to take

    @property
    def ticks(self) -> Path:
        """A folder of one-line files, each an event time in microseconds that the input has reached without data."""
        return self.folder / "ticks"

    def tick(self, event_us: int) -> None:
        """Files, because Spark reads them without a Python process of their own.

        Old ones go: only the newest counts, and a micro-batch that is repeated after a crash has read one of the last.
        """
        there = sorted(self.ticks.glob("*.csv"))
        number = int(there[-1].stem) + 1 if there else 0  # never a name that Spark has seen
        with durable.writing(self.ticks / f"{number:09}.csv") as scratch:  # a checkpoint may count on it
            scratch.write_text(f"{event_us}\n")
        for old in there[:-TICKS_KEPT]:
            old.unlink(missing_ok=True)


def open_input(
    spark: SparkSession,
    alias: str,
    streams: Sequence[StreamDef],
    columns: Sequence[str],
    place: InputPlace,
    *,
    cut: DataFrame | None,
    joined: bool,
) -> DataFrame:
    """The tuples of one source: `<alias>_<column>`, `<alias>__stream`, `<alias>__us`, `_event` with the watermark.

    For an operator with state, which has a `cut` for all its inputs, those that are late are counted and left out here,
    so that Spark finds none: it would count groups instead of tuples, and a join of Spark leaves out what is exactly at
    the watermark, too.
    """
    place.ticks.mkdir(parents=True, exist_ok=True)
    rows = _columns(_raw(spark, streams, place), streams[0].stream, alias, columns)
    if cut is not None:
        rows = rows.unionByName(_ticks(spark, place), allowMissingColumns=True)
    delay_ms = -(-max(s.stream.delay_us for s in streams) // MS) + (EXACTLY_MS if joined else 0)
    marked = rows.withWatermark("_event", f"{delay_ms} milliseconds")
    if cut is None:
        return _observed(marked, alias).withColumn(f"{alias}__us", _us())
    cut_ms = F.when(cut.watermark_ms > 0, cut.watermark_ms + (EXACTLY_MS if joined else 0))
    cut_us = read_once(cut, cut_ms) * MS
    is_late = F.coalesce(F.unix_micros("_event") < cut_us, F.lit(False))
    judged = _without_ticks(marked, alias).withColumn("_late", is_late)
    names = F.when(F.col("_late"), _number(F.col(f"{alias}__stream")))
    # A histogram with a bar for every stream is exact.
    late = F.to_json(F.histogram_numeric(names, F.lit(max(2, len(streams))))).alias("late")
    return _observed(judged, alias, late).where(~F.col("_late")).drop("_late").withColumn(f"{alias}__us", _us())


def open_cut(spark: SparkSession, offsets: Path) -> DataFrame:
    """One for a carrier: what all its inputs ask for, Spark reads once in a micro-batch."""
    return spark.read.format(CUT).option("path", str(offsets)).load()


def read_once(table: DataFrame, value: Column) -> Column:
    """What a table of one row says, asked for once in a micro-batch.

    In an array, because Spark writes a number into the code that it generates: that would be new code in every
    micro-batch, compiled again and never run often enough to be fast.
    """
    return table.select(F.array(value)).scalar().getItem(0)


def number_of(stream: str) -> int:
    """As `_number` has it: what stands for a stream in counts of late rows."""
    return int(hashlib.md5(stream.encode(), usedforsecurity=False).hexdigest()[:DIGITS], 16)


def _number(stream: Column) -> Column:
    return F.conv(F.substring(F.md5(stream), 1, DIGITS), 16, 10).cast("double")


def _us() -> Column:
    return F.unix_micros("_event") - F.lit(BEFORE_1970_US)


def open_links(
    spark: SparkSession, alias: str, stream: Stream, columns: Sequence[str], folder: Path, place: InputPlace
) -> DataFrame:
    """As `open_input`, for the derived streams that have a link in `folder`; `stream` is what they have in common."""
    types = {c.name: c.type for c in stream.columns}
    spec = {
        "folder": str(folder),
        "index": str(place.index),
        "schema": arrow_schema(types).serialize().to_pybytes().hex(),
        "time": stream.time,
        "most_rows": MOST_ROWS,
        "away": dict(place.away),
    }
    raw = (
        spark.readStream.format(LINKS)
        .option("spec", json.dumps(spec))
        .option("schema", ddl({STREAM: Type.STRING, **types}))
        .option("parallelism", place.parallelism)
        .load()
    )
    marked = _columns(raw, stream, alias, columns).withWatermark("_event", "0 milliseconds")
    # Ticks count as seen: what a link has released is complete, whether or not there were tuples in it.
    read = _by_link(alias, stream, columns)
    return _without_ticks(_observed(marked, alias, *read), alias).withColumn(f"{alias}__us", _us())


def _by_link(alias: str, stream: Stream, columns: Sequence[str]) -> list[Column]:
    """Rows by derived stream, exact as long as there are no more than MOST_LINKS, and the bytes of all together."""
    name = F.col(f"{alias}__stream")
    texts = [input_column(alias, c.name) for c in stream.columns if c.name in columns and c.type is Type.STRING]
    fixed = sum(c.type.width for c in stream.columns if c.type is not Type.STRING)
    size = F.lit(fixed)
    for column in texts:
        size = size + F.coalesce(F.octet_length(column), F.lit(0))
    by_link = F.to_json(F.call_function("approx_top_k", name, F.lit(MOST_LINKS), F.lit(MOST_LINKS)))
    return [by_link.alias("links"), F.sum(F.when(name.isNotNull(), size)).alias("bytes")]


def _columns(raw: DataFrame, stream: Stream, alias: str, columns: Sequence[str]) -> DataFrame:
    time = F.col(internal(stream.time))
    return raw.where(time.isNotNull()).select(
        _event(F.unix_micros(time.cast("timestamp"))),
        F.col(STREAM).alias(f"{alias}__stream"),
        *(F.col(internal(c)).alias(input_column(alias, c)) for c in columns),
    )


def _event(us: Column) -> Column:
    return F.timestamp_micros(us + F.lit(BEFORE_1970_US)).alias("_event")


def _without_ticks(rows: DataFrame, alias: str) -> DataFrame:
    # The comparison with the event time keeps Spark from moving this filter below the watermark, where ticks would be
    # lost.
    never = F.col("_event") < F.timestamp_micros(F.lit(-(2**62)))
    return rows.where(F.col(f"{alias}__stream").isNotNull() | never)


def _observed(rows: DataFrame, alias: str, *more: Column) -> DataFrame:
    newest = F.max(_us()).alias("newest")
    return rows.observe(f"input_{alias}", F.count(F.col(f"{alias}__stream")).alias("rows"), newest, *more)


def _raw(spark: SparkSession, streams: Sequence[StreamDef], place: InputPlace) -> DataFrame:
    """The rows of some streams: `_stream`, and the columns under their internal names."""
    if isinstance(streams[0].source, KafkaSource):
        return _topic(spark, streams, place)
    return (
        _native(spark, streams, place)
        if not streams[0].aligned and is_native(streams)
        else _feed(spark, streams, place)
    )


def _native(spark: SparkSession, streams: Sequence[StreamDef], place: InputPlace) -> DataFrame:
    first = streams[0].source
    assert isinstance(first, FilesSource)
    columns = {c.name: c.type for c in streams[0].stream.columns}
    reader = spark.readStream.format(first.format).schema(ddl(columns))
    reader = reader.option("maxFileAge", EVER).option(*NO_CORRUPT)
    path = place.let_in(streams)
    rows = reader.option("maxBytesPerTrigger", _most_bytes(path)).load(path).toDF(*map(internal, columns))
    if first.part is None:
        return rows.withColumn(STREAM, F.lit(streams[0].stream.name))
    column = first.part[0]
    parts = [(s.source.part[1], s.stream.name) for s in streams if isinstance(s.source, FilesSource) and s.source.part]
    return _by_stream(spark, rows, parts, internal(column), columns[column])


def _most_bytes(folder: str) -> int:
    """By the files that are there: a backlog of small ones is bounded by their number."""
    try:
        with os.scandir(folder) as entries:
            sizes = [entry.stat().st_size for entry in entries if not entry.name.startswith(".") and entry.is_file()]
    except OSError:
        sizes = []  # elsewhere than on a disk
    return max(1, min(MOST_BYTES, MOST_FILES * sum(sizes) // len(sizes))) if sizes else MOST_BYTES


def _topic(spark: SparkSession, streams: Sequence[StreamDef], place: InputPlace) -> DataFrame:
    first = streams[0].source
    assert isinstance(first, KafkaSource)
    columns = {c.name: c.type for c in streams[0].stream.columns}
    rows = read_topic(spark, streams, first, place.anchor_us, place.rejected)
    named = [(s.source, s.stream.name) for s in streams if isinstance(s.source, KafkaSource)]
    if first.part is not None:
        parts = [(source.part[1], name) for source, name in named if source.part]
        return _by_stream(spark, rows, parts, internal(first.part[0]), columns[first.part[0]])
    if first.key is not None:
        keys = [(source.key, name) for source, name in named if source.key is not None]
        return _by_stream(spark, rows, keys, KEY, Type.STRING)
    return rows.withColumn(STREAM, F.explode(F.array(*(F.lit(name) for _, name in named))))


def _by_stream(
    spark: SparkSession, rows: DataFrame, parts: Sequence[tuple[str, str]], column: str, type_: Type
) -> DataFrame:
    """Rows with the stream they belong to; `parts` has the value of the column and the name of each."""
    if len(parts) == 1:
        value = F.lit(parts[0][0]).cast(type_.value)
        return rows.where(F.col(column) == value).withColumn(STREAM, F.lit(parts[0][1]))
    marks = ", ".join(["(?, ?)"] * len(parts))
    table = spark.sql(f"SELECT * FROM VALUES {marks} AS t(_value, {STREAM})", [text for part in parts for text in part])
    typed = table.select(F.col("_value").cast(type_.value), STREAM)
    return rows.join(F.broadcast(typed), F.col(column) == F.col("_value"), "inner").drop("_value")


def _feed(spark: SparkSession, streams: Sequence[StreamDef], place: InputPlace) -> DataFrame:
    first = streams[0].stream
    columns = {c.name: c.type for c in first.columns}
    spec = {
        "time": first.time,
        "most_rows": MOST_ROWS,
        "schema": arrow_schema(columns).serialize().to_pybytes().hex(),
        "anchor_us": place.anchor_us,
        "index": str(place.index),
        "drain": str(place.drain),
        "rejected": str(place.rejected),
        "streams": [described(s) for s in streams],
        "away": max(place.away.get(s.node or "", 0.0) for s in streams),
    }
    return (
        spark.readStream.format(FEED)
        .option("spec", json.dumps(spec))
        .option("schema", ddl({STREAM: Type.STRING, **{internal(name): type_ for name, type_ in columns.items()}}))
        .option("parallelism", place.parallelism)
        .load()
    )


def _ticks(spark: SparkSession, place: InputPlace) -> DataFrame:
    reader = spark.readStream.format("csv").schema("us bigint").option("ignoreMissingFiles", True)
    return reader.load(str(place.ticks)).select(_event(F.col("us")))
