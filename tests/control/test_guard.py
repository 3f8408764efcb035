"""Whatever fails in a part of the loop, it is recorded and the loop goes on."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.nodes import quiet_node

from towpath import job as jobs
from towpath.api.running import Towpath
from towpath.config.settings import NOW
from towpath.control.act.engine import PATIENCE, Engine
from towpath.control.act.folder import QueryFolder
from towpath.control.act.guard import Guard
from towpath.control.act.housekeeping import Housekeeper
from towpath.control.act.linkfiles import LinkFiles
from towpath.control.act.self_monitor import SelfMonitor
from towpath.control.decide.controller import Controller
from towpath.control.decide.requests import Request
from towpath.control.journal.journal import Journal
from towpath.control.state.history import EventKind
from towpath.errors import RuntimeFailure, SinkError, StoreError
from towpath.lang import parse
from towpath.runtime.carriers import BatchDone
from towpath.store.layout import Store

from .world import CATALOG, SECOND, SQL, batch_done


def boom(*_: object, **__: object) -> Any:
    raise KeyError("a fault")


def test_a_failure_is_reported_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    record = MagicMock()
    guard = Guard(record)
    for _ in range(3):
        with guard.around("a part"):
            boom()
    assert guard.troubles == ["a part: KeyError: 'a fault'"]
    assert [record.exc_info is not None for record in caplog.records] == [True]
    record.assert_called_once_with(
        EventKind.FAULT, "a part failed, and is tried again: KeyError: 'a fault'; the log has the details"
    )
    with guard.around("a part"):
        pass
    assert guard.troubles == []


@pytest.mark.parametrize("error", [StoreError("the disk is gone"), RuntimeFailure("Spark is gone")])
def test_what_a_job_cannot_go_on_without_ends_it(error: Exception) -> None:
    with pytest.raises(type(error)), Guard(MagicMock()).around("a part"):
        raise error


def test_what_fails_for_good_ends_the_job_where_nothing_would_go_on() -> None:
    guard = Guard(MagicMock())
    with pytest.raises(RuntimeFailure, match="a part failed 3 times in a row: KeyError"):
        for _ in range(3):
            with guard.around("a part", at_most=3):
                boom()


@pytest.fixture
def node() -> MagicMock:
    return quiet_node()


@pytest.fixture
def running(tmp_path: Path, node: MagicMock) -> Any:
    (tmp_path / "queries").mkdir()
    (tmp_path / "job.yaml").write_text(
        "streams: {s: {source: {type: rate, rate: 1}}}\nnodes: {a: {type: embedded, cores: 1}}\n"
        "queries_folder: ./queries\n"
    )
    job = jobs.load(tmp_path / "job.yaml")
    store = Store(job.store)
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(store, Journal(store.journal), {"a": node}, CATALOG))
        engine.submit([Request(parse(SQL["filter"], CATALOG, "f"))])
        loop = MagicMock()
        yield Towpath(job, stack, engine, Housekeeper(store, None), SelfMonitor(tmp_path), loop)


def history(running: Towpath) -> list[str]:
    journal = Journal(Store(running.job.store).journal, read_only=True)
    try:
        return [entry.text for entry in journal.history() if entry.kind is EventKind.FAULT]
    finally:
        journal.close()


@pytest.mark.parametrize(
    ("owner", "method", "part"),
    [
        (Engine, "_look_after_nodes", "looking after nodes"),
        (Engine, "_go_on", "moving what is to move"),
        (Engine, "_tick_idle", "moving the event time of silent streams"),
        (QueryFolder, "changes", "looking into the queries folder"),
        (Towpath, "_record_news", "writing down what happened to the controller"),
    ],
)
def test_a_part_of_the_loop_fails_and_the_others_go_on(
    running: Towpath, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, part: str
) -> None:
    watch = MagicMock()
    with monkeypatch.context() as faulty:
        faulty.setattr(owner, method, boom)
        running.poll(watch)
    assert watch.called
    assert [text.partition(" failed")[0] for text in history(running)] == [part]
    assert running.engine.guard.troubles == [f"{part}: KeyError: 'a fault'"]
    running.poll()
    assert running.engine.guard.troubles == []


def test_policy_and_view_may_fail(running: Towpath) -> None:
    assert running.loop is not None
    running.loop.step.side_effect = boom  # type: ignore[attr-defined]
    running.poll(boom)
    assert {t.partition(":")[0] for t in running.engine.guard.troubles} == {"the policy", "showing what the job does"}


def test_what_the_housekeeper_cannot_do_is_reported_once(
    running: Towpath, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keeper, part = running.housekeeper, "feeding sinks and compacting results"
    for error in (*[SinkError("query q: the broker does not answer")] * 2, None, KeyError("a fault")):
        with monkeypatch.context() as faulty:
            faulty.setattr(keeper, "_fed", MagicMock(side_effect=error, return_value=[]))
            keeper.round()
        running.poll()
        why = {SinkError: "query q: the broker does not answer", KeyError: "KeyError: 'a fault'"}.get(type(error))
        assert running.engine.guard.troubles == ([] if why is None else [f"{part}: {why}"])
    assert len(history(running)) == 2
    logged = [record for record in caplog.records if record.name == "towpath.control.act.housekeeping"]
    assert [record.exc_info is not None for record in logged] == [False, True], "a trace of what nobody thought of"


def test_a_report_that_cannot_be_taken_in_leaves_the_carrier_in_doubt(
    running: Towpath, node: MagicMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = running.engine
    (carrier,) = engine.carriers
    node.events.return_value = [batch_done(carrier.id, 0, 1, [SECOND], first=True)]
    engine.poll()
    observe = Controller._observe

    def half_way(self: Controller, record: Any, event: BatchDone) -> None:
        observe(self, record, event)
        boom()

    node.events.return_value = [batch_done(carrier.id, 1, 1, [9 * SECOND])]
    with monkeypatch.context() as faulty:
        faulty.setattr(Controller, "_observe", half_way)
        engine.poll()
    assert engine.carriers[0].last == 0, "what was decided half-way is forgotten"
    engine.submit([Request(parse(SQL["other filter"], CATALOG, "g"), NOW)])
    version = engine.carriers[0].version
    node.events.return_value = [batch_done(carrier.id, 2, version, [10 * SECOND])]
    engine.poll()
    (part,) = engine.answers.validity("g")
    # The batch that was missed may have had anything up to newest + delay (3 s) of the next one.
    assert (part.settled, part.from_us) == (True, 13 * SECOND + 1000)


def test_a_node_that_fails_to_answer_again_and_again_ends_the_job(running: Towpath, node: MagicMock) -> None:
    node.events.side_effect = boom
    for _ in range(PATIENCE - 1):
        running.poll()
    with pytest.raises(RuntimeFailure, match="asking node a for news failed"):
        running.poll()
    node.events.side_effect = None


def test_what_cannot_be_done_is_done_later_and_in_order(running: Towpath, node: MagicMock) -> None:
    node.reset_mock()
    node.publish.side_effect = OSError("no space left")
    running.engine.submit([Request(parse(SQL["window"], CATALOG, "w"))])
    assert not node.start.called, "a carrier is started when it has its table"
    node.publish.side_effect = None
    running.poll()
    assert node.start.call_count == 1
    assert running.engine.guard.troubles == []


def test_nothing_is_done_before_those_who_read_links_know(
    running: Towpath, node: MagicMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.reset_mock()
    with monkeypatch.context() as faulty:
        faulty.setattr(LinkFiles, "write", MagicMock(side_effect=OSError("no space left")))
        running.engine.submit([Request(parse(SQL["window"], CATALOG, "w"))])
        running.poll()
    assert not node.publish.called
    assert running.engine.guard.troubles == ["writing who makes derived streams: OSError: no space left"]
    running.poll()
    assert node.publish.called and node.start.called and running.engine.guard.troubles == []


def test_a_journal_that_cannot_be_read_any_more_ends_the_job(running: Towpath, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was decided half-way can then not be forgotten."""
    with monkeypatch.context() as faulty:
        faulty.setattr(Controller, "leaving", boom)
        faulty.setattr(Engine, "_tick_idle", lambda self: None)
        faulty.setattr(Controller, "changed", {1: MagicMock()})
        faulty.setattr(Journal, "_load", MagicMock(side_effect=sqlite3.DatabaseError("malformed")))
        with pytest.raises(StoreError, match="cannot be read: malformed"):
            running.engine._go_on()


def test_a_file_that_breaks_something_does_not_keep_others_out(
    running: Towpath, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def parse_or_break(sql: str, catalog: Any, name: str, views: Any) -> Any:
        return boom() if name == "bad" else parse(sql, CATALOG, name)

    monkeypatch.setattr("towpath.api.running.parse", parse_or_break)
    folder = running.job.queries_folder
    assert folder is not None
    (folder / "bad.sql").write_text("SELECT k FROM s")
    (folder / "good.sql").write_text("SELECT k FROM s")
    (folder / "typo.sql").write_text("SELECT kk FROM s")
    with caplog.at_level(logging.ERROR):
        running.poll()
    assert set(running.engine.controller.queries.running) == {"f", "good"}
    assert history(running) == [
        "taking in the query of bad.sql failed, and is tried again: KeyError: 'a fault'; the log has the details"
    ]
    (refused,) = running.refused
    assert "typo.sql, line 1, column 8" in str(refused)
