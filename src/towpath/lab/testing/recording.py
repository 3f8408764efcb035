"""Random recorded streams: few schemas, few keys, disorder up to the allowed delay, cut into chunks as they arrive.

Odd cases are common here: rows exactly at the bound of lateness, streams that are silent for a while, text formats,
several files at once, NULL, NaN, infinities, negative zero, the smallest and the largest integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from random import Random

import numpy as np
import pyarrow as pa

from towpath.arrow import ARROW
from towpath.lab.testing.files import FORMATS
from towpath.schema import Column, Stream, Type, reference_table

SECOND = 1_000_000
# 2026-01-01, and the epoch's first minute; before the epoch, where its watermark starts, Spark takes all for late.
STARTS = (1_767_225_600 * SECOND, 20 * SECOND)
# Coarse clocks make equal times and tuples on the edge of a window common.
CLOCKS = (1_000, 250_000, 500_000, SECOND)
KEYS = 6
# Each in one row of a hundred.
ODD = (np.nan, np.inf, -np.inf, -0.0)
EXTREMES = {
    Type.INT: (np.iinfo("int32").min, np.iinfo("int32").max),
    Type.BIGINT: (np.iinfo("int64").min, np.iinfo("int64").max),
}
WORDS = ("red", "green", "Blue", "redder", "a_b", "it's", " pad ", "ö", "")
FIRST_DAY = (date(2026, 1, 1) - date(1970, 1, 1)).days
MAYBE_COLUMNS = (
    Column("n", Type.BIGINT),
    Column("car.lane", Type.INT),  # names with dots are fields of structs, where a file can have some
    Column("x", Type.DOUBLE),
    Column("y", Type.DOUBLE),
    Column("car.tag", Type.STRING),
    Column("word", Type.STRING),
    Column("flag", Type.BOOLEAN),
    Column("day", Type.DATE),
    Column("car.seen.at", Type.TIMESTAMP),
)


@dataclass(frozen=True)
class Recording:
    """Streams and what arrived on each of them in each phase."""

    catalog: dict[str, Stream]
    chunks: tuple[dict[str, pa.Table], ...]  # per phase: the new tuples of every stream, in the order of their arrival
    formats: dict[str, str] = field(default_factory=dict)  # of the files of a stream; Parquet where nothing is said
    files: int = 1  # into which a chunk is split
    idle_after_ms: int = 0  # how long each stream may keep others waiting; 0: for ever
    tables: dict[str, pa.Table] = field(default_factory=dict)  # reference tables, which stay as they are

    @property
    def known(self) -> dict[str, Stream]:
        """All that a query can name."""
        types = {arrow: type_ for type_, arrow in ARROW.items()}
        return self.catalog | {
            name: reference_table(name, tuple(Column(f.name, types[f.type]) for f in rows.schema))
            for name, rows in self.tables.items()
        }

    def complete(self, stream: str) -> pa.Table:
        return pa.concat_tables([chunk[stream] for chunk in self.chunks])

    def times(self, phase: int, stream: str) -> list[int]:
        """The event times of a chunk, in microseconds."""
        found: list[int] = self.chunks[phase][stream][self.catalog[stream].time].cast(pa.int64()).to_pylist()
        return found

    def pieces(self, phase: int, stream: str) -> Iterator[tuple[str, pa.Table]]:
        """The files of a phase, with their names; they arrive in this order. A silent stream has none."""
        chunk, format_ = self.chunks[phase][stream], self.formats.get(stream, "parquet")
        size = -(-chunk.num_rows // self.files) or 1
        for number in range(self.files if chunk.num_rows else 0):
            yield f"{phase:03}-{number}.{format_}", chunk.slice(number * size, size)


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
        if rng.randint(0, 3) == 3:
            phases = _silent(phases, rng.randint(0, len(cuts) - 1), 1 + (seed + number) % len(cuts))
        times = table[stream.time].cast(pa.int64()).to_numpy().copy()
        for phase in range(1, len(chunks)):
            if rng.randint(0, 1):
                _touch_the_bound(times, phases == phase, stream.delay_us)
        position = table.schema.get_field_index(stream.time)
        table = table.set_column(position, stream.time, pa.array(times, ARROW[Type.TIMESTAMP]))
        for phase, chunk in enumerate(chunks):
            chunk[stream.name] = table.filter(pa.array(phases == phase))
    # The plainest choice comes first: failures shrink towards it.
    formats = {name: FORMATS[max(rng.randint(-2, len(FORMATS) - 1), 0)] for name in catalog}
    return Recording(catalog, tuple(chunks), formats, files=max(rng.randint(-1, 3), 1))


def with_tables(rng: Random, recording: Recording) -> Recording:
    """The same with two reference tables: keys that come twice, not at all, or are NULL, and sometimes no row."""
    tables = {f"t{number}": _random_table(rng) for number in (1, 2)}
    return replace(recording, tables=tables)


def _random_table(rng: Random) -> pa.Table:
    others = rng.sample(MAYBE_COLUMNS, rng.randint(1, 3))
    columns = (Column("k", rng.choice((Type.BIGINT, Type.INT))), *others)
    rows, draws = rng.choice((0, 3, 10, 10, 10)), np.random.default_rng(rng.randint(0, 999))
    times = STARTS[0] + np.arange(rows) * SECOND
    return pa.table({column.name: _random_values(column, times, draws) for column in columns})


def _silent(phases: np.ndarray, first: int, then: int) -> np.ndarray:
    """From a phase on nothing comes; what was to come meanwhile comes with phase `then`, at the earliest the next."""
    then = max(then, first + 1)
    return np.where((phases >= first) & (phases < then), then, phases)


def _touch_the_bound(times: np.ndarray, chunk: np.ndarray, delay_us: int) -> None:
    """The first tuple of a chunk is as old as it may be, seen from all that came in chunks before."""
    first = int(chunk.argmax())
    if chunk.any() and first:
        times[first] = times[:first].max() - delay_us


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
            values: np.ndarray = pick < 0.5
        case Type.INT | Type.BIGINT:
            values = np.floor(pick * KEYS if column.name == "k" else pick * 40 - 10).astype("int64")
            if column.name != "k":
                values = _with_odd(values, EXTREMES[column.type], draws[:, 2])
        case Type.DOUBLE:
            values = _with_odd(np.floor(pick * 8000 - 2000) / 40, ODD, draws[:, 2])
        case Type.STRING:
            values = np.array(WORDS, dtype=object)[np.floor(pick * len(WORDS)).astype("int64")]
        case Type.TIMESTAMP:
            values = times + np.floor(pick * 20 - 10).astype("int64") * SECOND
        case Type.DATE:
            values = np.floor(pick * 5).astype("int32") + FIRST_DAY
    return pa.array(values, ARROW[column.type], mask=null)


def _with_odd(values: np.ndarray, odd: Sequence[float], draws: np.ndarray) -> np.ndarray:
    """The values, except for few rows."""
    which = np.floor(draws * 100)
    return np.select(
        [which == n for n in range(len(odd))], [np.full(len(values), v, values.dtype) for v in odd], values
    )
