"""Small jobs over folders of Parquet files, for tests on real Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

BEGINNING_US = 1_767_225_600_000_000
SECOND = 1_000_000

HEADER = """
trigger: 100 ms
nodes:
  local: {type: embedded, cores: 2, memory: 2g, spark: {spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1"}}
queries_folder: ./queries
streams:
"""
STREAM = """
  NAME:
    source: {type: files, path: ./NAME, format: parquet}
    schema: {k: bigint, x: double, at: timestamp}
    time: at
    delay: 1 second
    idle_after: IDLE
"""


def write_job(folder: Path, streams: Sequence[str], queries: Mapping[str, str], *, idle_after: str = "0") -> Path:
    (folder / "queries").mkdir()
    for name, sql in queries.items():
        write_query(folder, name, sql)
    for name in streams:
        (folder / name).mkdir()
    job = folder / "job.yaml"
    job.write_text(HEADER + "".join(STREAM.replace("NAME", n).replace("IDLE", idle_after) for n in streams))
    return job


def write_query(folder: Path, name: str, sql: str) -> None:
    scratch = folder / "queries" / f".{name}"
    scratch.write_text(sql)
    scratch.rename(folder / "queries" / f"{name}.sql")


def write_other_stream(folder: Path, job: Path, name: str, *, idle_after: str = "0") -> None:
    """One more stream, of another schema class: it has a column that nobody fills."""
    (folder / name).mkdir()
    text = STREAM.replace("NAME", name).replace("IDLE", idle_after).replace("k: bigint", "other: bigint, k: bigint")
    job.write_text(job.read_text() + text)


def arrive(folder: Path, stream: str, rows: Sequence[tuple[int, float, float]]) -> None:
    """Rows (key, value, seconds after the beginning) appear as one new file."""
    table = pa.table(
        {
            "k": pa.array([k for k, _, _ in rows], pa.int64()),
            "x": pa.array([x for _, x, _ in rows], pa.float64()),
            "at": pa.array([BEGINNING_US + int(t * SECOND) for _, _, t in rows], pa.timestamp("us", tz="UTC")),
        }
    )
    number = len(list((folder / stream).glob("*.parquet")))
    scratch = folder / stream / ".scratch"
    pq.write_table(table, scratch)
    scratch.rename(folder / stream / f"{number:05}.parquet")
