"""A decision is written down and done as a whole: one that fails half-way leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from tests.nodes import quiet_node

from towpath.config.settings import BEGINNING, NOW
from towpath.control.act.engine import Engine
from towpath.control.decide.moves import Moves
from towpath.control.decide.queries import Queries
from towpath.control.decide.requests import Request
from towpath.control.journal.journal import Journal
from towpath.control.state.records import QueryRecord
from towpath.errors import StoreError
from towpath.lang import parse
from towpath.plan import CUT, WHOLE
from towpath.store.layout import Store

from .world import CATALOG, SECOND, SQL, batch_done


def request(name: str, kind: str, fragments: str = WHOLE) -> Request:
    return Request(parse(SQL[kind], CATALOG, name), NOW, fragments=fragments)


@pytest.fixture
def nodes() -> dict[str, MagicMock]:
    return {name: quiet_node() for name in ("a", "b")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def engine(store: Store, nodes: dict[str, MagicMock]) -> Iterator[Engine]:
    with Engine(store, Journal(store.journal), nodes, CATALOG) as engine:
        engine.submit([replace(request("f", "filter"), start=BEGINNING)])
        yield engine


def fails_at(name: str, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Something goes wrong at the end of taking in the query of that name; returns what ends that."""
    note = Queries._note_submitted

    def failing(queries: Queries, query: QueryRecord) -> None:
        if query.name == name:
            raise error
        note(queries, query)

    monkeypatch.setattr(Queries, "_note_submitted", failing)
    return lambda: monkeypatch.setattr(Queries, "_note_submitted", note)


def assert_written(engine: Engine, store: Store) -> None:
    """What the controller knows is what the journal says, also after the next poll."""
    engine.poll()
    journal = Journal(store.journal, read_only=True)
    assert journal.load() == engine.controller.state
    journal.close()


@pytest.mark.parametrize("error", [AssertionError("a fault"), KeyboardInterrupt()])
def test_queries_that_come_together_come_in_as_one(
    engine: Engine, store: Store, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    mended = fails_at("w", error, monkeypatch)
    with pytest.raises(type(error)):
        engine.submit([request("j", "join window", CUT), request("w", "window")])
    assert set(engine.controller.queries.running) == {"f"}
    assert_written(engine, store)
    mended()
    engine.submit([request("j", "join window", CUT), request("w", "window")])
    assert {"f", "j", "w"} < set(engine.controller.queries.running), "and the link that j reads"
    assert_written(engine, store)


def test_a_query_goes_on_when_its_new_version_fails(
    engine: Engine, store: Store, nodes: dict[str, MagicMock], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes["a"].reset_mock()
    mended = fails_at("f", AssertionError("a fault"), monkeypatch)
    with pytest.raises(AssertionError):
        engine.submit([request("f", "other filter")])
    mended()
    query = engine.controller.queries.running.get("f")
    assert query is not None and query.sql == parse(SQL["filter"], CATALOG, "f").sql
    assert_written(engine, store)
    assert not nodes["a"].publish.called


def test_carriers_that_run_are_not_started_again(
    engine: Engine, nodes: dict[str, MagicMock], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes["a"].reset_mock()
    mended = fails_at("g", AssertionError("a fault"), monkeypatch)
    with pytest.raises(AssertionError):
        engine.submit([request("g", "other filter")])
    mended()
    engine.submit([request("g", "other filter")])
    (published,) = nodes["a"].publish.call_args_list
    change = published.args[3]
    assert change.since is None and len(change.added) == 2, "all rows: of f and of g"
    assert not nodes["a"].start.called


def test_a_table_gets_what_changed_and_anew_after_a_failure(engine: Engine, nodes: dict[str, MagicMock]) -> None:
    engine.submit([request("g", "other filter")])
    nodes["a"].publish.side_effect = OSError("no space left")
    engine.withdraw("f")
    nodes["a"].publish.side_effect = None
    engine.poll()
    _, added, failed, *_, again, removed = [call.args[3] for call in nodes["a"].publish.call_args_list]
    assert (added.since, len(added.added), added.removed) == (1, 1, [])
    assert (failed.since, failed.added, failed.removed) == (2, [], [])
    assert (again.since, [row["_fragment"] for row in again.added]) == (None, [1, 2])
    assert (removed.since, removed.added, removed.removed) == (3, [], [1]), "the carrier is at rest: nothing was read"


def test_what_cannot_be_written_down_is_not_begun(
    engine: Engine, store: Store, nodes: dict[str, MagicMock], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes["a"].reset_mock()
    with monkeypatch.context() as full, pytest.raises(StoreError):
        full.setattr(Journal, "save", MagicMock(side_effect=StoreError("the disk is full")))
        engine.submit([request("g", "other filter")])
    assert engine.controller.queries.running.get("g") is None
    assert_written(engine, store)
    assert not nodes["a"].publish.called
    engine.submit([request("g", "other filter")])
    assert nodes["a"].publish.called


def test_what_was_written_down_and_could_not_be_done_is_done_with_the_next_poll(
    engine: Engine, store: Store, nodes: dict[str, MagicMock]
) -> None:
    nodes["a"].reset_mock()
    nodes["a"].publish.side_effect = StoreError("the disk is full")
    with pytest.raises(StoreError):
        engine.submit([request("w", "window")])
    with pytest.raises(StoreError):
        engine.poll()
    assert not nodes["a"].start.called, "a carrier is started when it has its table"
    nodes["a"].publish.side_effect = None
    assert_written(engine, store)
    assert nodes["a"].start.call_count == 1
    engine.poll()
    assert nodes["a"].start.call_count == 1


def test_all_fragments_of_a_query_set_out_or_none(
    engine: Engine, store: Store, nodes: dict[str, MagicMock], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.submit([request("u", "union")])
    (carrier,) = engine.carriers
    nodes["a"].events.side_effect = [[batch_done(carrier.id, 0, carrier.version, [SECOND], first=True)]]
    engine.poll()
    nodes["a"].events.side_effect = None
    begin, asked = Moves.begin, MagicMock(side_effect=[None, AssertionError("a fault")])

    def failing(*args: object) -> object:
        asked()
        return begin(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as faulty, pytest.raises(AssertionError):
        faulty.setattr(Moves, "begin", failing)
        engine.move("u", "b")
    assert engine.controller.state.moves == {}
    assert_written(engine, store)
    assert engine.move("u", "b") == [1, 2]
