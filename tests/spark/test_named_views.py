"""Views that a job file names, on real Spark, with the answers written by hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from towpath.api.running import Towpath, start

pytestmark = [pytest.mark.spark, pytest.mark.live]  # two runs of a job: too long for `make test`

PATIENCE_S = 120
BUSY = "SELECT k, count(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k"
VIEWS = {"record": "SELECT max(n) AS most FROM busy [RANGE 4 SECONDS]", "busy": BUSY}
QUERIES = {
    "pairs": "SELECT k FROM busy WHERE n >= 2",
    "best": "SELECT most FROM record",
    "own": "CREATE VIEW odd AS SELECT k FROM s WHERE k % 2 = 1; SELECT count(*) AS c FROM odd [RANGE 4 SECONDS]",
}
# Second and key. Windows of 2 seconds: [0, 2) 1 1 2, [2, 4) 3, [4, 6) 2 2 2, [6, 8) 1; result times 2, 4, 6, 8.
FIRST = ((0.5, 1), (1.0, 2), (1.5, 1), (2.5, 3), (4.0, 2), (5.0, 2), (5.5, 2), (6.5, 1), (20.0, 9))
# [20, 22) 9 9, [22, 24) 5 5 5 5, [24, 26) 5.
SECOND = ((21.0, 9), *((22.0 + n / 10, 5) for n in range(4)), (24.0, 5), (60.0, 0))


def arrive(folder: Path, name: str, rows: tuple[tuple[float, int], ...]) -> None:
    lines = ["k,at", *(f"{k},1970-01-01 00:{int(t) // 60:02}:{t % 60:09.6f}" for t, k in rows)]
    (folder / "s" / f".{name}").write_text("\n".join(lines) + "\n")
    (folder / "s" / f".{name}").rename(folder / "s" / f"{name}.csv")


def opened(folder: Path, views: dict[str, str]) -> Towpath:
    source = {"type": "files", "path": "./s", "format": "csv"}
    stream = {"source": source, "schema": {"k": "bigint", "at": "timestamp"}, "time": "at", "idle_after": 0}
    job: dict[str, Any] = {"trigger": "100 ms", "streams": {"s": stream}, "views": views, "queries": QUERIES}
    (folder / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False))
    return start(folder / "job.yaml")


def until(running: Towpath, expected: dict[str, list[int]]) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        running.engine.finishing.catch_up()
        found = {name: sorted(running.results(name).column(0).to_pylist()) for name in expected}
        if found == expected and not running.engine.controller.undecided:
            return
        assert time.monotonic() < end, found
        time.sleep(0.2)


def test_views_of_a_job_are_read_and_changed(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    arrive(tmp_path, "1", FIRST)
    with opened(tmp_path, VIEWS) as running:
        # Of record's windows [0, 4) has the result time 2 of busy, [4, 8) 4 and 6, [8, 12) has 8.
        until(running, {"pairs": [1, 2], "best": [1, 2, 3], "own": [1, 3]})
        running.submit("late", "SELECT n FROM busy WHERE k = 5")
        assert "busy" in running.engine.controller.queries.running["late"].sql
        until(running, {"late": []})
        arrive(tmp_path, "2", SECOND)
        # [20, 22) and [22, 24) have two and more; record: [20, 24) has 22, [24, 28) has 24 and 26.
        until(running, {"pairs": [1, 2, 5, 9], "best": [1, 2, 2, 3, 4], "late": [1, 4]})
    changed = {**VIEWS, "busy": BUSY.replace("GROUP", "WHERE k <> 5 GROUP")}
    with opened(tmp_path, changed) as running:
        arrive(tmp_path, "3", ((65.0, 0),))
        until(running, {"pairs": [1, 2, 5, 9], "late": [1, 4]})  # and both versions have settled who answers what
        arrive(tmp_path, "4", ((70.0, 5), (70.1, 5), (70.2, 6), (70.3, 6), (90.0, 0)))
        until(running, {"pairs": [1, 2, 5, 6, 9], "late": [1, 2, 4]})
