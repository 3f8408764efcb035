"""The history replayed: what each entry changed of where fragments are, a page at a time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.control.world import SECOND, World, submission

from towpath import job as jobs
from towpath.console.replay import ReplayRequest, Spot, Step, Takeover, page, standing
from towpath.control.journal.journal import Journal
from towpath.store.layout import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def world(store: Store) -> World:
    return World(store.journal, ("a", "b"))


def at(*seconds: float) -> list[int]:
    return [int(s * SECOND) for s in seconds]


def moved(world: World) -> None:
    """Two queries of one fragment move from a to b."""
    world.submit(submission("q", "filter"), submission("twin", "filter"), submission("other", "window"))
    world.batch("c0", at(1, 10))
    world.move("q", "b")
    world.batch("c2", at(1, 10))
    for second in (11, 30, 31):
        world.batch("c0", at(second))


def steps(store: Store, kind: str) -> list[Step]:
    return [step for step in page(store, ReplayRequest()).steps if step.kind == kind]


def test_who_enters_comes_and_who_leaves_goes(world: World, store: Store) -> None:
    moved(world)
    world.withdraw("other")
    assert [(step.query, step.came) for step in steps(store, "submitted")] == [
        ("q", [Spot(1, "c0")]),
        ("twin", [Spot(1, "c0")]),
        ("other", [Spot(2, "c1")]),
    ]
    (left,) = steps(store, "withdrawn")
    assert (left.query, left.came, left.went) == ("other", [], [Spot(2, "c1")])


def test_a_move_takes_all_queries_of_its_fragment_along(world: World, store: Store) -> None:
    moved(world)
    (passed,) = steps(store, "move passed")
    assert (passed.went, passed.came) == ([Spot(1, "c0")], [Spot(3, "c2")])
    assert passed.queries == ["q", "twin"]
    assert all(not step.came and not step.went for step in steps(store, "move begun") + steps(store, "move fenced"))


def test_a_carrier_that_another_node_takes_over(world: World, store: Store) -> None:
    moved(world)
    world.lose("a")
    assert Takeover("c1", "a", "b") in [step.taken for step in steps(store, "carrier restarted")]


def test_pages_follow_each_other(world: World, store: Store) -> None:
    moved(world)
    whole = page(store, ReplayRequest()).steps
    found: list[Step] = []
    before, older = whole[-1].number + 1, True
    while older:
        read = page(store, ReplayRequest(before=before, limit=3))
        found, before, older = [*read.steps, *found], read.steps[0].number, read.older
        assert len(read.steps) <= 3
    assert found == whole


def test_what_stands_is_told_with_the_newest_entry(world: World, store: Store, tmp_path: Path) -> None:
    moved(world)
    (tmp_path / "job.yaml").write_text("streams: {clock: {source: {type: rate, rate: 100}}}\n")
    found = standing(store, jobs.load(tmp_path / "job.yaml"))
    assert found.newest == page(store, ReplayRequest()).steps[-1].number
    assert found.fragments == [(2, "c1", "other"), (3, "c2", "q"), (3, "c2", "twin")]
    assert {carrier.id: carrier.node for carrier in found.carriers} == {"c0": "a", "c1": "a", "c2": "b"}


def test_a_page_costs_what_it_shows_however_much_there_is(world: World, store: Store) -> None:
    """SQLite walks down the numbers from the asked one, and sorts nothing."""
    moved(world)
    with closing(Journal(store.journal, read_only=True)) as journal:
        asked: list[str] = []
        journal._db.set_trace_callback(asked.append)
        journal.history(before=7, limit=3)
    with closing(sqlite3.connect(store.journal)) as db:
        plan = " ".join(row[-1] for row in db.execute(f"EXPLAIN QUERY PLAN {asked[0]}"))
    assert "SEARCH history USING INTEGER PRIMARY KEY" in plan and "TEMP B-TREE" not in plan
