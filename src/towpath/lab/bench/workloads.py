"""The three workloads: the data, the standing queries as SQL, and the same queries written by hand for Spark.

All kinds read one folder of Parquet files. `alerts` and `windows` see it as the stream trades, `joins` as 96 streams
distinguished by a column, as devices in one topic are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from towpath.lab.bench import KIND_NAMES
from towpath.schema import Column as StreamColumn
from towpath.schema import Stream, Type
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource

CHANNELS, STREAMS, KEYS = 100, 96, 2000
MOST = 1000.0  # values and thresholds lie between 0 and this
DELAY_US = 1_000_000
DDL = "channel int, price double, stream int, k int, a double, at timestamp"
SCHEMA = pa.schema(
    [
        ("channel", pa.int32()),
        ("price", pa.float64()),
        ("stream", pa.int32()),
        ("k", pa.int32()),
        ("a", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)


def rows(seed: int, start_us: int, length_us: int, count: int) -> pa.Table:
    """The same values for the same seed, spread evenly over a span of event time."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.integers(0, CHANNELS, count, dtype=np.int32),
        rng.uniform(0, MOST, count),
        rng.integers(0, STREAMS, count, dtype=np.int32),
        rng.integers(0, KEYS, count, dtype=np.int32),
        rng.uniform(0, MOST, count),
        start_us + np.arange(count, dtype=np.int64) * length_us // count,
    ]
    arrays = [pa.array(values).cast(field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def streams(folder: Path) -> dict[str, StreamDef]:
    """The folder as towpath's streams."""
    trades = {"channel": Type.INT, "price": Type.DOUBLE, "at": Type.TIMESTAMP}
    readings = {"stream": Type.INT, "k": Type.INT, "a": Type.DOUBLE, "at": Type.TIMESTAMP}
    files = FilesSource(type="files", path=str(folder), format="parquet")
    found = {"trades": _define("trades", trades, files)}
    for n in range(STREAMS):
        one = FilesSource(type="files", path=str(folder), format="parquet", where={"stream": n})
        found[f"s{n}"] = _define(f"s{n}", readings, one)
    return found


def _define(name: str, columns: dict[str, Type], source: FilesSource) -> StreamDef:
    stream = Stream(name, tuple(StreamColumn(*item) for item in columns.items()), "at", DELAY_US)
    return StreamDef(stream, source, idle_after_ms=0)


@dataclass(frozen=True)
class WorkloadKind:
    """A kind of standing queries; the queries of a kind are numbered, and a number always means the same query."""

    sql: Callable[[int], str]
    by_hand: Callable[[DataFrame, int], DataFrame]  # from the rows of the folder


def _threshold(n: int) -> tuple[int, float]:
    return n % CHANNELS, round(Random(n).uniform(0, MOST), 3)


def _alert(n: int) -> str:
    channel, least = _threshold(n)
    return f"SELECT channel, price FROM trades WHERE channel = {channel} AND price > {least}"


def _alert_by_hand(data: DataFrame, n: int) -> DataFrame:
    return data.where(_passes(n)).select("channel", "price", "at")


def _passes(n: int) -> Column:
    channel, least = _threshold(n)
    return (F.col("channel") == channel) & (F.col("price") > least)


def _window(n: int) -> str:
    channel, least = _threshold(n)
    source = "trades [RANGE 2 SECONDS]"
    return f"SELECT avg(price) AS p, count(*) AS n FROM {source} WHERE channel = {channel} AND price > {least}"


def _window_by_hand(data: DataFrame, n: int) -> DataFrame:
    passed = data.where(_passes(n)).withWatermark("at", _DELAY)
    return passed.groupBy(F.window("at", "2 seconds")).agg(F.avg("price").alias("p"), F.count("*").alias("n"))


_DELAY = f"{DELAY_US} microseconds"


def _pair(n: int) -> tuple[int, int, int, float, float]:
    rng = Random(n)
    left, right = rng.sample(range(STREAMS), 2)
    return left, right, rng.randint(2, 5), round(rng.uniform(300, 800), 3), round(rng.uniform(300, 800), 3)


def _join(n: int) -> str:
    left, right, seconds, x, y = _pair(n)
    window = f"[RANGE {seconds} SECONDS]"
    return (
        f"SELECT a.k, a.a AS x, b.a AS y FROM s{left} {window} AS a, s{right} {window} AS b "
        f"WHERE a.k = b.k AND a.a > {x} AND b.a > {y}"
    )


def _join_by_hand(data: DataFrame, n: int) -> DataFrame:
    left, right, seconds, x, y = _pair(n)
    a, b = (
        data.where((F.col("stream") == stream) & (F.col("a") > least))
        .select(F.col("k").alias(f"k_{side}"), F.col("a").alias(side), F.col("at").alias(f"at_{side}"))
        .withWatermark(f"at_{side}", _DELAY)
        for side, stream, least in (("x", left, x), ("y", right, y))
    )
    near = f"at_y BETWEEN at_x - INTERVAL {seconds} SECONDS AND at_x + INTERVAL {seconds} SECONDS"
    return a.join(b, F.expr(f"k_x = k_y AND {near}")).select("k_x", "x", "y", "at_x", "at_y")


_FUNCTIONS = ((_alert, _alert_by_hand), (_window, _window_by_hand), (_join, _join_by_hand))
KINDS = {name: WorkloadKind(*functions) for name, functions in zip(KIND_NAMES, _FUNCTIONS, strict=True)}
