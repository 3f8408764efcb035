"""Copies of a query that a failover brought together part again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath.control.state.history import EventKind

from .test_draining import flow, leave
from .world import World, submission


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path / "journal.sqlite", ("a", "b"))
    for kind in ("filter", "window"):
        found.submit(replace(submission(kind, kind), copies=2))
    flow(found, 1, 2)
    return found


def places(world: World) -> list[list[str]]:
    """The nodes of the copies of each query."""
    state, controller = world.controller.state, world.controller
    return [sorted(controller.known.node_of(p.fragment) for p in state.parts_of(q.id)) for q in state.queries.values()]


def test_they_stay_where_they_are_while_all_is_well(world: World) -> None:
    assert places(world) == [["a", "b"], ["a", "b"]]
    assert leave(world) == []


def test_they_are_together_while_there_is_one_node(world: World) -> None:
    world.lose("b")
    flow(world, *range(3, 10))
    assert places(world) == [["a", "a"], ["a", "a"]]
    assert not world.controller.state.moves


def test_they_part_when_the_node_is_back(world: World) -> None:
    world.lose("b")
    flow(world, *range(3, 10))
    world.back("b")
    flow(world, *range(10, 60))
    assert places(world) == [["a", "b"], ["a", "b"]]
    moves = len(world.controller.state.moves)
    assert moves == 2
    begun = [entry.text for entry in world.journal.history() if entry.kind is EventKind.MOVE_BEGUN]
    assert all("another copy of the query is on that node, too" in text for text in begun)
    flow(world, *range(60, 80))
    assert len(world.controller.state.moves) == moves, "they stay then"


def test_a_node_that_joins_takes_one(world: World) -> None:
    world.lose("b")
    flow(world, *range(3, 6))
    world.controller.add_node("c", "there is much to do")
    flow(world, *range(6, 60))
    assert places(world) == [["a", "c"], ["a", "c"]]


def test_what_has_no_copies_stays(world: World) -> None:
    world.submit(submission("alone", "join"))
    flow(world, 3, 4)
    world.lose("a")
    flow(world, *range(5, 10))
    world.back("a")
    flow(world, *range(10, 60))
    alone = places(world)[-1]
    assert alone == ["b"]
