from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from towpath.control.decide.controller import Controller
from towpath.control.decide.forgetting import Dropped
from towpath.control.journal.journal import FORMAT, Journal
from towpath.control.journal.tables import BY_RECORD, JournalTable
from towpath.control.state.records import QueryRecord
from towpath.errors import StoreError

from .world import CATALOG, SECOND, World, cut, submission


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


def test_a_query_that_is_cut_is_loaded_as_it_was(path: Path) -> None:
    world = World(path)
    world.submit(*cut("q", "join window"))
    assert world.part("q").whole is not None
    assert Journal(path, read_only=True).load() == world.controller.state


@pytest.mark.parametrize("table", BY_RECORD.values(), ids=lambda table: table.name)
def test_a_table_has_a_column_for_each_field_in_the_same_order(path: Path, table: JournalTable) -> None:
    journal = Journal(path)
    found = [name for _, name, *_ in journal._db.execute(f"PRAGMA table_info({table.name})")]
    assert found == list(table.columns)


def shapes(path: Path) -> int:
    with sqlite3.connect(path) as database:
        (found,) = database.execute("SELECT count(*) FROM shapes").fetchone()
    return int(found)


def test_alike_fragments_have_one_shape(path: Path) -> None:
    world = World(path)
    for kind in ("filter", "narrow filter", "other filter"):
        world.submit(submission(kind, kind))
    assert len(world.controller.state.fragments) == 3
    assert shapes(path) == 1
    world.submit(submission("computed", "computed"))
    assert shapes(path) == 2
    loaded = Journal(path, read_only=True).load().fragments.values()
    assert len({id(fragment.text.shape) for fragment in loaded}) == 2, "in memory, too"


def test_a_shape_goes_with_the_last_that_has_it(path: Path) -> None:
    world = World(path)
    for kind in ("filter", "narrow filter", "computed"):
        world.submit(submission(kind, kind))
    world.submit(*cut("cut", "join window"))
    archive, state = world.journal.archive, world.controller.state
    of_link = next(f.id for f in state.fragments.values() if f.pipeline.window is None and len(f.pipeline.sources) > 1)
    assert shapes(path) == 5  # filters, computed, the join, the window over it, and the two in one piece
    for name, left in (("filter", 5), ("computed", 4), ("narrow filter", 3), ("cut", 1)):
        (part,) = world.parts(name)
        with sqlite3.connect(path) as database:
            database.execute("UPDATE fragments SET status = 'gone' WHERE id = ?", (part.fragment,))
            database.execute("UPDATE parts SET done = 1 WHERE query = ?", (part.query,))
            database.execute("UPDATE queries SET running = 0, ended_us = 0 WHERE id = ?", (part.query,))
        archive.forget(1, Dropped())
        assert shapes(path) == left
    assert Journal(path).load().fragments.keys() == {of_link}


def test_more_than_ten_carriers_keep_their_order(path: Path) -> None:
    world = World(path)
    world.submit(submission("q", "filter"))
    template = world.controller.state.carriers["c0"].template
    for _ in range(11):
        world.controller.known.new_carriers([template], "local")
    world.save()
    assert list(world.journal.load().carriers) == [f"c{n}" for n in range(12)]


def test_a_save_is_all_or_nothing(path: Path) -> None:
    journal = Journal(path)
    controller = Controller(journal.load(), CATALOG)
    controller.queries.submit([submission("q", "filter")])
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
    world.controller.queries.submit([submission("q", "filter")])
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


def test_a_full_disk_is_reported_in_words(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal._db.execute("PRAGMA max_page_count = 1")  # it has more already, so nothing can be added
    with pytest.raises(StoreError, match=r"could not be written down.*full"):
        journal.save([QueryRecord(n, f"q{n}", "SELECT 1" * 1000) for n in range(100)])
