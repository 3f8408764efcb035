"""Carriers of nodes that do not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.control.decide.controller import Controller
from towpath.control.state.history import EventKind
from towpath.errors import MoveRefused, NodeRefused

from .world import CATALOG, SECOND, World, submission

NODES = ("a", "b", "c")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "journal.sqlite", NODES)
    world.submit(submission("f", "filter", node="a"), submission("w", "window", node="a"))
    for name in world.carriers:
        world.batch(name, [SECOND])
    return world


def places(world: World) -> dict[str, tuple[str, int]]:
    return {c.id: (c.node, c.epoch) for c in world.controller.state.carriers.values()}


def test_carriers_go_on_on_the_other_nodes_in_a_new_epoch(world: World) -> None:
    world.lose("a")
    assert places(world) == {"c0": ("b", 1), "c1": ("c", 1)}
    assert all(carrier.running for carrier in world.carriers.values())
    assert world.journal.load() == world.controller.state


def test_a_lost_node_takes_nothing(world: World) -> None:
    world.lose("b")
    with pytest.raises(MoveRefused, match="node b does not answer"):
        world.move("f", "b")
    with pytest.raises(NodeRefused, match="node b does not answer"):
        world.controller.refuse_node("b")
    world.submit(submission("g", "join"))
    assert world.controller.known.node_of(world.part("g").fragment) != "b"


def test_it_is_lost_once(world: World) -> None:
    world.lose("a")
    assert world.controller.failover.lose("a", "still") == []
    assert places(world) == {"c0": ("b", 1), "c1": ("c", 1)}


def test_when_nobody_is_left_carriers_wait_for_the_first_that_answers(world: World) -> None:
    for node in NODES:
        world.lose(node)
    assert not any(carrier.running for carrier in world.carriers.values())
    world.back("c")
    assert {node for node, _ in places(world).values()} == {"c"}
    assert all(carrier.running for carrier in world.carriers.values())


def test_a_query_that_comes_when_nobody_is_left_waits_too(world: World) -> None:
    for node in NODES:
        world.lose(node)
    world.submit(submission("g", "join"), submission("h", "filter"))
    assert world.journal.load() == world.controller.state
    world.back("b")
    assert world.controller.known.node_of(world.part("g").fragment) == "b"
    assert world.controller.known.node_of(world.part("h").fragment) == "b"
    assert all(carrier.running for carrier in world.carriers.values())


def test_a_node_that_is_drained_takes_over_only_if_there_is_no_other(world: World) -> None:
    world.act(world.controller.draining.begin("b"))
    world.lose("a")
    assert {node for node, _ in places(world).values()} == {"c"}
    world.lose("c")
    assert {node for node, _ in places(world).values()} == {"b"}


def test_a_node_that_the_job_has_no_more_is_not_waited_for(world: World) -> None:
    controller = Controller(world.journal.load(), CATALOG, ("b", "c"))
    controller.resume()
    assert {(c.node, c.epoch) for c in controller.state.carriers.values()} == {("b", 1), ("c", 1)}


def test_the_history_says_why(world: World) -> None:
    world.lose("a")
    history = world.journal.history()
    (lost,) = [entry for entry in history if entry.kind is EventKind.NODE_LOST]
    assert lost.text == "node a is lost: it does not answer; 2 carriers go on on b, c"
    restarted = [entry.text for entry in history if entry.kind is EventKind.CARRIER_RESTARTED]
    why = "chosen by first_fit among b 0%, c 0% busy"
    assert restarted[0] == f"carrier c0 goes on on b from its checkpoint, in epoch 1: {why}"
