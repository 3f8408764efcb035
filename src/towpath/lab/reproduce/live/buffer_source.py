"""Two streams whose join keeps as much in its window as is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from towpath.config.nodes import NodeDef
from towpath.job import Job, QueryDef, ResultsDef
from towpath.schema import Column, Stream, Type
from towpath.store import durable
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource

EVENT_BYTES = 250  # of an event's content, as in section 7.2
MOVED, RESIDENT = 1, 2  # kinds of events: only queries for the first kind want the buffer
PAIRS = 10  # that each trickle brings, of each kind
COLUMNS = {
    "left": {"k": Type.BIGINT, "kind": Type.INT, "content": Type.STRING, "at": Type.TIMESTAMP},
    "right": {"k": Type.BIGINT, "kind": Type.INT, "z": Type.DOUBLE, "at": Type.TIMESTAMP},
}


def sql(kind: int, number: int, window_s: int) -> str:
    """Queries of different numbers are different queries with the same answer."""
    window = f"[RANGE {window_s} SECONDS]"
    return (
        f"SELECT a.k AS k, a.content AS content, b.z AS z FROM left {window} AS a, right {window} AS b "
        f"WHERE a.k = b.k AND a.kind = {kind} AND b.kind = {kind} AND b.z > {-1 - number}"
    )


def job(folder: Path, nodes: Mapping[str, NodeDef], queries: Mapping[str, QueryDef], trigger_ms: int) -> Job:
    streams = {name: _stream(folder / "data" / name, name) for name in COLUMNS}
    results = ResultsDef.model_validate({})
    return Job(folder / "store", trigger_ms, streams, dict(nodes), dict(queries), None, results)


def _stream(folder: Path, name: str) -> StreamDef:
    folder.mkdir(parents=True, exist_ok=True)
    columns = tuple(Column(*item) for item in COLUMNS[name].items())
    source = FilesSource(type="files", path=str(folder), format="parquet")
    return StreamDef(Stream(name, columns, "at"), source, idle_after_ms=0)


class BufferSource:
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "data"
        self._files = self._keys = 0
        self._rng = np.random.default_rng(0)

    def trickle(self, at_us: int) -> None:
        """A few pairs of either kind, so that there are results and event time goes on."""
        count = 2 * PAIRS
        keys = np.arange(self._keys, self._keys + count)
        kinds = np.repeat([MOVED, RESIDENT], PAIRS)
        self._keys += count
        self._write("left", keys, kinds, pa.array(self._contents(count)), at_us)
        self._write("right", keys, kinds, pa.array(np.zeros(count)), at_us)

    def fill(self, rows: int, at_us: int) -> None:
        """So many events go into the buffer, and match nothing."""
        self._write("left", -1 - np.arange(rows), np.full(rows, MOVED), pa.array(self._contents(rows)), at_us)
        self.trickle(at_us)

    def _contents(self, count: int) -> list[str]:
        """All different, and nothing a file could make smaller."""
        text = self._rng.bytes(count * EVENT_BYTES // 2).hex()
        return [text[n * EVENT_BYTES : (n + 1) * EVENT_BYTES] for n in range(count)]

    def _write(self, stream: str, keys: np.ndarray, kinds: np.ndarray, values: pa.Array, at_us: int) -> None:
        times = pa.array(np.full(len(keys), at_us), pa.timestamp("us", tz="UTC"))
        columns = [pa.array(keys), pa.array(kinds.astype(np.int32)), values, times]
        table = pa.table(dict(zip(COLUMNS[stream], columns, strict=True)))
        with durable.writing(self._folder / stream / f"{self._files:06}.parquet", lasting=False) as scratch:
            pq.write_table(table, scratch)
        self._files += 1
