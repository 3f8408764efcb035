"""`from` means what it says on real Spark, whoever else runs: the past comes through carriers of its own."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.spark.folders import BEGINNING_US, SECOND, arrive, write_job

from towpath.api.running import Towpath, start
from towpath.config.settings import NOW
from towpath.control.state.records import CarrierRecord
from towpath.job import QueryDef

pytestmark = [pytest.mark.spark, pytest.mark.live]

PATIENCE_S = 90
THIRD = datetime.fromtimestamp(BEGINNING_US / 1e6 + 3, UTC).isoformat()

FILTER = "SELECT k FROM s WHERE x >= 0"
WINDOW = "SELECT sum(k) AS n, window_start FROM s [RANGE 2 SECONDS]"
HOPPING = "SELECT count(*) AS n, window_start FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS]"
PAIRS = "SELECT a.k AS a, b.k AS b FROM s [RANGE 1 SECOND] AS a, s [RANGE 1 SECOND] AS b WHERE a.x = b.x"

LATE = {
    "evens": {"sql": "SELECT k FROM s WHERE k % 2 = 0", "from": "beginning"},
    "from third": {"sql": "SELECT k FROM s WHERE x < 1000", "from": THIRD},
    "windows": {"sql": "SELECT sum(k) AS n, window_start FROM s [RANGE 4 SECONDS]", "from": "beginning"},
    "same": {"sql": FILTER, "from": "beginning"},
    "live": {"sql": "SELECT k FROM s WHERE x > -1", "from": "now"},
    "hopping": {"sql": HOPPING, "from": "now"},  # these two are of shapes that nobody has run before
    "pairs": {"sql": PAIRS, "from": THIRD},
}


def second(folder: Path, running: Towpath, t: int) -> None:
    """A row whose key is its second."""
    arrive(folder, "s", [(t, 7.0, t)])
    running.run(seconds=0.3)


def past(running: Towpath) -> list[CarrierRecord]:
    return [carrier for carrier in running.engine.carriers if carrier.past]


def keys(running: Towpath, name: str) -> list[int]:
    return sorted(running.results(name)["k"].to_pylist())


def windows(running: Towpath, name: str) -> list[tuple[int, int]]:
    rows = running.results(name).to_pylist()
    starts = [(int(r["window_start"].replace(tzinfo=UTC).timestamp() * SECOND) - BEGINNING_US) // SECOND for r in rows]
    return sorted(zip(starts, (r["n"] for r in rows), strict=True))


def test_all_kinds_of_from_on_carriers_old_and_new(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {"filter": FILTER, "window": WINDOW})
    with start(job) as running:
        for t in range(1, 7):
            second(tmp_path, running, t)
        running.engine.finishing.settle()
        running.poll()
        running.submit_all({name: QueryDef.model_validate(query) for name, query in LATE.items()})
        kinds = [carrier.template.family.kind for carrier in past(running)]
        assert sorted(kinds) == ["filter", "tumbling aggregate"], "one for each shape, whoever asked together"
        running.engine.finishing.settle()
        running.poll()
        assert keys(running, "evens") == [2, 4, 6], "the past is there before anything moves"
        assert keys(running, "from third") == [3, 4, 5, 6]
        end, last = time.monotonic() + PATIENCE_S, 6
        while any(running.engine.controller.runs(c.id) for c in past(running)) and time.monotonic() < end:
            last += 1
            second(tmp_path, running, last)
        assert not any(running.engine.controller.runs(c.id) for c in past(running)), "moved, and stopped"
        running.drain()
        seconds = list(range(1, last + 1))
        assert keys(running, "filter") == keys(running, "same") == seconds
        assert keys(running, "evens") == [t for t in seconds if t % 2 == 0]
        assert keys(running, "from third") == seconds[2:]
        assert keys(running, "live") == [t for t in seconds if t > 6]
        whole = [(t, sum(k for k in range(t, t + 4) if k <= last)) for t in range(0, last + 1, 4)]
        assert whole[:2] == [(0, 1 + 2 + 3), (4, 4 + 5 + 6 + 7)]
        assert windows(running, "windows") == whole
        late = range(8, last + 1, 2)  # the first window that begins after second 6 begins at 8
        assert windows(running, "hopping") == [(t, sum(k <= last for k in range(t, t + 4))) for t in late]
        pairs = {(r["a"], r["b"]) for r in running.results("pairs").to_pylist()}
        assert pairs == {(a, b) for a in seconds[2:] for b in seconds[2:] if abs(a - b) <= 1}


def test_now_on_streams_that_are_read_together(tmp_path: Path) -> None:
    """`t` holds `s` back when the query comes; what `s` has is of the past all the same. Of `u` there is nothing."""
    job = write_job(tmp_path, ["s", "t"], {}, idle_after="3 seconds")
    arrive(tmp_path, "s", [(1, 7.0, 1), (2, 7.0, 2)])
    with start(job) as running:
        running.submit("now", FILTER, start=NOW)
        end = time.monotonic() + PATIENCE_S
        while not running.engine.answers.validity("now")[0].settled and time.monotonic() < end:
            running.run(seconds=0.2)
        arrive(tmp_path, "s", [(3, 7.0, 3)])
        running.drain()
        assert keys(running, "now") == [3]


def test_now_on_a_stream_that_has_nothing_yet(tmp_path: Path) -> None:
    job = write_job(tmp_path, ["s"], {})
    with start(job) as running:
        running.submit("now", FILTER, start=NOW)
        end = time.monotonic() + PATIENCE_S
        while not running.engine.answers.validity("now")[0].settled and time.monotonic() < end:
            running.run(seconds=0.2)
        arrive(tmp_path, "s", [(3, 7.0, 3)])
        running.drain()
        assert keys(running, "now") == [3]
