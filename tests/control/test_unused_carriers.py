"""Carriers that nobody needs any more stop after a while, and go on when somebody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.config.settings import NOW
from towpath.control.decide.unused_carriers import AFTER_S
from towpath.control.state.history import EventKind

from .world import SECOND, World, batch_done, submission


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path / "journal.sqlite", ("a", "b"))
    found.submit(submission("q", "filter"), submission("r", "window"))
    for second in (1, 2, 3):
        read(found, second)
    return found


DONE_S = 10  # when all is complete that was read before


def read(world: World, second: int) -> None:
    for name, carrier in list(world.carriers.items()):
        if carrier.running:
            world.batch(name, *([second * SECOND] for _ in range(carrier.inputs)))


def pass_time(world: World, now_s: float) -> None:
    world.act(world.controller.unused.stop(now_s))


def running(world: World) -> set[str]:
    return {name for name, carrier in world.carriers.items() if carrier.running}


def carrier_of(world: World, query: str) -> str:
    return world.controller.state.fragments[world.part(query).fragment].carrier


def stopped(world: World) -> str:
    """The carrier of a query that is withdrawn, when it has stopped."""
    left = carrier_of(world, "q")
    world.withdraw("q")
    read(world, DONE_S)
    pass_time(world, 0.0)
    pass_time(world, AFTER_S)
    assert left not in running(world)
    return left


def test_a_carrier_with_a_query_never_stops(world: World) -> None:
    before = running(world)
    for now in (0.0, AFTER_S, 100 * AFTER_S):
        pass_time(world, now)
    assert running(world) == before


def test_one_without_stops_after_a_while(world: World) -> None:
    left = carrier_of(world, "q")
    world.withdraw("q")
    read(world, DONE_S)
    pass_time(world, 1000.0)
    pass_time(world, 1000.0 + AFTER_S - 1)
    assert left in running(world)
    pass_time(world, 1000.0 + AFTER_S)
    assert running(world) == {carrier_of(world, "r")}
    assert not world.controller.runs(left)
    (entry,) = (entry for entry in world.journal.history() if entry.kind is EventKind.CARRIER_STOPPED)
    assert entry.text == f"carrier {left} on a stops: no query needs it"


def test_one_that_is_needed_again_in_time_goes_on(world: World) -> None:
    left = carrier_of(world, "q")
    world.withdraw("q")
    read(world, DONE_S)
    pass_time(world, 0.0)
    world.submit(submission("again", "filter", start=NOW))
    pass_time(world, AFTER_S)
    assert left in running(world)
    world.withdraw("again")
    read(world, 3 * DONE_S)
    pass_time(world, AFTER_S + 1)
    assert left in running(world), "the time begins anew"


def test_what_it_says_after_it_was_asked_to_stop_does_no_harm(world: World) -> None:
    left = stopped(world)
    late = batch_done(left, 4, world.controller.state.carriers[left].version, [5 * SECOND])
    assert world.controller.handle(late) == []


def test_a_query_that_needs_it_again_starts_it_and_answers_for_what_comes(world: World) -> None:
    left = stopped(world)
    world.submit(submission("again", "filter", start=NOW))
    assert left in running(world) and carrier_of(world, "again") == left
    for second in range(DONE_S + 1, DONE_S + 7):
        read(world, second)
    settled, from_us, until_us = world.validity("again")
    assert settled and from_us is not None and from_us > DONE_S * SECOND and until_us is None


def test_a_fragment_moves_to_one_that_rests(world: World) -> None:
    world.move("q", "b")
    for second in range(4, 30):
        read(world, second)
    assert world.controller.known.node_of(world.part("q").fragment) == "b"
    pass_time(world, 0.0)
    pass_time(world, AFTER_S)
    assert all(
        world.controller.state.carriers[name].node == "b" or name == carrier_of(world, "r") for name in running(world)
    )
    world.move("q", "a")
    for second in range(30, 60):
        read(world, second)
    assert world.controller.known.node_of(world.part("q").fragment) == "a"
