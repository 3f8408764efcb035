"""The Python API checks what it is asked for as a job file is checked: nodes that do nothing are enough for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.nodes import quiet_node

from towpath import job as jobs
from towpath.api.running import Towpath
from towpath.control.act.engine import Engine
from towpath.control.act.housekeeping import Housekeeper
from towpath.control.act.self_monitor import SelfMonitor
from towpath.control.journal.journal import Journal
from towpath.errors import JobError, QueryError, UnknownNameError
from towpath.store.layout import Store

JOB = """
streams:
  s:
    source: {type: files, path: ./in, format: csv}
    schema: {k: bigint, at: timestamp}
    time: at
nodes: {here: {type: embedded, cores: 1}}
"""
SQL = "SELECT k FROM s WHERE k > 1"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Towpath]:
    (tmp_path / "in").mkdir()
    (tmp_path / "job.yaml").write_text(JOB)
    job = jobs.load(tmp_path / "job.yaml")
    store = Store(job.store)
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(store, Journal(store.journal), {"here": quiet_node()}, job.catalog))
        yield Towpath(job, stack, engine, Housekeeper(store, None), SelfMonitor(tmp_path))


def parquet(path: Path) -> dict[str, str]:
    return {"type": "parquet", "path": str(path)}


def test_a_sink_among_the_rows_of_a_stream_is_refused(running: Towpath, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"queries\.q\.sink\.path"):
        running.submit("q", SQL, sink=parquet(tmp_path / "in" / "out"))
    assert running.engine.controller.queries.running.get("q") is None


def test_a_sink_belongs_to_one_query(running: Towpath, tmp_path: Path) -> None:
    running.submit("one", SQL, sink=parquet(tmp_path / "out"))
    with pytest.raises(JobError, match="already the sink of the query one"):
        running.submit("two", SQL, sink=parquet(tmp_path / "out"))
    running.submit(
        "one", "SELECT k FROM s WHERE k > 2", sink=parquet(tmp_path / "out")
    )  # the one it replaces leaves it


def test_all_that_is_wrong_is_said_before_anything_happens(running: Towpath) -> None:
    with pytest.raises(JobError) as caught:
        running.submit("q", SQL, sink={"type": "bucket"}, copies=99, fragments="as you like")
    assert all(word in str(caught.value) for word in ("sink", "copies", "fragments"))
    with pytest.raises(QueryError, match="k1"):
        running.submit("q", "SELECT k1 FROM s")
    assert running.engine.controller.queries.running.get("q") is None


def test_what_was_rejected_of_a_stream_that_is_not_there(running: Towpath) -> None:
    assert running.rejected() == running.rejected("s") == []
    with pytest.raises(UnknownNameError, match="there is no stream named 'nope'"):
        running.rejected("nope")
