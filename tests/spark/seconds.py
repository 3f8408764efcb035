"""A stream that arrives a second of event time at a time, and whether queries over it are answered as DuckDB does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from towpath.api.running import Towpath
from towpath.lang import parse
from towpath.schema import Column, Stream, Type
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource
from towpath.verify import answer, differences

SECOND = 1_000_000


def stream(folder: Path) -> StreamDef:
    """`s`, in a folder of its own."""
    (folder / "s").mkdir()
    columns = (Column("k", Type.BIGINT), Column("v", Type.BIGINT), Column("at", Type.TIMESTAMP))
    source = FilesSource(type="files", path=str(folder / "s"), format="parquet")
    return StreamDef(Stream("s", columns, "at"), source, idle_after_ms=0)


def arrive(folder: Path, second: int, rows: int) -> pa.Table:
    at = pa.array([second * SECOND + n * SECOND // rows for n in range(rows)], pa.timestamp("us", tz="UTC"))
    table = pa.table({"k": [n % 7 for n in range(rows)], "v": [n * 37 % 1000 for n in range(rows)], "at": at})
    scratch = folder / "s" / ".next"
    pq.write_table(table, scratch)
    scratch.rename(folder / "s" / f"{second:04}.parquet")
    return table


def wrong(running: Towpath, queries: Mapping[str, str], fed: pa.Table) -> list[str]:
    """The queries that have no answer, or another one than DuckDB's."""
    found = []
    with duckdb.connect() as database:
        database.execute("CREATE TABLE s AS SELECT * FROM fed")
        for name, sql in queries.items():
            query = parse(sql, running.job.catalog, name)
            expected = answer(database, query, running.job.catalog, running.engine.answers.validity(name))
            if not expected.num_rows or differences(expected, running.results(name)) is not None:
                found.append(name)
    return found
