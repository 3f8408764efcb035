"""What is in time, what silence does, and what draining closes, on real Spark, with values worked out by hand."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.spark.folders import BEGINNING_US, HEADER, SECOND, arrive, write_query

from towpath.api.running import Towpath, start

pytestmark = pytest.mark.spark

PATIENCE_S = 120
# Streams of different classes differ in a column that nobody fills.
STREAM = """
  NAME:
    source: {type: files, path: ./NAME, format: parquet}
    schema: {k: bigint, x: double, CLASSat: timestamp}
    time: at
    SETTINGS
"""


def write(folder: Path, streams: Mapping[str, tuple[str, str]], queries: Mapping[str, str]) -> Path:
    """A job; of each stream its class and its settings."""
    (folder / "queries").mkdir()
    for name, sql in queries.items():
        write_query(folder, name, sql)
    text = HEADER
    for name, (class_, settings) in streams.items():
        (folder / name).mkdir()
        text += (
            STREAM.replace("NAME", name)
            .replace("CLASS", class_ and f"{class_}: bigint, ")
            .replace("SETTINGS", settings)
        )
    (folder / "job.yaml").write_text(text)
    return folder / "job.yaml"


def settle(running: Towpath) -> None:
    running.engine.finishing.settle()
    running.poll()


def counts(running: Towpath, name: str) -> list[tuple[int, int]]:
    """Windows by their start in seconds after the beginning, and their counts."""
    found = running.results(name).to_pylist()
    return [(int(row["w"].timestamp()) - BEGINNING_US // SECOND, row["n"]) for row in found]


def test_a_row_at_the_bound_is_in_time_and_what_is_late_is_counted(tmp_path: Path) -> None:
    window = "SELECT window_start AS w, count(*) AS n FROM {} [RANGE 2 SECONDS]"
    job = write(
        tmp_path,
        {
            "s": ("c1", "delay: 1 second"),
            "t": ("c2", "delay: 0"),
            "u": ("", "delay: 1 second"),
            "v": ("", "delay: 0"),
            "old": ("c3", "delay: 0"),
        },
        {
            "all": "SELECT x FROM s",
            "windows": window.format("s"),
            "pairs": "SELECT a.x AS ax, b.x AS bx FROM s [RANGE 10 SECONDS] AS a, t [RANGE 10 SECONDS] AS b "
            "WHERE a.k = b.k",
            "fed": window.format("u"),
            "before": window.format("old"),
        },
    )
    epoch = -BEGINNING_US // SECOND
    with start(job) as running:
        for name in "stuv":
            arrive(tmp_path, name, [(1, 1.0, 10)])
        arrive(tmp_path, "old", [(1, 1.0, epoch - 5), (1, 2.0, epoch - 3)])
        settle(running)
        # s and the join have come to 10 - 1 s.
        arrive(tmp_path, "s", [(1, 2.0, 9), (1, 3.0, 8.999999), (1, 4.0, 8.5)])
        arrive(tmp_path, "t", [(1, 2.0, 10), (1, 3.0, 8.9)])
        arrive(tmp_path, "u", [(1, 2.0, 9), (1, 3.0, 8.9), (1, 3.0, 8.9)])
        arrive(tmp_path, "old", [(1, 3.0, epoch - 3), (1, 4.0, epoch - 3.5), (1, 5.0, epoch - 1)])
        settle(running)
        running.drain()
        assert sorted(running.results("all")["x"].to_pylist()) == [1, 2, 3, 4], "a filter passes late rows"
        assert counts(running, "windows") == [(8, 1), (10, 1)]
        pairs = running.results("pairs")
        found = sorted(zip(pairs["ax"].to_pylist(), pairs["bx"].to_pylist(), strict=True))
        assert found == [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert counts(running, "fed") == [(8, 1), (10, 1)]
        assert counts(running, "before") == [(epoch - 6, 1), (epoch - 4, 2), (epoch - 2, 1)]
        expected = {"old": 1, "s": 2, "t": 1, "u": 2}
        assert running.late == expected
    with start(job) as running:
        running.drain()
        assert running.late == expected, "nothing is counted twice"


def test_silence_loses_nothing_and_closes_windows_where_asked(tmp_path: Path) -> None:
    window = "SELECT window_start AS w, count(*) AS n FROM {} [RANGE 2 SECONDS]"
    streams = {"s": ("c1", "idle_after: 1 second"), "c": ("c2", "close_after: 1 second")}
    job = write(tmp_path, streams, {"kept": window.format("s"), "closed": window.format("c")})
    with start(job) as running:
        for name in streams:
            arrive(tmp_path, name, [(1, 1.0, 0), (1, 1.0, 1)])
        end = time.monotonic() + PATIENCE_S
        while not running.results("closed").num_rows:
            assert time.monotonic() < end, "silence closes the window of a stream that says so"
            running.poll()
            time.sleep(0.1)
        assert running.results("kept").num_rows == 0
        for name in streams:
            arrive(tmp_path, name, [(1, 1.0, 1.5), (1, 1.0, 1000)])
        running.drain()
        assert counts(running, "kept") == [(0, 3), (1000, 1)]
        assert counts(running, "closed") == [(0, 2), (1000, 1)]
        assert running.late == {"c": 1}


@pytest.mark.parametrize("closing", [True, False])
def test_data_that_goes_on_tomorrow(tmp_path: Path, closing: bool) -> None:
    window = "SELECT window_start AS w, count(*) AS n FROM s [RANGE 10 SECONDS]"
    job = write(tmp_path, {"s": ("c1", "delay: 0")}, {"w": window})
    arrive(tmp_path, "s", [(1, 1.0, second) for second in range(1, 7)])
    with start(job) as running:
        if closing:
            assert running.drain() == BEGINNING_US + 10 * SECOND
            assert counts(running, "w") == [(0, 6)]
        else:
            running.catch_up()
            assert counts(running, "w") == []
    arrive(tmp_path, "s", [(1, 1.0, second) for second in range(7, 13)])
    with start(job) as running:
        running.drain()
        assert counts(running, "w") == [(0, 6 if closing else 9), (10, 3)]
        assert running.late == ({"s": 3} if closing else {}), "the rows at 7, 8 and 9"
