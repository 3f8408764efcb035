from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from towpath.control.controller import Controller
from towpath.control.journal import FORMAT, Journal
from towpath.control.records import QueryRecord
from towpath.errors import StoreError

from .world import CATALOG, SECOND, World, submission


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "journal.sqlite"


def test_an_empty_journal_is_an_empty_state(path: Path) -> None:
    state = Journal(path).load()
    assert not (state.carriers or state.fragments or state.parts or state.queries)


def test_what_was_saved_is_loaded_as_it_was(path: Path) -> None:
    world = World(path)
    for kind in ("filter", "hopping", "narrow join window", "union"):
        world.submit(submission(kind, kind))
    world.batch("c0", [10 * SECOND])
    world.withdraw("filter")
    assert Journal(path, read_only=True).load(ended=True) == world.controller.state


def test_more_than_ten_carriers_keep_their_order(path: Path) -> None:
    world = World(path)
    world.submit(submission("q", "filter"))
    template = world.controller.state.carriers["c0"].template
    for _ in range(11):
        world.controller._ledger.new_carriers([template], "local")
    world.save()
    assert list(world.journal.load().carriers) == [f"c{n}" for n in range(12)]


def test_a_save_is_all_or_nothing(path: Path) -> None:
    journal = Journal(path)
    controller = Controller(journal.load(), CATALOG)
    controller.submit([submission("q", "filter")])
    controller.state.queries[1].sql = object()  # type: ignore[assignment]
    with pytest.raises(sqlite3.Error):
        journal.save(controller.changed.values())
    assert not journal.load().carriers


def test_the_newest_of_a_name_is_found(path: Path) -> None:
    world = World(path)
    world.submit(submission("q", "filter"))
    world.withdraw("q")
    world.submit(submission("q", "union"))
    reader = Journal(path, read_only=True)
    query = reader.query("q")
    assert query is not None and (query.id, query.running) == (2, True)
    assert reader.names() == ["q"]
    assert [(part.branch, carrier) for part, carrier in reader.parts(2)] == [(0, "c0"), (1, "c0")]
    assert reader.query("nobody") is None


def test_the_anchor_stays(path: Path) -> None:
    first = Journal(path)
    anchor = first.anchor_us
    first.close()
    assert Journal(path).anchor_us == anchor


def test_reading_where_nothing_is_makes_nothing(path: Path) -> None:
    with pytest.raises(StoreError, match="there is no job here yet"):
        Journal(path, read_only=True)
    assert not path.parent.exists()


def test_a_reader_cannot_write(path: Path) -> None:
    world = World(path)
    world.controller.submit([submission("q", "filter")])
    with pytest.raises(StoreError):
        Journal(path, read_only=True).save(world.controller.changed.values())


@pytest.mark.parametrize("read_only", [False, True])
def test_another_format_is_refused(path: Path, read_only: bool) -> None:
    Journal(path).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE about SET value = '99' WHERE key = 'format'")
    with pytest.raises(StoreError, match=f"format 99, this one reads {FORMAT}"):
        Journal(path, read_only=read_only)


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be taken for the header of one" * 20])
def test_what_is_no_journal_is_refused(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError, match="expected a journal of towpath"):
        Journal(path, read_only=True)


def test_a_full_disk_is_told_in_words(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal._db.execute("PRAGMA max_page_count = 1")  # it has more already, so nothing can be added
    with pytest.raises(StoreError, match=r"could not be written down.*full"):
        journal.save([QueryRecord(n, f"q{n}", "SELECT 1" * 1000) for n in range(100)])
