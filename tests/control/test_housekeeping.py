"""Sinks are fed and logs tidied beside a job, from what the journal and the results log say."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from towpath.control.act import housekeeping
from towpath.control.act.housekeeping import GRACE_US, Housekeeper
from towpath.control.journal.answers import read_parts
from towpath.errors import SinkError
from towpath.results import KafkaSink, Look, MemorySink, SinkFeeder, SinkStep, log, read
from towpath.results.sinks import kafka as sinks
from towpath.results.sinks.base import SinkWaits
from towpath.results.sinks.memory import MemorySinkDef
from towpath.store.layout import Store

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
        return read(read_parts(self.world.journal, self.store, self.world.query(name))).column("k").to_pylist()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "store", {"type": "parquet", "path": str(tmp_path / "out")})


def sunk(tmp_path: Path, folder: str = "out") -> list[int]:
    files = sorted((tmp_path / folder).glob("*.parquet"))
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


def replaced(job: Job, kind: str, sink: dict[str, str] | None) -> None:
    """The query is replaced between the batches 1 and 2; the fragment of the new version is number 3."""
    for number in (0, 1):
        job.write_batch(number)
    job.world.batch("c0", [0, SECOND])
    Housekeeper(job.store, None).feed_sinks()
    job.world.submit(replace(submission("q", kind), sink=sink))
    job.write_batch(2)
    job.write_batch(3, fragment=3)
    for number in (2, 3, 4):
        job.world.batch("c0", [number * SECOND])
    for number in (4, 5):
        job.write_batch(number, fragment=3)
    Housekeeper(job.store, None).feed_sinks()


def test_both_versions_of_a_replaced_query_feed_its_sink(job: Job, tmp_path: Path) -> None:
    replaced(job, "narrow filter", job.world.query("q").sink)
    old, new = (part for part in job.world.controller.state.parts.values() if part.query in (1, 3))
    assert (old.ceded_us, new.from_us) == (2 * SECOND + 1, 2 * SECOND + 1)
    parts = read_parts(job.world.journal, job.store, job.world.query("q"))
    assert [part.select for part in parts] == [0, 1], "versions may group by other keys, so they are no copies"
    assert sunk(tmp_path) == job.results("q") == [0, 1, 2, 3, 4, 5]


def test_a_new_version_with_another_sink_brings_it_all_results(job: Job, tmp_path: Path) -> None:
    replaced(job, "narrow filter", {"type": "parquet", "path": str(tmp_path / "other")})
    assert sunk(tmp_path) == [0, 1, 2], "all that the old version answers"
    assert sunk(tmp_path, "other") == job.results("q") == [0, 1, 2, 3, 4, 5]


def test_another_sink_gets_all_results_of_the_query_and_one_that_comes_back_goes_on(job: Job, tmp_path: Path) -> None:
    first = job.world.query("q").sink
    for number, sink in enumerate([first, {"type": "parquet", "path": str(tmp_path / "other")}, None, first]):
        job.world.controller.queries.change_sink("q", sink)
        job.world.save()
        job.write_batch(number)
        Housekeeper(job.store, None).feed_sinks()
    assert sunk(tmp_path) == [0, 1, 2, 3]
    assert sunk(tmp_path, "other") == [0, 1]


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


@pytest.mark.parametrize("restarted", [False, True])
def test_a_cluster_that_gets_other_addresses_or_passwords_gets_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    written: list[tuple[str, int]] = []

    class Cluster:
        def __init__(self, servers: str) -> None:
            self.servers = servers

        def write(self, table: pa.Table, step: SinkStep) -> None:
            written.extend((self.servers, k) for k in table["k"].to_pylist())

    monkeypatch.setattr(sinks.KafkaSinkDef, "open", lambda record: Cluster(record["servers"]))
    job = Job(tmp_path, {"type": "kafka", "servers": "old:1", "topic": "t"})
    housekeeper = Housekeeper(job.store, None)
    job.write_batch(0)
    housekeeper.feed_sinks()
    sink = {"type": "kafka", "servers": "new:1", "topic": "t", "kafka.sasl.password": "${NEW}"}
    job.world.controller.queries.change_sink("q", sink)
    job.world.save()
    job.write_batch(1)
    (Housekeeper(job.store, None) if restarted else housekeeper).feed_sinks()
    assert written == [("old:1", 0), ("new:1", 1)]


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


def test_retention_waits_for_the_slowest_sink(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(sink: MemorySink, table: pa.Table, step: SinkStep) -> None:
        raise SinkError("away")

    monkeypatch.setattr(MemorySink, "write", refuse)
    job.world.submit(replace(submission("slow", "filter"), sink={"type": "memory"}))
    for number in range(BATCHES):
        job.write_batch(number)
    housekeeper = Housekeeper(job.store, retention_us=0)
    with pytest.raises(SinkError, match=r"^query slow: away$"):
        housekeeper.feed_sinks()
    assert sunk(tmp_path) == list(range(BATCHES))
    housekeeper.tidy()
    assert job.results("slow") == list(range(BATCHES))


def test_the_last_round_brings_what_came_while_a_sink_was_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, write = threading.Event(), MemorySink.write

    def slowly(sink: MemorySink, table: pa.Table, step: SinkStep) -> None:
        assert go.wait(60)
        write(sink, table, step)

    monkeypatch.setattr(MemorySink, "write", slowly)
    monkeypatch.setattr(housekeeping, "FEED_S", 0.01)
    job = Job(tmp_path, {"type": "memory"})
    job.write_batch(0)
    housekeeper = Housekeeper(job.store, None)
    housekeeper.round()
    job.write_batch(1)
    go.set()
    housekeeper.feed_sinks()
    sink = housekeeper.sink("q")
    assert isinstance(sink, MemorySink)
    assert sink.table().column("k").to_pylist() == [0, 1]


def test_it_works_by_itself_until_it_is_left(job: Job, tmp_path: Path) -> None:
    job.write_batch(0)
    with Housekeeper(job.store, None) as housekeeper:
        deadline = time.monotonic() + 60
        while not sunk(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert sunk(tmp_path) == [0]
    assert not housekeeper._thread.is_alive()


def test_a_thousand_sinks_at_one_place_read_a_log_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(tmp_path / "store", {"type": "memory"})
    many = [replace(submission(f"q{n}", "filter"), sink={"type": "memory"}) for n in range(50)]
    job.world.submit(*many)
    for number in range(3):
        job.write_batch(number, fragment=1 + number % 2)
    listed: list[Path] = []
    segments = log.segments
    monkeypatch.setattr(log, "segments", lambda root: listed.append(root) or segments(root))
    opened: list[tuple[Path, ...]] = []
    load = Look._load
    monkeypatch.setattr(Look, "_load", lambda look, wanted, files: opened.append(files) or load(look, wanted, files))
    housekeeper = Housekeeper(job.store, None)
    housekeeper.feed_sinks()
    assert (len(listed), len(opened)) == (1, 1)
    sinks = [housekeeper.sink(f"q{n}") for n in range(50)]
    assert all(isinstance(sink, MemorySink) and sink.table().column("k").to_pylist() == [0, 2] for sink in sinks)


def test_who_has_nothing_new_is_not_visited(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_batch(0)
    housekeeper = Housekeeper(job.store, None)
    housekeeper.feed_sinks()
    fed = MagicMock()
    monkeypatch.setattr(SinkFeeder, "feed", fed)
    housekeeper.feed_sinks()
    assert not fed.called
    job.write_batch(1)
    housekeeper.feed_sinks()
    assert fed.called


def test_a_sink_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(tmp_path, {"type": "kafka", "servers": "nowhere:1", "topic": "t"})
    job.world.submit(replace(submission("copy", "filter"), sink={"type": "parquet", "path": str(tmp_path / "out")}))
    let_go = threading.Event()
    monkeypatch.setattr(KafkaSink, "write", lambda sink, table, step: let_go.wait(60))
    with Housekeeper(job.store, None):
        for number in range(2):
            job.write_batch(number)
            deadline = time.monotonic() + 60
            while len(sunk(tmp_path)) <= number and time.monotonic() < deadline:
                time.sleep(0.05)
        let_go.set()
    assert sunk(tmp_path) == [0, 1]


def test_the_sink_of_a_withdrawn_query_is_finished_and_forgotten(job: Job, tmp_path: Path) -> None:
    now = [time.time_ns() // 1000]
    housekeeper = Housekeeper(job.store, None, lambda: now[0])
    job.world.batch("c0", [60 * SECOND])
    job.write_batch(0)
    housekeeper.feed_sinks()
    job.world.withdraw("q")
    job.write_batch(1)
    now[0] += GRACE_US + SECOND
    for _ in range(2):
        housekeeper.feed_sinks()
    assert housekeeper.finished() == set(), "what is not complete may bring more"
    job.world.batch("c0", [70 * SECOND])
    job.write_batch(2, fragment=2)  # of others there is always something new
    housekeeper.feed_sinks()
    assert housekeeper.finished() == {1}
    assert sunk(tmp_path) == [0, 1]
    job.world.journal.archive.mark_fed(housekeeper.finished())
    housekeeper.tidy()
    assert job.store.sinks == []
    housekeeper.feed_sinks()
    assert housekeeper.finished() == set()
    assert sunk(tmp_path) == [0, 1]


def test_a_sink_gets_what_comes_a_while_after_its_query_has_left(job: Job, tmp_path: Path) -> None:
    now = [time.time_ns() // 1000]
    housekeeper = Housekeeper(job.store, None, lambda: now[0])
    job.world.batch("c0", [60 * SECOND])
    job.world.withdraw("q")
    job.world.batch("c0", [70 * SECOND])
    now[0] += GRACE_US - SECOND
    housekeeper.feed_sinks()
    assert housekeeper.finished() == set()
    job.write_batch(0)
    housekeeper.feed_sinks()
    assert sunk(tmp_path) == [0]
    now[0] = time.time_ns() // 1000 + GRACE_US + SECOND
    housekeeper.feed_sinks()
    assert housekeeper.finished() == {1}


def test_a_sink_waits_for_windows_that_are_not_closed(tmp_path: Path) -> None:
    job = Job(tmp_path / "store", {"type": "memory"})
    job.world.submit(replace(submission("w", "window"), sink={"type": "memory"}))
    job.world.batch("c1", [60 * SECOND])
    job.world.withdraw("w")
    housekeeper = Housekeeper(job.store, None, lambda: time.time_ns() // 1000 + 2 * GRACE_US)
    housekeeper.feed_sinks()
    assert housekeeper.finished() == set()
    job.world.batch("c1", [90 * SECOND])
    job.world.batch("c1", [90 * SECOND])
    housekeeper.feed_sinks()
    assert housekeeper.finished() == {3}


def test_who_waits_for_the_end_waits_for_sinks_that_take_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(MemorySink):
        visits = 0

        def write(self, table: pa.Table, step: SinkStep) -> None:
            self.visits += 1
            if self.visits % 3:
                raise SinkWaits(0.01)
            super().write(table, step)

    slow = Slow()
    monkeypatch.setattr(MemorySinkDef, "open", classmethod(lambda cls, record: slow))
    job = Job(tmp_path / "store", {"type": "memory"})
    job.write_batch(0)
    with Housekeeper(job.store, None) as housekeeper:
        housekeeper.feed_sinks()
    assert slow.table().column("k").to_pylist() == [0]
    assert slow.visits == 3
