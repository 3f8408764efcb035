"""Sinks are fed and logs tidied beside a job, from what the journal and the results log say."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.control.answers import read_part
from towpath.control.housekeeping import Housekeeper
from towpath.errors import SinkError
from towpath.results import MemorySink, read
from towpath.results import kafka as sinks
from towpath.store import Store

from .world import SECOND, World, submission

TIME = pa.timestamp("us", "UTC")
BATCHES = 70  # compaction merges 32


class Job:
    """A store with a query in it that has a sink, and results as Spark writes them."""

    def __init__(self, root: Path, sink: dict[str, str]) -> None:
        self.store = Store(root)
        self.world = World(self.store.journal)
        self.world.submit(replace(submission("q", "filter"), sink=sink), submission("plain", "other filter"))

    def write_batch(self, number: int, fragment: int = 1) -> None:
        folder = self.store.results("c0") / f"batch={number}"
        folder.mkdir(parents=True)
        times = pa.array([number * SECOND], TIME)
        rows = {"_fragment": pa.array([fragment], pa.int32()), "_time": times, "_born": times, "c_i0_k": [number]}
        pq.write_table(pa.table(rows), folder / "part-0.parquet")
        (folder / "_SUCCESS").touch()

    def results(self, name: str) -> list[int]:
        query = self.world.query(name)
        found = self.world.journal.parts(query.id)
        return read([read_part(self.store, part, carrier) for part, carrier in found]).column("k").to_pylist()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "store", {"type": "parquet", "path": str(tmp_path / "out")})


def sunk(tmp_path: Path) -> list[int]:
    files = sorted((tmp_path / "out").glob("*.parquet"))
    return [k for file in files for k in pq.read_table(file).column("k").to_pylist()]


def test_a_sink_gets_every_row_once(job: Job, tmp_path: Path) -> None:
    job.write_batch(0)
    job.write_batch(1, fragment=2)
    first = Housekeeper(job.store, None)
    first.feed_sinks()
    first.feed_sinks()
    job.write_batch(2)
    Housekeeper(job.store, None).feed_sinks()
    assert sunk(tmp_path) == [0, 2]


def test_a_replaced_query_feeds_on_where_its_forerunner_ended(job: Job, tmp_path: Path) -> None:
    job.write_batch(0)
    Housekeeper(job.store, None).feed_sinks()
    job.world.withdraw("q")
    job.world.submit(replace(submission("q", "same filter"), sink=job.world.query("q").sink))
    (part,) = job.world.parts("q")
    assert part.fragment == 3
    Housekeeper(job.store, None).feed_sinks()
    assert sunk(tmp_path) == [0]


def test_a_memory_sink_starts_again_from_the_log(tmp_path: Path) -> None:
    job = Job(tmp_path, {"type": "memory"})
    job.write_batch(0)
    for _ in range(2):
        housekeeper = Housekeeper(job.store, None)
        housekeeper.feed_sinks()
        sink = housekeeper.sink("q")
        assert isinstance(sink, MemorySink)
        assert sink.table().column("k").to_pylist() == [0]


def test_a_sink_that_fails_does_not_keep_others_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "PATIENCE_S", 0.2)
    job = Job(tmp_path, {"type": "kafka", "servers": "127.0.0.1:1", "topic": "t"})
    job.world.submit(replace(submission("copy", "filter"), sink={"type": "parquet", "path": str(tmp_path / "out")}))
    job.write_batch(0)
    with pytest.raises(SinkError, match=r"^query q: topic t at 127\.0\.0\.1:1 did not take results"):
        Housekeeper(job.store, None).feed_sinks()
    assert sunk(tmp_path) == [0]


def test_tidying_changes_no_answer(job: Job, tmp_path: Path) -> None:
    for number in range(BATCHES):
        job.write_batch(number, fragment=1 + number % 2)
    before = job.results("q"), job.results("plain")
    housekeeper = Housekeeper(job.store, None)
    housekeeper.tidy()
    assert len(list(job.store.results("c0").glob("batch=*"))) < BATCHES
    assert (job.results("q"), job.results("plain")) == before
    housekeeper.feed_sinks()
    assert sunk(tmp_path) == before[0]


def test_what_a_sink_has_not_got_outlives_the_retention(job: Job, tmp_path: Path) -> None:
    for number in range(BATCHES):
        job.write_batch(number)
    housekeeper = Housekeeper(job.store, retention_us=0)
    housekeeper.tidy()
    assert job.results("q") == list(range(BATCHES))
    housekeeper.feed_sinks()
    housekeeper.tidy()
    assert len(job.results("q")) < BATCHES
    assert sunk(tmp_path) == list(range(BATCHES))


def test_it_works_by_itself_until_it_is_left(job: Job, tmp_path: Path) -> None:
    job.write_batch(0)
    with Housekeeper(job.store, None) as housekeeper:
        deadline = time.monotonic() + 60
        while not sunk(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert sunk(tmp_path) == [0]
    assert not housekeeper._thread.is_alive()
