"""A fragment changes hands between two nodes: one step at a time, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.control.fence import Step
from towpath.control.records import MoveRecord, Status
from towpath.errors import MoveRefused, TowpathError
from towpath.settings import BEGINNING, Start

from .world import DELAY, SECOND, World, losses, submission

NODES = ("a", "b")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", NODES)


def at(*seconds: float) -> list[int]:
    return [int(s * SECOND) for s in seconds]


def moving(world: World, kind: str = "filter", start: Start = BEGINNING) -> MoveRecord:
    """A query that has seen ten seconds on node a, and is on its way to b, where the carrier has caught up."""
    world.submit(submission("q", kind, start=start))
    world.batch("c0", at(1, 5))
    world.batch("c0", at(9, 10))
    world.move("q", "b")
    (move,) = world.controller.state.moves.values()
    world.batch("c1", at(1, 5, 9, 10))
    return move


def test_it_changes_hands_at_the_fence(world: World) -> None:
    move = moving(world)
    assert move.step is Step.FENCED and move.fence_us is not None and move.fence_us > 10 * SECOND
    assert world.part("q").held_us == move.fence_us
    world.batch("c0", at(11))
    assert move.step is Step.DRAINING
    before, now = world.turns("q")
    assert (before.moved_us, before.held_us) == (move.fence_us, None)
    assert (now.from_us, now.fragment) == (move.fence_us, move.target)


def test_a_query_that_begins_behind_the_fence_begins_there_all_the_same(world: World) -> None:
    move = moving(world, start=Start(100 * SECOND))
    world.batch("c0", at(11))
    before, now = world.turns("q")
    assert move.fence_us is not None and move.fence_us < 100 * SECOND
    assert (before.from_us, now.from_us) == (100 * SECOND, 100 * SECOND)


def test_the_source_stays_until_it_has_seen_what_it_owes(world: World) -> None:
    move = moving(world, "window")
    world.batch("c0", at(11))
    assert move.fence_us is not None
    owed = (move.fence_us + 4 * SECOND + DELAY) / SECOND
    world.batch("c0", at(owed - 1))
    assert move.step is Step.DRAINING
    world.batch("c0", at(owed))
    source = world.controller.state.fragments[move.source]
    assert move.step is Step.DONE and source.status is Status.LEAVING
    assert world.carriers["c0"].tables[-1].fragments == frozenset()
    world.batch("c0", at(owed + 9))
    world.batch("c0", at(owed + 10))
    assert source.status is Status.GONE


@pytest.mark.parametrize("beyond_us", [0, SECOND])
def test_a_fence_that_was_passed_too_early_is_set_again_further_ahead(world: World, beyond_us: int) -> None:
    move = moving(world)
    missed = move.fence_us
    assert missed is not None
    carrier = world.carriers["c0"]
    carrier.run_batch("c0", [[missed + beyond_us]], 0, 0)  # still with the table from before the fence
    world.hear("c0")
    world.batch("c0", at(missed / SECOND + 2))
    assert move.step is Step.FENCED and move.fences == 2
    assert world.part("q").held_us == move.fence_us != missed
    world.batch("c0", at(missed / SECOND + 3))
    assert move.step is Step.DRAINING


def test_a_fence_is_not_before_what_the_target_answers_for(world: World) -> None:
    """An aggregate over a join that comes to a carrier answers from a join's window after what was read there on."""
    world.submit(submission("there", "narrow join window", node="b"), submission("q", "join window", node="a"))
    here, there = world.parts("q")[0], world.parts("there")[0]
    source, other = (world.controller.state.fragments[part.fragment].carrier for part in (here, there))
    for name in (source, other):
        world.batch(name, at(10), at(10))
    world.move("q", "b")
    world.batch(other, at(10.5), at(10.5))
    (move,) = world.controller.state.moves.values()
    target = world.controller.state.fragments[move.target]
    assert (target.carrier, target.from_us) == (other, 12 * SECOND + 1)
    assert move.fence_us is not None and move.fence_us >= 12 * SECOND + 1
    world.batch(source, at(10.6), at(10.6))
    assert world.turns("q")[1].from_us == move.fence_us
    assert not losses(world)


def test_until_the_fence_is_passed_it_can_be_abandoned(world: World) -> None:
    move = moving(world)
    world.act(world.controller.abandon(move.id))
    assert move.step is Step.ABANDONED
    assert (world.part("q").held_us, world.part("q").fragment) == (None, move.source)
    assert world.controller.state.fragments[move.target].status is Status.GONE
    assert world.carriers["c1"].tables[-1].fragments == frozenset()


def test_afterwards_it_can_not(world: World) -> None:
    move = moving(world)
    world.batch("c0", at(11))
    with pytest.raises(TowpathError, match="a move that is draining cannot be abandon"):
        world.controller.abandon(move.id)


def test_withdrawing_the_query_ends_its_move(world: World) -> None:
    move = moving(world)
    world.withdraw("q")
    assert move.step is Step.ABANDONED
    assert not world.carriers["c1"].tables[-1].fragments
    world.batch("c0", at(20))
    assert not world.carriers["c0"].tables[-1].fragments


def test_a_query_withdrawn_after_the_fence_answers_for_what_was_seen(world: World) -> None:
    move = moving(world)
    world.batch("c0", at(11))
    world.withdraw("q")
    assert [p.until_us for p in world.turns("q")] == [11 * SECOND + 1] * 2
    assert move.step is Step.DRAINING


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("c", "there is no node 'c'; the job has a, b"),
        ("a", "fragment 1 is on node a already"),
        ("b", "fragment 1 is on its way already; wait until that move is done"),
    ],
)
def test_refusals_say_why(world: World, node: str, message: str) -> None:
    moving(world)
    with pytest.raises(MoveRefused) as refused:
        world.move("q", node)
    assert str(refused.value) == message


def test_a_controller_that_dies_at_any_point_goes_on(world: World) -> None:
    move = moving(world)
    world.crash()
    (move,) = world.controller.state.moves.values()
    world.batch("c0", at(11))  # what was read before the crash is in doubt for one batch
    world.crash()
    (move,) = world.controller.state.moves.values()
    for second in range(12, 40):
        world.batch("c0", at(second))
        world.batch("c1", at(second))
    assert move.step is Step.DONE
