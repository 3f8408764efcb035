"""Universal carriers on real Spark: shapes come and go as rows of a table. Answers are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.folders import arrive, write_job

from towpath.api.running import Towpath, start

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
