"""A backlog is read in bounded micro-batches, and answered as if it had come in time."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import towpath
from towpath.job import load
from towpath.runtime.carriers import BatchDone, CarrierEvent
from towpath.spark import inputs

SECOND = 1_000_000
FILES, ROWS = 12, 100
pytestmark = pytest.mark.spark

JOB = """
store: ./store
trigger: 100 ms
streams:
  lone:
    source: {type: files, path: ./lone, format: parquet}
    schema: {k: bigint, at: timestamp}
    time: at
  "pair{1..2}":
    source: {type: files, path: "./pair{n}", format: parquet}
    schema: {n: bigint, at: timestamp}
    time: at
queries:
  lone: SELECT count(*) AS n FROM lone [RANGE 10 SECONDS]
  pair: SELECT count(*) AS n FROM pair1 [RANGE 10 SECONDS] UNION ALL SELECT count(*) AS n FROM pair2 [RANGE 10 SECONDS]
nodes:
  local: {type: embedded, cores: 2, memory: 1g, spark: {spark.sql.shuffle.partitions: 1}}
"""


def test_a_backlog_comes_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, column in (("lone", "k"), ("pair1", "n"), ("pair2", "n")):
        (tmp_path / folder).mkdir()
        for number in range(FILES):
            times = pa.array([(number * ROWS + n) * SECOND // 10 for n in range(ROWS)], pa.timestamp("us", "UTC"))
            file = tmp_path / folder / f"{number:03}.parquet"
            pq.write_table(pa.table({column: list(range(ROWS)), "at": times}), file)
            os.utime(file, (number, number))  # Spark takes files in by their times
    (tmp_path / "job.yaml").write_text(JOB)
    monkeypatch.setattr(inputs, "MOST_FILES", 3)
    monkeypatch.setattr(inputs, "MOST_ROWS", 4 * ROWS)
    heard: list[CarrierEvent] = []
    with towpath.start(load(tmp_path / "job.yaml")) as running:
        running.drain(heard.extend)
        answers = {name: running.results(name).column("n").to_pylist() for name in ("lone", "pair")}
    read = {e.carrier: [d.rows for d in heard if isinstance(d, BatchDone) and d.carrier == e.carrier] for e in heard}
    assert sorted(sum(rows) for rows in read.values()) == [FILES * ROWS, 2 * FILES * ROWS]
    assert all(max(rows) <= 4 * ROWS + 4 for rows in read.values()), read
    windows = FILES * ROWS // 100
    assert answers == {"lone": [100] * windows, "pair": [100] * 2 * windows}
