"""kill -9 at any moment, start again: nothing is lost and nothing is doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath import job as jobs
from towpath.api.running import start
from towpath.lang import parse
from towpath.verify import differences
from towpath.verify.answer import answer

pytestmark = pytest.mark.spark

BEGINNING_US = 1_767_225_600_000_000
STREAMS = ("north", "south")
JOB = """
trigger: 200 ms
nodes:
  local: {type: embedded, cores: 2, memory: 2g, spark: {spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1"}}
streams:
  north:
    source: {type: files, path: ./north, format: parquet}
    schema: {car: bigint, mph: double, at: timestamp}
    time: at
    delay: 1 second
    idle_after: 0
  south:
    source: {type: files, path: ./south, format: parquet}
    schema: {car: bigint, mph: double, at: timestamp}
    time: at
    delay: 1 second
    idle_after: 0
queries_folder: ./queries
"""
QUERIES = {
    "fast": "SELECT car, mph FROM north WHERE mph > 60",
    "both": "SELECT car FROM north WHERE mph < 20 UNION ALL SELECT car FROM south WHERE mph < 20",
    "rollup": "SELECT car, avg(mph) AS a, count(*) AS n, window_end FROM south [RANGE 3 SECONDS] "
    "GROUP BY car HAVING count(*) > 1",
    "pairs": "SELECT n.car, n.mph, s.mph AS then FROM north [RANGE 2 SECONDS] AS n, south [RANGE 1 SECOND] AS s "
    "WHERE n.car = s.car AND n.mph > 30",
}
LATER = {
    "later": "SELECT car, mph FROM north WHERE mph > 75",
    "later_rollup": "SELECT car, avg(mph) AS a, count(*) AS n FROM south [RANGE 2 SECONDS] WHERE mph > 10 GROUP BY car",
}
RUNNER = "import sys, towpath; towpath.start(sys.argv[1]).run()"


class Producer:
    """Writes a second of both streams at a time, with disorder inside the allowed delay."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = np.random.default_rng(seed)
        self._second = 0
        for name in STREAMS:
            (folder / name).mkdir()

    def second(self) -> None:
        for name in STREAMS:
            times = self._second * 1_000_000 + self._random.integers(-900_000, 1_000_000, 40)
            table = pa.table(
                {
                    "car": pa.array(self._random.integers(0, 8, 40)),
                    "mph": pa.array(self._random.uniform(0, 90, 40)),
                    "at": pa.array(BEGINNING_US + np.maximum(times, 0), pa.timestamp("us", tz="UTC")),
                }
            )
            scratch = self._folder / name / ".scratch"
            pq.write_table(table, scratch)
            scratch.rename(self._folder / name / f"{self._second:05}.parquet")
        self._second += 1


def write_job(folder: Path) -> Path:
    (folder / "queries").mkdir()
    for name, sql in QUERIES.items():
        (folder / "queries" / f"{name}.sql").write_text(sql)
    job = folder / "job.yaml"
    job.write_text(JOB)
    return job


def run_and_kill(job: Path, producer: Producer, seconds: float) -> None:
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(job)], start_new_session=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        producer.second()
        time.sleep(0.4)
        assert runner.poll() is None, "the runner stopped by itself"
    # The JVM and its Python workers too: the whole machine goes.
    os.killpg(runner.pid, signal.SIGKILL)
    runner.wait()


def compare_all(job: Path, folder: Path) -> None:
    loaded = jobs.load(job)
    database = duckdb.connect()
    for name in STREAMS:
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder}/{name}/*.parquet')")
    with start(loaded) as running:
        running.drain()
        for name, sql in (QUERIES | LATER).items():
            query = parse(sql, loaded.catalog, name)
            validity = running.engine.answers.validity(name)
            actual = running.results(name)
            difference = differences(answer(database, query, loaded.catalog, validity), actual)
            assert difference is None, f"{name} {validity}\n{difference}"
            assert actual.num_rows, f"{name} answered nothing, so this shows nothing"
        assert sum(sum(c.late_rows.values()) for c in running.engine.carriers) == 0


def kill_rounds(folder: Path, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    job = write_job(folder)
    producer = Producer(folder, seed)
    for round_ in range(rounds):
        if round_ == 1:
            for name, sql in LATER.items():
                (folder / "queries" / f"{name}.sql").write_text(sql)
        run_and_kill(job, producer, rng.uniform(10, 25))
    for _ in range(5):
        producer.second()
    compare_all(job, folder)


@pytest.mark.live
def test_killed_twice(tmp_path: Path) -> None:
    kill_rounds(tmp_path, seed=1, rounds=2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_killed_often(tmp_path: Path, seed: int) -> None:
    kill_rounds(tmp_path, seed, rounds=4)
