"""Nodes that come and go while a job runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.errors import MoveRefused

from .live import LiveWorld
from .world import World, submission


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "journal.sqlite", ("a",))
    made.submit(submission("q", "filter"))
    return made


def test_fragments_can_move_to_a_node_that_joined(world: World) -> None:
    live = LiveWorld(world)
    live.round(0, {})
    with pytest.raises(MoveRefused, match="there is no node 'b'"):
        world.move("q", "b")
    world.controller.add_node("b", "it is needed")
    world.move("q", "b")
    for second in range(1, 20):
        live.round(second, {})
    assert world.controller.known.node_of(world.part("q").fragment) == "b"


def test_a_node_that_was_drained_and_removed_takes_nothing(world: World) -> None:
    live = LiveWorld(world)
    world.controller.add_node("b", "it is needed")
    world.act(world.controller.draining.begin("b"))
    assert world.controller.node_state("b") == "drained"
    world.controller.remove_node("b", "it is not needed any more")
    live.round(0, {})
    with pytest.raises(MoveRefused, match="there is no node 'b'"):
        world.move("q", "b")


def test_one_that_comes_back_takes_queries_again(world: World) -> None:
    world.controller.add_node("b", "it is needed")
    world.act(world.controller.draining.begin("b"))
    world.controller.remove_node("b", "it is not needed any more")
    world.controller.add_node("b", "it is needed again")
    assert world.controller.node_state("b") == "open"
