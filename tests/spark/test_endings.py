"""Queries are withdrawn, replaced and given other sinks while data flows: nothing that was shown is taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.spark.folders import BEGINNING_US, SECOND, arrive, write_job, write_other_stream

from towpath.api.running import Reader, Towpath, start

pytestmark = pytest.mark.spark

JOIN = "SELECT a.k FROM s [RANGE 2 SECONDS] AS a, t [RANGE 2 SECONDS] AS b WHERE a.k = b.k"
UNION = "SELECT k FROM s WHERE x > 0 UNION ALL SELECT k FROM t WHERE x > 0"


def settle(running: Towpath) -> None:
    running.engine.finishing.settle()
    running.poll()


def rows(first: int, last: int) -> list[tuple[int, float, float]]:
    """Row number k at second k."""
    return [(k, 1.0, k) for k in range(first, last + 1)]


def keys(table: pa.Table) -> list[int]:
    return sorted(table["k"].to_pylist())


def sunk(folder: Path) -> list[int]:
    return sorted(k for file in folder.glob("*.parquet") for k in pq.read_table(file)["k"].to_pylist())


@contextmanager
def following(store: Path, names: list[str]) -> Iterator[dict[str, list[int]]]:
    """What those who follow the queries are given, complete when the block is left."""
    given: dict[str, list[int]] = {name: [] for name in names}
    stopped = threading.Event()

    def follow(name: str) -> None:
        for table in Reader(store).follow(name, stopped):
            given[name] += table["k"].to_pylist()

    threads = [threading.Thread(target=follow, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield given
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def set_query(job: Path, name: str, sql: str, sink: Path | None = None) -> None:
    """Into the job file, as somebody would do between two runs."""
    text = yaml.safe_load(job.read_text())
    query = {"sql": sql} | ({} if sink is None else {"sink": {"type": "parquet", "path": str(sink)}})
    text["queries"] = (text.get("queries") or {}) | {name: query}
    job.write_text(yaml.safe_dump(text))


def test_what_leaves_takes_nothing_back_and_what_takes_over_leaves_no_gap(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {})
    write_other_stream(tmp_path, job, "t")
    sinks = {name: tmp_path / "sinks" / name for name in ("slow", "pairs", "moved", "new", "changed", "edited")}
    set_query(job, "slow", UNION, sinks["slow"])
    set_query(job, "pairs", JOIN, sinks["pairs"])
    set_query(job, "moved", "SELECT k FROM s WHERE x > 0.1", sinks["moved"])
    set_query(job, "changed", "SELECT k FROM s WHERE k < 1000", sinks["changed"])
    set_query(job, "edited", "SELECT k FROM s WHERE k < 1000", sinks["edited"])
    store = tmp_path / "job.store"
    with start(job) as running:
        store = running.job.store
        with following(store, ["slow", "pairs", "moved", "changed"]) as given:
            arrive(tmp_path, "s", rows(1, 60))
            arrive(tmp_path, "t", rows(1, 3))  # the other input is slow
            settle(running)
            running.housekeeper.feed_sinks()
            shown = {name: keys(running.results(name)) for name in ("slow", "pairs", "moved", "changed")}
            assert shown["slow"] == sorted([*range(1, 61), *range(1, 4)])
            assert shown["pairs"] == [1, 2, 3]
            running.withdraw("slow")
            running.withdraw("pairs")
            assert {name: keys(running.results(name)) for name in shown} == shown, "60 rows before, 60 rows after"
            elsewhere = {"type": "parquet", "path": str(sinks["new"])}
            running.submit("moved", "SELECT k FROM s WHERE x > 0.1", sink=elsewhere)
            for first in range(61, 121, 10):
                if first == 81:
                    sink = {"type": "parquet", "path": str(sinks["changed"])}
                    running.submit("changed", "SELECT k FROM s WHERE k < 2000", sink=sink)
                arrive(tmp_path, "s", rows(first, first + 9))
                settle(running)
            arrive(tmp_path, "t", rows(4, 120))  # and comes at last
            settle(running)
            running.drain()
            settle(running)
            final = {name: keys(running.results(name)) for name in given}
            running.housekeeper.feed_sinks()
        assert {name: sorted(given[name]) for name in given} == final, "who follows has what can be read"
    assert final["slow"] == sorted([*range(1, 61), *range(1, 61)]), "complete up to where it ended"
    assert final["pairs"] == list(range(1, 61))
    assert sunk(sinks["slow"]) == final["slow"] and sunk(sinks["pairs"]) == final["pairs"]
    assert sunk(sinks["new"]) == final["moved"] == list(range(1, 121)), "the new sink has all results"
    assert set(sunk(sinks["moved"])) <= set(range(1, 121))
    assert sunk(sinks["changed"]) == final["changed"] == list(range(1, 121)), "no gap, and none twice"
    changed_between_runs(tmp_path, job, sinks)


def changed_between_runs(tmp_path: Path, job: Path, sinks: dict[str, Path]) -> None:
    """Other SQL and another sink in the job file, after a run that ended by itself."""
    set_query(job, "edited", "SELECT k FROM s WHERE k < 3000", sinks["edited"])
    set_query(job, "moved", "SELECT k FROM s WHERE x > 0.1", sinks["moved"])
    with start(job) as running:
        for first in range(121, 181, 10):
            arrive(tmp_path, "s", rows(first, first + 9))
            settle(running)
        assert [v.sql.split("< ")[1] for v in running.engine.answers.versions("edited")] == ["1000", "3000"]
        begun = running.engine.answers.versions("edited")[-1].validity[0].from_us
        assert begun is not None and BEGINNING_US + 120 * SECOND < begun < BEGINNING_US + 180 * SECOND
        assert keys(running.results("edited")) == list(range(1, 181))
        assert running.engine.answers.versions("changed")[-1].sql.endswith("< 2000"), "what was submitted goes on"
        running.housekeeper.feed_sinks()
    assert sunk(sinks["edited"]) == list(range(1, 181))
    assert sunk(sinks["moved"]) == list(range(1, 181)), "a sink that a query comes back to goes on where it was"
