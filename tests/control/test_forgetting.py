"""What is over is forgotten: what runs costs the same, however much has come and gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.nodes import quiet_node

from towpath.api.reader import Reader
from towpath.control.act.engine import Engine
from towpath.control.act.memory import EVERY_S
from towpath.control.decide.requests import Request
from towpath.control.journal.journal import Journal
from towpath.errors import UnknownQueryError
from towpath.lang import parse
from towpath.store.layout import Store

from .world import CATALOG, SECOND, SQL, World, batch_done, submission

HOUR = 3_600 * SECOND
RETENTION = 24 * HOUR


class Job:
    """A job whose clocks are the test's."""

    def __init__(self, root: Path) -> None:
        self.now_us = 0
        self.store = Store(root)
        self.node: MagicMock = quiet_node()
        self.engine = self.open()

    def open(self) -> Engine:
        journal = Journal(self.store.journal, now_us=lambda: self.now_us)
        clocks: dict[str, Any] = {"retention_us": RETENTION, "clock": lambda: self.now_us / 1e6}
        return Engine(self.store, journal, {"a": self.node}, CATALOG, **clocks)

    def submit(self, name: str, kind: str = "filter", sink: dict[str, str] | None = None) -> None:
        self.engine.submit([Request(parse(SQL[kind], CATALOG, name), sink=sink)])

    def replace(self, name: str, version: int) -> None:
        sql = f"SELECT k FROM s WHERE v > {version}"
        self.engine.submit([Request(parse(sql, CATALOG, name))])

    def pass_time(self, us: int) -> None:
        self.now_us += max(us, int(EVERY_S * 1e6))
        self.engine.poll()

    def noted(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How many records each saving writes from now on."""
        found: list[int] = []
        save = Journal.save

        def counting(journal: Journal, records: object) -> None:
            written = list(records)  # type: ignore[call-overload]
            found.append(len(written))
            save(journal, written)

        monkeypatch.setattr(Journal, "save", counting)
        return found


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path / "store")
    yield job
    job.engine.close()


def size_of(job: Job) -> dict[str, int]:
    state = job.engine.controller.state
    return {kind: len(getattr(state, kind)) for kind in ("carriers", "fragments", "parts", "queries", "moves")}


def rows_of(job: Job) -> dict[str, int]:
    state = Journal(job.store.journal, read_only=True).load(ended=True)
    return {kind: len(getattr(state, kind)) for kind in ("carriers", "fragments", "parts", "queries", "moves")}


def test_after_a_thousand_replacements_everything_is_as_at_the_beginning(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.submit("stays", "other filter")
    job.replace("q", 0)
    job.pass_time(HOUR)
    noted = job.noted(monkeypatch)
    job.replace("q", 1)
    known, rows, first = size_of(job), rows_of(job), noted.copy()
    for version in range(2, 1_002):
        job.replace("q", version)
        if version % 20 == 0:
            job.pass_time(HOUR)
    job.pass_time(2 * RETENTION)
    noted.clear()
    job.replace("q", 1_002)
    assert size_of(job) == known
    assert rows_of(job) == rows
    assert noted == first, "what a submit writes"
    change = job.node.publish.call_args.args[3]
    assert (len(change.added), len(change.removed)) == (1, 1), "what a submit publishes"
    assert len(Journal(job.store.journal, read_only=True).history()) < 10
    assert max(job.engine.controller.state.fragments) > 1_000, "numbers are not given twice"


def test_a_withdrawn_query_can_be_read_until_its_results_are_too_old(job: Job) -> None:
    job.submit("q")
    job.engine.withdraw("q")
    job.pass_time(RETENTION - HOUR)
    assert not job.engine.controller.state.queries, "nothing is to be decided about it"
    reader = Reader(job.store.root)
    assert [q.name for q in reader.queries()] == ["q"]
    job.pass_time(2 * HOUR)
    assert reader.queries() == []
    with pytest.raises(UnknownQueryError):
        reader.parts("q")


def test_a_query_is_kept_until_its_sink_has_everything(job: Job) -> None:
    job.submit("q", sink={"type": "console"})
    job.engine.withdraw("q")
    job.pass_time(2 * RETENTION)
    assert rows_of(job)["queries"] == 1
    job.engine.memory.fed([1])
    job.pass_time(HOUR)
    assert rows_of(job)["queries"] == 0


def test_a_fragment_that_others_use_outlives_a_query(job: Job) -> None:
    job.submit("q")
    job.submit("twin", "same filter")
    job.engine.withdraw("q")
    job.pass_time(2 * RETENTION)
    assert rows_of(job) == {"carriers": 1, "fragments": 1, "parts": 1, "queries": 1, "moves": 0}


def test_a_fragment_that_owes_windows_is_known_until_they_are_closed(job: Job) -> None:
    job.submit("w", "window")
    job.node.events.return_value = [batch_done("c0", 0, 1, [10 * SECOND], 0, first=True)]
    job.engine.poll()
    job.node.events.return_value = []
    job.engine.withdraw("w")
    job.node.events.return_value = [batch_done("c0", 1, 2, [14 * SECOND], 7 * SECOND)]
    job.engine.poll()
    job.node.events.return_value = []
    job.pass_time(HOUR)
    assert size_of(job) == {"carriers": 1, "fragments": 1, "parts": 0, "queries": 0, "moves": 0}
    job.node.events.return_value = [batch_done("c0", 2, 2, [40 * SECOND], 30 * SECOND)]
    job.engine.poll()
    job.node.events.return_value = []
    job.pass_time(HOUR)
    assert size_of(job)["fragments"] == 0


def test_a_carrier_without_readable_results_is_retired_with_its_folder(job: Job) -> None:
    job.submit("q")
    job.submit("w", "window")
    folder = job.store.results("c0")
    (folder / "e0").mkdir(parents=True)
    job.engine.withdraw("q")
    job.pass_time(HOUR)
    job.pass_time(HOUR)
    assert job.node.stop.called
    assert folder.exists(), "its results can be read"
    job.pass_time(RETENTION)
    assert not folder.exists()
    assert set(job.engine.controller.state.carriers) == {"c1"}
    job.node.events.return_value = [batch_done("c0", 7, 1, [SECOND])]
    job.engine.poll()  # a word from a node that did not know
    job.node.events.return_value = []
    job.submit("again")
    assert set(job.engine.controller.state.carriers) == {"c1", "c2"}, "nor are the numbers of carriers given twice"


def test_a_start_finds_what_is_there_and_no_number_is_given_twice(job: Job) -> None:
    job.submit("q")
    job.submit("r", "other filter")
    job.engine.withdraw("r")
    job.pass_time(2 * RETENTION)
    job.engine.close()
    job.engine = job.open()
    assert size_of(job) == {"carriers": 1, "fragments": 1, "parts": 1, "queries": 1, "moves": 0}
    job.submit("s", "other filter")
    assert set(job.engine.controller.state.fragments) == {1, 3}
    assert set(job.engine.controller.state.queries) == {1, 3}


def test_what_a_killed_controller_had_yet_to_forget_is_forgotten_at_the_next_start(job: Job, tmp_path: Path) -> None:
    world = World(tmp_path / "other" / "journal.sqlite", ("a", "b"))
    world.submit(submission("f", "filter"))
    world.batch("c0", [10 * SECOND])
    world.move("f", "b")
    (move,) = world.controller.known.moves.values()
    world.abandon(move.id)
    world.journal.close()
    store = Store(tmp_path / "other")
    with Engine(store, Journal(store.journal), {"a": quiet_node()}, CATALOG) as engine:
        engine.poll()
        assert set(engine.controller.state.fragments) == {1}
    left = Journal(store.journal, read_only=True).load(ended=True)
    assert (set(left.fragments), left.moves, set(left.carriers)) == ({1}, {}, {"c0"})


def test_without_a_retention_nothing_readable_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with Engine(store, Journal(store.journal), {"a": quiet_node()}, CATALOG) as engine:
        engine.submit([Request(parse(SQL["filter"], CATALOG, "q"))])
        engine.withdraw("q")
        engine.poll()
        assert not engine.controller.state.queries
    assert [q.name for q in Reader(tmp_path).queries()] == ["q"]
