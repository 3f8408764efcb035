"""Universal carriers on real Spark: shapes come and go as rows of a table. Answers are worked out by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.folders import BEGINNING_US, SECOND, arrive, write_job

from towpath.api.running import Towpath, start
from towpath.control.state.fence import MoveStep
from towpath.runtime.carriers import BatchDone
from towpath.spark import runtime
from towpath.spark.progress import batch_done

pytestmark = pytest.mark.spark

QUERIES = {
    "big": "SELECT k FROM s WHERE x > 2",
    "some": "SELECT k + 1 AS n, x FROM s WHERE k IN (1, 3) AND x < 4",
    "either": "SELECT x * 2 AS y, k FROM s WHERE x < 2 OR k = 2",
    "count": "SELECT count(*) AS n FROM s [RANGE 10 SECONDS]",
    "groups": "SELECT k, sum(x) AS t, max(x) - min(x) AS d FROM s [RANGE 10 SECONDS] GROUP BY k HAVING count(*) > 1",
    "hops": "SELECT second(window_end) AS w, avg(x) AS a FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] WHERE k = 1",
    "replaced": "SELECT sum(k) AS t FROM s [RANGE 10 SECONDS] HAVING sum(k) > 3",
}


def universal_job(folder: Path) -> Path:
    job = write_job(folder, ["s"], QUERIES)
    job.write_text("carriers: universal\n" + job.read_text())
    return job


def found(running: Towpath) -> dict[str, list[tuple]]:
    return {name: sorted(tuple(row.values()) for row in running.results(name).to_pylist()) for name in QUERIES}


def settle(running: Towpath) -> None:
    running.engine.finishing.settle()
    running.poll()


def test_shapes_are_data(tmp_path: Path) -> None:
    job = universal_job(tmp_path)
    arrive(tmp_path, "s", [(1, 1.0, 1), (2, 2.0, 2), (1, 3.0, 3), (3, 4.0, 12)])
    with start(job) as running:
        settle(running)
        carriers = running.engine.carriers
        assert [c.template.family.kind for c in carriers] == ["universal filter", "universal aggregate"]
        # A shape that nobody had before starts nothing, and a query that shares a fragment is no row more.
        running.submit("never-seen", "SELECT CAST(k AS STRING) || '!' AS t FROM s WHERE length(CAST(x AS STRING)) = 3")
        running.submit("the-same", "SELECT k FROM s WHERE 2 < x")
        (tmp_path / "queries" / "count.sql").unlink()
        running.withdraw("count")
        # Its window from 10 s on is open: the old version has it, and closes it when it has left the table.
        running.submit("replaced", "SELECT 10 * sum(k) AS t FROM s [RANGE 10 SECONDS]")
        assert running.engine.carriers == carriers
        fragments = running.engine.controller.state.fragments.values()
        assert len({f.signature for f in fragments}) == len(fragments) == len(QUERIES) + 2
        arrive(tmp_path, "s", [(1, 5.0, 14)])
        settle(running)
    with start(job) as running:
        arrive(tmp_path, "s", [(2, 6.0, 21), (1, 7.0, 22)])
        settle(running)
        # Late by two seconds and a half: no window has it. Few queries take the row at 40 s, and all windows close.
        arrive(tmp_path, "s", [(2, 1.5, 18.5), (4, 2.0, 40)])
        running.drain()
        assert len(running.engine.carriers) == 2
        assert running.results("never-seen")["t"].to_pylist() == ["1!", "2!", "2!", "1!", "4!"]
        assert running.results("the-same")["k"].to_pylist() == [1, 2, 1]
        assert found(running) == {
            "big": [(1,), (1,), (1,), (2,), (3,)],
            "some": [(2, 1.0), (2, 3.0)],
            "either": [(2.0, 1), (3.0, 2), (4.0, 2), (12.0, 2)],
            "count": [(3,)],
            "groups": [(1, 4.0, 2.0)],
            "hops": [(5, 2.0), (10, 2.0), (15, 5.0), (20, 5.0), (25, 7.0), (30, 7.0)],
            "replaced": [(4,), (4,), (30,), (40,)],
        }
        late = {stream: n for c in running.engine.carriers for stream, n in c.late_rows.items()}
        assert late == {"s": 1}
        assert running.results("groups").schema.types == [pa.int64(), pa.float64(), pa.float64()]


def test_queries_change_their_kind_of_carrier_while_rows_come(tmp_path: Path) -> None:
    job = universal_job(tmp_path)
    arrive(tmp_path, "s", [(1, 1.0, 1), (2, 2.0, 2)])
    with start(job) as running:
        settle(running)
        change(running, list(QUERIES)[::2])
        arrive(tmp_path, "s", [(1, 3.0, 3), (3, 4.0, 12)])
        settle(running)
        arrive(tmp_path, "s", [(1, 5.0, 14), (2, 6.0, 21)])
        settle(running)
        change(running, list(QUERIES)[1::2])
        arrive(tmp_path, "s", [(1, 7.0, 22)])
        settle(running)
        arrive(tmp_path, "s", [(4, 2.0, 40)])
        running.drain()
        assert found(running) == {
            "big": [(1,), (1,), (1,), (2,), (3,)],
            "some": [(2, 1.0), (2, 3.0)],
            "either": [(2.0, 1), (4.0, 2), (12.0, 2)],
            "count": [(1,), (2,), (2,), (3,)],
            "groups": [(1, 4.0, 2.0)],
            "hops": [(5, 2.0), (10, 2.0), (15, 5.0), (20, 5.0), (25, 7.0), (30, 7.0)],
            "replaced": [(4,), (4,), (4,)],
        }
        steps = [move.step for move in running.engine.controller.state.moves.values()]
        assert len(steps) == len(QUERIES) and set(steps) <= {MoveStep.DRAINING, MoveStep.DONE}


def change(running: Towpath, names: list[str]) -> None:
    for name in names:
        running.move(name, carriers="compiled")


# --- joins -----------------------------------------------------------------------------------------------------------

ROWS = tuple[int | None, float | None, str | None, float]  # key, number, name, seconds
TIMES = "second(a.at) AS s, second(b.at) AS t"
LONG = "s [RANGE 10 SECONDS] a, t [RANGE 10 SECONDS] b"
JOINS = {
    "by_key": "SELECT a.k, second(b.at) AS t FROM s [RANGE 2 SECONDS] a, t [RANGE 3 SECONDS] b WHERE a.k = b.k",
    "by_number": f"SELECT {TIMES} FROM s [RANGE 5 SECONDS] a, t [RANGE 5 SECONDS] b WHERE a.x = b.x",
    "by_name": f"SELECT {TIMES} FROM s [RANGE 5 SECONDS] a, t [RANGE 5 SECONDS] b WHERE a.name = b.name",
    "by_both": f"SELECT {TIMES} FROM {LONG} WHERE a.k = b.k AND a.name = b.name",
    "of_itself": f"SELECT {TIMES} FROM s [RANGE 3 SECONDS] a, s [RANGE 3 SECONDS] b WHERE a.k = b.k AND a.x > b.x",
    "counted": f"SELECT a.k, count(*) AS n FROM {LONG} WHERE a.k = b.k GROUP BY a.k",
}


def join_job(folder: Path) -> Path:
    job = write_job(folder, ["s", "t"], JOINS)
    job.write_text("carriers: universal\n" + job.read_text().replace("x: double", "x: double, name: string"))
    return job


def arrive_named(folder: Path, stream: str, *rows: ROWS) -> None:
    k, x, names, times = zip(*rows, strict=True)
    instants = [BEGINNING_US + int(t * SECOND) for t in times]
    table = pa.table(
        {
            "k": pa.array(k, pa.int64()),
            "x": pa.array(x, pa.float64()),
            "name": pa.array(names, pa.string()),
            "at": pa.array(instants, pa.timestamp("us", tz="UTC")),
        }
    )
    number = len(list((folder / stream).glob("*.parquet")))
    pq.write_table(table, folder / stream / ".scratch")
    (folder / stream / ".scratch").rename(folder / stream / f"{number:05}.parquet")


def kinds(running: Towpath) -> list[str]:
    return [c.template.family.kind for c in running.engine.carriers]


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """How many rows the state of each carrier had after each of its micro-batches."""
    found: dict[str, list[int]] = {}

    def noted(carrier: str, *given: Any, **more: Any) -> BatchDone:
        done = batch_done(carrier, *given, **more)
        found.setdefault(carrier, []).append(done.state_rows)
        return done

    monkeypatch.setattr(runtime, "batch_done", noted)
    return found


def test_classes_of_joins_are_data(tmp_path: Path, states: dict[str, list[int]]) -> None:
    job, nan = join_job(tmp_path), float("nan")
    # NULL is equal to nothing, NaN to NaN, and 0.0 to -0.0.
    arrive_named(tmp_path, "s", (1, 1.0, "a", 1), (2, nan, "b", 2), (None, 2.0, None, 3), (1, 0.0, "a", 4))
    arrive_named(tmp_path, "s", (9, 9.0, "n", 6))
    arrive_named(tmp_path, "t", (1, -0.0, "b", 2), (2, nan, "a", 3), (None, 2.0, None, 3.5), (1, 5.0, "a", 6))
    with start(job) as running:
        settle(running)
        carriers = running.engine.carriers
        assert kinds(running) == ["universal 2-way join", "universal 2-way join + aggregate"]
        # Streams and keys that nobody has joined before start nothing.
        running.submit("anew", f"SELECT {TIMES} FROM t [RANGE 1 SECOND] a, s [RANGE 2 SECONDS] b WHERE a.name = b.name")
        (tmp_path / "queries" / "by_both.sql").unlink()
        running.withdraw("by_both")
        other = (
            JOINS["by_number"]
            .replace("second(a.at)", "CAST(second(a.at) + 100 AS INT)")
            .replace("5 SECONDS", "1 SECOND")
        )
        running.submit("by_number", other)
        arrive_named(tmp_path, "s", (1, 7.0, "a", 8))
        arrive_named(tmp_path, "t", (1, 7.0, "a", 9))
        settle(running)
        assert running.engine.carriers == carriers
    with start(job) as running:
        # Late by half a second, so nobody is paired with it; the other one meets what was there before the restart.
        arrive_named(tmp_path, "s", (1, 7.0, "a", 6.5), (1, 1.0, "z", 10))
        arrive_named(tmp_path, "t", (5, 1.0, "m", 10.5))
        settle(running)
        arrive_named(tmp_path, "t", (1, 2.0, "q", 30))
        running.drain()
        assert len(running.engine.carriers) == 2
        found = {
            name: sorted(tuple(r.values()) for r in running.results(name).to_pylist()) for name in (*JOINS, "anew")
        }
        assert found == {
            # Exactly at the bound: 4 and 6 with a RANGE of two seconds.
            "by_key": [(1, 2), (1, 2), (1, 6), (1, 6), (1, 9), (1, 9), (2, 3)],
            # The old version has what begins up to 8 s, when the new one was ready.
            "by_number": [(2, 3), (3, 3), (4, 2), (8, 9), (110, 10)],
            "by_name": [(1, 3), (1, 6), (2, 2), (4, 3), (4, 6), (4, 9), (8, 3), (8, 6), (8, 9)],
            "by_both": [(1, 6), (4, 6)],
            "of_itself": [(1, 4), (8, 10)],
            "counted": [(1, 3), (1, 9), (2, 1)],
            "anew": [(9, 8)],
        }
        # Once, although each carrier reads the stream on both sides.
        assert [dict(c.late_rows) for c in running.engine.carriers] == [{"s": 1}, {"s": 1}]
    # What no window reaches any more leaves the state; it would grow for ever else.
    assert any(after < before for before, after in pairwise(states["c0"]))
