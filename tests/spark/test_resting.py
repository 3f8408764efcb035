"""A carrier that nobody needs stops on real Spark, and goes on from its checkpoint when somebody does."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.api import Towpath, start
from towpath.control import resting
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lang import parse
from towpath.schema import Column, Stream, Type
from towpath.streams.definition import StreamDef
from towpath.streams.sources import FilesSource
from towpath.testing.running import ONE
from towpath.verify import answer, differences

pytestmark = [pytest.mark.spark, pytest.mark.live]

SECOND = 1_000_000
PATIENCE_S = 60
SQL = {
    "filter": "SELECT k, v FROM s WHERE v > 300",
    "window": "SELECT k, count(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k",
}


def job(folder: Path) -> Job:
    (folder / "s").mkdir()
    columns = (Column("k", Type.BIGINT), Column("v", Type.BIGINT), Column("at", Type.TIMESTAMP))
    source = FilesSource(type="files", path=str(folder / "s"), format="parquet")
    stream = StreamDef(Stream("s", columns, "at"), source, idle_after_ms=0)
    queries = {name: QueryDef.model_validate({"sql": sql}) for name, sql in SQL.items()}
    return Job(folder / "store", 50, {"s": stream}, dict(ONE), queries, None, ResultsDef.model_validate({}))


def arrive(running: Towpath, folder: Path, second: int) -> pa.Table:
    rows = range(200)
    at = pa.array([second * SECOND + n * SECOND // len(rows) for n in rows], pa.timestamp("us", tz="UTC"))
    table = pa.table({"k": [n % 7 for n in rows], "v": [n * 37 % 1000 for n in rows], "at": at})
    pq.write_table(table, folder / ".next")
    (folder / ".next").rename(folder / f"{second:04}.parquet")
    running.run(seconds=0.3)
    return table


def rests(running: Towpath) -> bool:
    controller = running.engine.controller
    return not any(controller.runs(carrier) for carrier in controller.state.carriers)


def test_queries_that_come_back_answer_for_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "AFTER_S", 0.5)
    with start(job(tmp_path)) as running:
        fed = [arrive(running, tmp_path / "s", second) for second in range(4)]
        running.engine.catch_up()
        for name in SQL:
            running.withdraw(name)
        end, second = time.monotonic() + PATIENCE_S, 4
        while not rests(running) and time.monotonic() < end:  # a window that is owed has to be closed first
            fed.append(arrive(running, tmp_path / "s", second))
            second += 1
        assert rests(running)
        fed += [arrive(running, tmp_path / "s", n) for n in range(second, second + 3)]
        for name, sql in SQL.items():
            running.submit(name, sql)
        fed += [arrive(running, tmp_path / "s", n) for n in range(second + 3, second + 12)]
        running.drain()
        assert [name for name in SQL if not right(running, name, pa.concat_tables(fed))] == []


def right(running: Towpath, name: str, fed: pa.Table) -> bool:
    """Whether it has answers, and they are DuckDB's."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE s AS SELECT * FROM fed")
        query = parse(SQL[name], running.job.catalog, name)
        expected = answer(database, query, running.job.catalog, running.engine.validity(name))
    return expected.num_rows > 0 and differences(expected, running.results(name)) is None
