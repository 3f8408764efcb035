"""A job file that changes between runs: every edit is carried out, or refused before anything starts."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from towpath.api.running import Towpath, start

pytestmark = [pytest.mark.spark, pytest.mark.live]  # three runs of a job: too long for `make test`

SECOND = 1_000_000
PATIENCE_S = 60  # for versions to take over, and windows to close
PARQUET = {"k": "bigint", "x": "double", "at": "timestamp"}
CSV = {"k": "bigint", "at": "timestamp"}


class Bench:
    """A folder with a job file that is edited, and streams that grow."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = 0
        self.streams: dict[str, Any] = {}
        self.queries: dict[str, str] = {}
        self.node = "local"

    def stream(self, name: str, format_: str, folder: str | None = None, **others: Any) -> None:
        (self.root / (folder or name)).mkdir(exist_ok=True)
        source = {"type": "files", "path": f"./{folder or name}", "format": format_}
        schema = PARQUET if format_ == "parquet" else CSV
        self.streams[name] = {"source": source, "schema": schema, "time": "at", **others}

    def arrive(self, folder: str, *rows: tuple[int, float]) -> None:
        """Rows (key, second) as one new file of the folder's format."""
        self.files += 1
        ks, times = zip(*rows, strict=True)
        path = self.root / folder / f"{self.files:04}"
        if folder in ("b", "c", "e"):
            with path.open("w", newline="") as file:
                csv.writer(file).writerows(
                    [("at", "k"), *((f"1970-01-01 00:00:{t:09.6f}", k) for k, t in zip(ks, times, strict=True))]
                )
        else:
            at = pa.array([int(t * SECOND) for t in times], pa.timestamp("us", "UTC"))
            pq.write_table(pa.table({"k": ks, "x": [0.5] * len(ks), "at": at}), path)

    def start(self) -> Towpath:
        node = {"type": "embedded", "cores": 2, "memory": "2g"}
        node["spark"] = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
        job = {"trigger": "100 ms", "nodes": {self.node: node}, "streams": self.streams, "queries": self.queries}
        (self.root / "job.yaml").write_text(yaml.safe_dump(job))
        return start(self.root / "job.yaml")


def keys(running: Towpath, expected: dict[str, list[int]]) -> dict[str, list[int]]:
    """The column k of queries, when all that is there was read; windows close with the micro-batch after that."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        running.engine.finishing.catch_up()
        found = {name: sorted(running.results(name).column("k").to_pylist()) for name in expected}
        if time.monotonic() > deadline or (found == expected and not running.engine.controller.undecided):
            return found
        time.sleep(0.2)


def test_a_job_that_is_edited_again_and_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.stream("a", "parquet")
    for name in "bc":
        bench.stream(name, "csv", idle_after="100 ms")
    bench.stream("e", "csv")
    bench.streams["e"]["schema"] = {**CSV, "x": "double"}  # read alone, so that its delay is its own
    bench.queries = {f"q{name}": f"SELECT k FROM {name}" for name in "abc"}
    bench.queries |= {name: "SELECT count(*) AS k FROM e [RANGE 1 SECOND]" for name in ("stays", "goes")}
    for name in "abc":
        bench.arrive(name, (1, 10))
    bench.arrive("e", (1, 10), (2, 10.2), (3, 11.5))
    with bench.start() as running:
        expected = {"qa": [1], "qb": [1], "qc": [1], "stays": [2], "goes": [2]}
        assert keys(running, expected) == expected

    # One more stream of the class that Spark reads, one of a feed's two gone, a longer delay, the node renamed.
    bench.stream("a2", "parquet")
    bench.queries["qa2"] = "SELECT k FROM a2"
    del bench.streams["c"], bench.queries["qc"], bench.queries["goes"]
    bench.streams["e"]["delay"] = "3 seconds"
    bench.node = "other"
    bench.arrive("a2", (1, 9))
    for name in "abc":
        bench.arrive(name, (2, 12))
    bench.arrive("e", (4, 14))
    with bench.start() as running:
        expected = {"qa": [1, 2], "qa2": [1], "qb": [1, 2], "qc": [1], "stays": [2], "goes": [2]}
        assert keys(running, expected) == expected
        # What is 3 seconds behind is in time by now, and the window from 11 on, of one row so far, is open as long.
        for row in ((5, 11.7), (6, 20)):
            bench.arrive("e", row)
            running.engine.finishing.catch_up()
        expected = {"stays": [1, 2, 2], "goes": [2]}
        assert keys(running, expected) == expected

    # A stream from elsewhere: up to the newest row that was read, second 12, its queries answer for what it was, and
    # from then on for what it is. So do those of a stream with another column, and the others do not notice.
    bench.stream("a", "parquet", "elsewhere")
    bench.streams["b"]["schema"] = {**CSV, "more": "string"}
    bench.queries["qb"] = "SELECT k, more FROM b"
    bench.arrive("elsewhere", (6, 11), (7, 25), (8, 26))
    bench.arrive("a", (5, 27))
    bench.arrive("a2", (3, 14))
    bench.arrive("b", (3, 14))
    with bench.start() as running:
        expected = {"qa": [1, 2, 7, 8], "qa2": [1, 3], "qb": [3], "stays": [1, 2, 2]}
        assert keys(running, expected) == expected
        bench.arrive("elsewhere", (9, 30))
        expected = {"qa": [1, 2, 7, 8, 9]}
        assert keys(running, expected) == expected
