"""A node is emptied while data flows."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.config.settings import NOW
from towpath.control.decide.draining import AT_ONCE
from towpath.control.state.fence import MoveStep
from towpath.errors import MoveRefused, NodeRefused

from .world import SECOND, World, submission


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", ("a", "b", "c"))


def leave(world: World, now_s: float = 0.0) -> list[str]:
    """What the engine does with every poll; returns where fragments set out to."""
    found = world.controller.leaving()
    world.poll(now_s)
    return [node for _, node, _ in found]


def flow(world: World, *seconds: float) -> None:
    for second in seconds:
        for name, carrier in list(world.carriers.items()):
            if carrier.running:
                world.batch(name, *([int(second * SECOND)] for _ in range(carrier.inputs)))
        leave(world)


def drain(world: World, node: str) -> None:
    world.act(world.controller.draining.begin(node))


def test_everything_moves_away_spread_over_the_others(world: World) -> None:
    for name, kind in [("q1", "filter"), ("q2", "computed"), ("q3", "window"), ("q4", "join")]:
        world.submit(submission(name, kind))
    flow(world, 1, 2)
    drain(world, "a")
    assert leave(world) == ["b", "c", "b", "c"]
    assert world.controller.node_state("a") == "draining"
    flow(world, *range(3, 60))
    assert world.controller.node_state("a") == "drained"
    assert not any(world.carriers[c.id].running for c in world.controller.state.carriers.values() if c.node == "a")
    assert {m.step for m in world.controller.state.moves.values()} == {MoveStep.DONE}


def test_what_is_not_live_yet_moves_when_it_is(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1)
    world.submit(submission("late", "other filter", start=NOW))
    drain(world, "a")
    assert len(leave(world)) == 1
    flow(world, 2)
    assert len(world.controller.state.moves) == 2


def test_new_queries_go_elsewhere(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1)
    drain(world, "a")
    world.submit(submission("equal", "same filter"), submission("like", "other filter"))
    assert {world.controller.known.node_of(world.part(name).fragment) for name in ("equal", "like")} == {"b"}


def test_it_is_refused_by_name(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1)
    drain(world, "b")
    said = "node b is being drained and takes nothing new; `towpath drain b --undo` ends that"
    with pytest.raises(NodeRefused) as refused:
        world.controller.refuse_node("b")
    assert str(refused.value) == said
    with pytest.raises(MoveRefused) as not_moved:
        world.move("q", "b")
    assert str(not_moved.value) == said


def test_what_was_on_its_way_there_turns_round(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1)
    world.move("q", "b")
    drain(world, "b")
    (move,) = world.controller.state.moves.values()
    assert move.step is MoveStep.ABANDONED
    assert world.controller.known.node_of(world.part("q").fragment) == "a"


def test_a_restart_remembers_it_and_undo_ends_it(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1)
    drain(world, "a")
    world.crash()
    assert world.controller.node_state("a") == "draining"
    world.controller.draining.end("a")
    world.save()
    world.crash()
    assert world.controller.node_state("a") == "open" and leave(world) == []


def test_a_carrier_that_was_stopped_starts_again_when_it_is_needed(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1)
    drain(world, "a")
    flow(world, *range(2, 40))
    assert not world.carriers["c0"].running
    world.controller.draining.end("a")
    world.move("q", "a")
    assert world.carriers["c0"].running
    flow(world, *range(40, 80))
    assert world.controller.known.node_of(world.part("q").fragment) == "a"


def test_asking_twice_changes_nothing(world: World) -> None:
    drain(world, "a")
    before = len(world.journal.history())
    drain(world, "a")
    world.save()
    assert len(world.journal.history()) == before


@pytest.mark.parametrize(
    ("drained", "node", "message"),
    [
        ((), "d", "there is no node 'd'; the job has a, b, c"),
        (("a", "b"), "c", "no node other than c takes queries; add one to the job file, or open one again"),
    ],
)
def test_refusals(world: World, drained: tuple[str, ...], node: str, message: str) -> None:
    for name in drained:
        drain(world, name)
    with pytest.raises(NodeRefused) as refused:
        world.controller.draining.begin(node)
    assert str(refused.value) == message


def test_only_so_many_set_out_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.control.decide.draining.AT_ONCE", 1)
    assert AT_ONCE > 1
    world.submit(submission("q1", "filter"), submission("q2", "computed"))
    flow(world, 1)
    drain(world, "a")
    assert len(leave(world)) == 1 and leave(world) == []
    flow(world, *range(2, 60))
    assert world.controller.node_state("a") == "drained"
