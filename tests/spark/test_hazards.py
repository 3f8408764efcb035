"""What can go wrong when many queries share one streaming query, each on purpose."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.spark.folders import BEGINNING_US, SECOND, arrive, write_job, write_other_stream, write_query

from towpath.api.running import Towpath, start
from towpath.control.journal.journal import Journal
from towpath.control.state.history import EventKind
from towpath.runtime.carriers import BatchDone, CarrierEvent
from towpath.spark.runtime import SparkRuntime

pytestmark = pytest.mark.spark

PATIENCE_S = 90


def wait_for(running: Towpath, what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "it did not happen"
        running.poll()
        time.sleep(0.1)


def settle(running: Towpath, watch: Callable[[list[CarrierEvent]], None] | None = None) -> None:
    running.engine.finishing.settle()
    running.poll(watch)


def late(running: Towpath) -> int:
    return sum(sum(c.late_rows.values()) for c in running.engine.carriers)


def test_a_stream_that_lags_behind_its_neighbour_is_not_late(tmp_path: Path) -> None:
    queries = {name: f"SELECT count(*) AS n FROM {name} [RANGE 2 SECONDS]" for name in ("ahead", "behind")}
    job = write_job(tmp_path, ["ahead", "behind"], queries)
    with start(job) as running:
        for second in range(0, 60, 20):
            arrive(tmp_path, "ahead", [(1, 1.0, second + s) for s in range(20)])
            arrive(tmp_path, "behind", [(1, 1.0, second / 10 + s / 10) for s in range(20)])
            settle(running)
        arrive(tmp_path, "behind", [(1, 1.0, 6 + s) for s in range(54)])
        running.drain()
        assert len(running.engine.carriers) == 1
        assert late(running) == 0
        assert sum(running.results("ahead")["n"].to_pylist()) == 60
        assert sum(running.results("behind")["n"].to_pylist()) == 60 + 54


def test_a_silent_stream_does_not_hold_back_the_windows_of_its_join(tmp_path: Path) -> None:
    windows = "SELECT count(*) AS n FROM s [RANGE 2 SECONDS] AS a, t [RANGE 2 SECONDS] AS b WHERE a.k = b.k"
    job = write_job(tmp_path, ["s"], {}, idle_after="1 second")
    write_other_stream(tmp_path, job, "t", idle_after="1 second")
    write_query(tmp_path, "w", windows)
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 1.0, 1)])
        arrive(tmp_path, "t", [(1, 1.0, 1)])
        seconds = iter(range(2, 1000))

        def more_of_s_brings_the_result() -> bool:
            arrive(tmp_path, "s", [(2, 1.0, next(seconds))])
            return running.results("w").num_rows == 1

        wait_for(running, more_of_s_brings_the_result)
        assert running.results("w")["n"].to_pylist() == [1]


def test_late_tuples_are_counted_and_reported(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {"w": "SELECT count(*) AS n FROM s [RANGE 2 SECONDS]"})
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 1.0, t) for t in range(30)])
        settle(running)
        arrive(tmp_path, "s", [(1, 1.0, 3), (1, 1.0, 31)])
        running.drain()
        assert late(running) == 1
        assert sum(running.results("w")["n"].to_pylist()) == 31


def test_queries_come_change_and_go_without_a_restart(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {"a": "SELECT k, x FROM s WHERE x > 10"})
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 50.0, 1)])
        settle(running)
        events: list[CarrierEvent] = []
        write_query(tmp_path, "b", "SELECT k FROM s WHERE x < 10")
        write_query(tmp_path, "a", "SELECT k, x FROM s WHERE x > 20")
        write_query(tmp_path, "broken", "SELECT nothing FROM s WHERE")
        running.poll(events.extend)
        assert "broken" not in running.engine.controller.queries.running
        assert len(running.refused) == 1
        arrive(tmp_path, "s", [(2, 5.0, 2), (2, 15.0, 3), (2, 25.0, 4)])
        settle(running)
        (tmp_path / "queries" / "b.sql").unlink()
        running.poll(events.extend)
        arrive(tmp_path, "s", [(3, 1.0, 20), (3, 30.0, 21)])
        settle(running, events.extend)
        assert events and not any(e.first for e in events if isinstance(e, BatchDone)), "a carrier was restarted"
        running.drain()
        rows = [(row["k"], row["x"]) for row in running.results("a").to_pylist()]
        assert rows == [(1, 50.0), (2, 15.0), (2, 25.0), (3, 30.0)], "x > 10 until x > 20 takes over"
        assert running.results("b").to_pylist() == [{"k": 2}]
        (b,) = running.engine.answers.validity("b")
        assert b.until_us == BEGINNING_US + 4 * SECOND + 1


def test_equal_queries_run_once(tmp_path: Path) -> None:
    same = [
        "SELECT k, x FROM s WHERE x > 10 AND k = 1",
        "SELECT t.x, t.k FROM s AS t WHERE 1 = t.k AND 10 < t.x",
        "SELECT x AS other FROM s WHERE k = 1 AND x > 10",
    ]
    job = write_job(tmp_path, ["s"], {f"q{n}": sql for n, sql in enumerate(same)})
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 50.0, 1), (2, 50.0, 2), (1, 5.0, 3)])
        running.drain()
        assert len({part.fragment for n in range(3) for part in running.engine.answers.validity(f"q{n}")}) == 1
        assert [running.results(f"q{n}").num_rows for n in range(3)] == [1, 1, 1]
        assert running.results("q2").column_names == ["other"]


def test_a_shape_of_its_own_for_every_query_still_shares_carriers(tmp_path: Path) -> None:
    queries = {f"q{n}": f"SELECT k FROM s WHERE x * {'x * ' * n} 1 > 100" for n in range(20)}
    job = write_job(tmp_path, ["s"], queries)
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 2.0, 1), (2, 1000.0, 2)])
        running.drain()
        assert len(running.engine.carriers) == 1
        assert [running.results(f"q{n}").num_rows for n in range(20)] == [1 if n < 6 else 2 for n in range(20)]


def test_a_node_killed_while_it_wrote_the_first_line_of_a_checkpoint(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {"q": "SELECT k FROM s WHERE x > 1"})
    offsets = tmp_path / "job.store" / "carriers" / "c0" / "e0" / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.7f1d.tmp").write_text("v1")
    arrive(tmp_path, "s", [(1, 2.0, 1), (2, 0.0, 2)])
    with start(job) as running:
        running.drain()
        assert running.results("q")["k"].to_pylist() == [1]


def test_windows_close_although_nobody_heard_of_the_last_batches(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {"w": "SELECT count(*) AS n FROM s [RANGE 2 SECONDS]"})
    journal = tmp_path / "job.store" / "journal.sqlite"
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 1.0, 1)])
        settle(running)
        killed = sqlite3.connect(tmp_path / "killed.sqlite")  # what a controller leaves that is killed now
        with closing(sqlite3.connect(journal)) as written, closing(killed):
            written.backup(killed)
        arrive(tmp_path, "s", [(1, 1.0, 2 + n) for n in range(40)])
        running.engine.finishing.settle()
    for left in journal.parent.glob("journal.sqlite*"):
        left.unlink()
    (tmp_path / "killed.sqlite").rename(journal)
    with start(job) as running:
        running.drain()
        assert sum(running.results("w")["n"].to_pylist()) == 41


def test_a_carrier_that_somebody_else_stops_is_started_again(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {"q": "SELECT k FROM s WHERE x > 1"})
    with start(job) as running:
        arrive(tmp_path, "s", [(1, 2.0, 1)])
        settle(running)
        node = running.engine._nodes["local"]
        assert isinstance(node, SparkRuntime)
        node._queries["c0"].stop()
        arrive(tmp_path, "s", [(2, 2.0, 2)])
        running.drain()
        assert sorted(running.results("q")["k"].to_pylist()) == [1, 2]
    with closing(Journal(tmp_path / "job.store" / "journal.sqlite", read_only=True)) as journal:
        texts = [entry.text for entry in journal.history() if entry.kind is EventKind.CARRIER_RESTARTED]
    assert texts == ["carrier c0 stopped: somebody else stopped it; it is started again"]
