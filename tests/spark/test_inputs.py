"""Files of every format through every reader: what is good is read once, what is bad is told, and nobody stops."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.api import start
from towpath.reader import Reader
from towpath.streams.rejected import Rejected

pytestmark = pytest.mark.spark

JOB = """
trigger: 100 ms
nodes:
  local: {type: embedded, cores: 2, memory: 2g, spark: {spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1"}}
streams:
  lone_csv:
    source: {type: files, path: ./lone_csv, format: csv}
    schema: {k: bigint, c: string, at: timestamp}
    time: at
  lone_json:
    source: {type: files, path: ./lone_json, format: json}
    schema: {k: bigint, j: string, at: timestamp}
    time: at
  lone_parquet:
    source: {type: files, path: ./lone_parquet, format: parquet}
    schema: {k: bigint, p: string, at: timestamp}
    time: at
  "part{1..2}":
    source: {type: files, path: ./parts, format: csv, where: {k: "{n}"}}
    schema: {k: bigint, part: string, at: timestamp}
    time: at
  two_csv:
    source: {type: files, path: ./two_csv, format: csv}
    schema: {k: bigint, two: string, at: timestamp}
    time: at
  two_parquet:
    source: {type: files, path: ./two_parquet, format: parquet}
    schema: {k: bigint, two: string, at: timestamp}
    time: at
queries:
  lone_csv: SELECT k, c AS text FROM lone_csv
  lone_json: SELECT k, j AS text FROM lone_json
  lone_parquet: SELECT k, p AS text FROM lone_parquet
  part1: SELECT k, part AS text FROM part1
  part2: SELECT k, part AS text FROM part2
  two_csv: SELECT k, two AS text FROM two_csv
  two_parquet: SELECT k, two AS text FROM two_parquet
"""
AT = "2026-01-01 00:00:01"
TIME = dt.datetime(2026, 1, 1, 0, 0, 1, tzinfo=dt.UTC)


def csv(column: str) -> str:
    """The header's order is not the schema's."""
    return f'at,{column},k\n{AT},"a ""b"" \\",1\n{AT},NA,x\n,no time,3\n{AT},null,2\n'


def parquet(folder: Path, column: str) -> None:
    """A file of long ago, one of other types and without a time, half a file, nothing, and a folder."""
    plain = pa.table({"k": [1], column: ['a "b" \\'], "at": pa.array([TIME], pa.timestamp("us", "UTC"))})
    pq.write_table(plain, folder / "0.parquet")
    os.utime(folder / "0.parquet", (1_000_000_000, 1_000_000_000))
    ks, times = pa.array([2, 3], pa.int32()), pa.array([TIME.replace(tzinfo=None), None], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": times, "k": ks, column: ["null", "no time"]}), folder / "1.parquet")
    (folder / "half.parquet").write_bytes((folder / "0.parquet").read_bytes()[:-9])
    (folder / "nothing.parquet").touch()
    (folder / "x.parquet").mkdir()
    pq.write_table(plain, folder / "x.parquet" / "2.parquet")
    pq.write_table(plain, folder / "_unfinished.parquet")


def test_every_reader_reads_the_same_and_tells_what_it_does_not_read(tmp_path: Path) -> None:
    for name in ("lone_csv", "lone_json", "lone_parquet", "parts", "two_csv", "two_parquet"):
        (tmp_path / name).mkdir()
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "lone_csv" / "0.csv").write_text(csv("c"))
    (tmp_path / "two_csv" / "0.csv").write_text(csv("two"))
    (tmp_path / "parts" / "0.csv").write_text(csv("part"))
    lines = ['"j": "a \\"b\\" \\\\", "k": 1', '"j": "NA", "k": "x"', '"j": "null", "k": 2']
    (tmp_path / "lone_json" / "0.json").write_text(
        "".join(f'{{{line}, "at": "{AT}"}}\n' for line in lines) + '{"j": "no time"}\n'
    )
    parquet(tmp_path / "lone_parquet", "p")
    parquet(tmp_path / "two_parquet", "two")
    first, second = (1, 'a "b" \\'), (2, "null")
    with start(tmp_path / "job.yaml") as running:
        running.engine.settle()
        found = {
            name: sorted((row["k"], row["text"]) for row in running.results(name).to_pylist())
            for name in running.job.queries
        }
        assert found == {name: [first, second] for name in found} | {"part1": [first], "part2": [second]}
        for name, column in (("lone_parquet", "p"), ("two_parquet", "two")):
            # It is older than all that have come.
            pq.write_table(
                pa.table({"k": [5], column: ["old"], "at": pa.array([TIME], pa.timestamp("us", "UTC"))}),
                tmp_path / name / ".old",
            )
            os.utime(tmp_path / name / ".old", (500_000_000, 500_000_000))
            (tmp_path / name / ".old").rename(tmp_path / name / "old.parquet")
        running.engine.settle()
        for name in ("lone_parquet", "two_parquet"):
            assert sorted(running.results(name).column("k").to_pylist()) == [1, 2, 5]
        told = sorted(map(short, running.rejected()))
    of_csv = [("0.csv", 3), ("0.csv", 4)]
    of_parquet = [("1.parquet", 2), ("half.parquet", 0), ("nothing.parquet", 0), ("x.parquet", 0)]
    expected = {"lone_csv": of_csv, "two_csv": of_csv, "part1 part2": of_csv}
    expected |= {"lone_parquet": of_parquet, "two_parquet": of_parquet, "lone_json": [("0.json", 2), ("0.json", 4)]}
    assert told == sorted((streams, *place) for streams, places in expected.items() for place in places)
    assert sorted(map(short, Reader(tmp_path / "job.store").rejected("part2"))) == [
        ("part1 part2", *place) for place in of_csv
    ]


def short(rejected: Rejected) -> tuple[str, str, int]:
    return " ".join(rejected.streams), Path(rejected.file).name, rejected.line or 0
