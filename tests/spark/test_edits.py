"""A job file that changes between runs: every edit is carried out, or refused before anything starts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from towpath.api import Towpath, start
from towpath.control.requests import Request
from towpath.errors import JobError
from towpath.lang import parse

pytestmark = pytest.mark.spark

SECOND = 1_000_000
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
        if folder in ("b", "c", "d"):
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


def keys(running: Towpath, *names: str) -> dict[str, list[int]]:
    running.engine.settle()
    running.engine.poll()
    return {name: sorted(running.results(name).column("k").to_pylist()) for name in names}


def test_a_job_that_is_edited_again_and_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.stream("a", "parquet")
    for name in "bcd":
        bench.stream(name, "csv", idle_after="100 ms")
    bench.queries = {f"q{name}": f"SELECT k FROM {name}" for name in "abcd"} | {"both": "SELECT k FROM a WHERE k > 0"}
    for name in "abcd":
        bench.arrive(name, (1, 10))
    with bench.start() as running:
        mine = parse("SELECT k FROM a WHERE k < 100", running.job.catalog, "mine")
        both = parse("SELECT k FROM a WHERE k = 2", running.job.catalog, "both")
        running.engine.submit([Request(mine), Request(both)])
        assert keys(running, "qa", "qb", "qc", "qd") == {name: [1] for name in ("qa", "qb", "qc", "qd")}

    # One more stream of the class that Spark reads, one of a feed's three gone, another delay, the node renamed.
    bench.stream("a2", "parquet")
    bench.queries |= {"qa2": "SELECT k FROM a2"}
    bench.queries["pairs"] = (
        "SELECT x.k FROM a [RANGE 1 MINUTE] AS x, a2 [RANGE 1 MINUTE] AS y WHERE x.k = y.k AND x.k >= 0"
    )
    del bench.streams["d"], bench.queries["qd"]
    bench.streams["b"]["delay"] = "3 seconds"
    bench.node = "other"
    bench.arrive("a2", (1, 9))
    for name in "abcd":
        bench.arrive(name, (2, 12))
    with bench.start() as running:
        expected = {"qa": [1, 2], "qa2": [1], "qb": [1, 2], "qc": [1, 2], "pairs": [1]}
        assert keys(running, *expected) == expected
        assert running.engine.controller.running("qd") is None
        both_now = running.engine.controller.running("both")
        assert both_now is not None and both_now.sql == both.sql, "it stays, whatever the job file says"

    # A stream from elsewhere, and one with another column: the others do not notice.
    bench.stream("a", "parquet", "elsewhere")
    bench.streams["b"]["schema"] = {**CSV, "more": "string"}
    bench.queries["qb"] = "SELECT k, more FROM b"
    bench.arrive("elsewhere", (7, 25), (8, 26))
    bench.arrive("a2", (3, 14))
    bench.arrive("c", (3, 14))
    with bench.start() as running:
        expected = {"qa2": [1, 3], "qc": [1, 2, 3]}
        assert keys(running, *expected) == expected

    # What somebody submitted and still stands would lose its stream.
    del bench.streams["a"]
    bench.queries = {"qb": bench.queries["qb"]}
    with pytest.raises(JobError, match=r"(?s)query mine: there is no stream a.*towpath withdraw mine"):
        bench.start()
