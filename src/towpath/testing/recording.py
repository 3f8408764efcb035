"""Random recorded streams: few schemas, few keys, disorder within the allowed delay, cut into chunks as they arrive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from random import Random

import numpy as np
import pyarrow as pa

from towpath.arrow import ARROW
from towpath.schema import Column, Stream, Type

SECOND = 1_000_000
# 2026-01-01, and the epoch's first minute; before the epoch, where its watermark starts, Spark takes all for late.
STARTS = (1_767_225_600 * SECOND, 20 * SECOND)
# Coarse clocks make equal times and tuples on the edge of a window common.
CLOCKS = (1_000, 250_000, 500_000, SECOND)
KEYS = 6
WORDS = ("red", "green", "Blue", "redder", "a_b", "it's", " pad ", "ö", "")
FIRST_DAY = (date(2026, 1, 1) - date(1970, 1, 1)).days
MAYBE_COLUMNS = (
    Column("n", Type.BIGINT),
    Column("lane", Type.INT),
    Column("x", Type.DOUBLE),
    Column("y", Type.DOUBLE),
    Column("tag", Type.STRING),
    Column("word", Type.STRING),
    Column("flag", Type.BOOLEAN),
    Column("day", Type.DATE),
    Column("seen", Type.TIMESTAMP),
)


@dataclass(frozen=True)
class Recording:
    """Streams and what arrived on each of them in each phase."""

    catalog: dict[str, Stream]
    chunks: tuple[dict[str, pa.Table], ...]  # per phase: the new tuples of every stream, in the order of their arrival

    def complete(self, stream: str) -> pa.Table:
        return pa.concat_tables([chunk[stream] for chunk in self.chunks])


def random_recording(rng: Random) -> Recording:
    """1 to 4 streams over 20 to 60 s of event time, in 2 to 5 chunks.

    The values come from a seed that `rng` draws: fewer rows are a prefix of more rows.
    """
    schemas = [_random_schema(rng, number) for number in range(rng.randint(1, 3))]
    catalog = {}
    for number in range(rng.randint(1, 4)):
        columns, time = rng.choice(schemas)
        name = f"s{number + 1}"
        catalog[name] = Stream(name, columns, time, delay_us=rng.choice((0, 1, 2, 5)) * SECOND)
    start = STARTS[rng.choice((0, 0, 0, 0, 1))]
    length = rng.randint(20, 60) * SECOND
    cuts = sorted(rng.randint(1, length) for _ in range(rng.randint(1, 4)))
    seed, clock = rng.randint(0, 999), rng.choice(CLOCKS)
    chunks: list[dict[str, pa.Table]] = [{} for _ in range(len(cuts) + 1)]
    for number, stream in enumerate(catalog.values()):
        table, arrival = _random_rows(stream, rng.randint(20, 300), start, length, clock, seed + number)
        phases = np.searchsorted(cuts, arrival - start, side="right")
        for phase, chunk in enumerate(chunks):
            chunk[stream.name] = table.filter(pa.array(phases == phase))
    return Recording(catalog, tuple(chunks))


def _random_schema(rng: Random, number: int) -> tuple[tuple[Column, ...], str]:
    """The columns and the time column; every schema has an integral key, so that any two streams can be joined."""
    time = ("at", "ts", "event_time")[number]
    key = Column("k", rng.choice((Type.BIGINT, Type.INT)))
    others = rng.sample(MAYBE_COLUMNS, rng.randint(3, len(MAYBE_COLUMNS)))
    return (key, *sorted(others, key=MAYBE_COLUMNS.index), Column(time, Type.TIMESTAMP)), time


def _random_rows(
    stream: Stream, rows: int, start: int, length: int, clock: int, seed: int
) -> tuple[pa.Table, np.ndarray]:
    """The tuples in the order of their arrival, and when each arrives."""
    times = start + np.random.default_rng([seed, 0]).integers(0, length // clock, rows) * clock
    arrival = times + np.random.default_rng([seed, 1]).integers(0, stream.delay_us + 1, rows)
    arrays = {}
    for position, column in enumerate(stream.columns):
        if column.name == stream.time:
            values = pa.array(times, ARROW[Type.TIMESTAMP])
        else:
            values = _random_values(column, times, np.random.default_rng([seed, 2 + position]))
        arrays[column.name] = values
    order = np.argsort(arrival, kind="stable")
    return pa.table(arrays).take(pa.array(order)), arrival[order]


def _random_values(column: Column, times: np.ndarray, rng: np.random.Generator) -> pa.Array:
    rows = len(times)
    # One draw per row and purpose keeps the values of a row the same when rows are added after it.
    draws = rng.random((rows, 3))
    null = draws[:, 0] < (0.03 if column.name == "k" else 0.1)
    pick = draws[:, 1]
    match column.type:
        case Type.BOOLEAN:
            values = pick < 0.5
        case Type.INT | Type.BIGINT:
            values = np.floor(pick * KEYS if column.name == "k" else pick * 40 - 10).astype("int64")
        case Type.DOUBLE:
            values = np.where(draws[:, 2] < 0.01, np.nan, np.floor(pick * 8000 - 2000) / 40)
        case Type.STRING:
            values = np.array(WORDS, dtype=object)[np.floor(pick * len(WORDS)).astype("int64")]
        case Type.TIMESTAMP:
            values = times + np.floor(pick * 20 - 10).astype("int64") * SECOND
        case Type.DATE:
            values = np.floor(pick * 5).astype("int32") + FIRST_DAY
    return pa.array(values, ARROW[column.type], mask=null)
