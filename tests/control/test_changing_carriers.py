"""A fragment changes the kind of its carrier on the node where it is, by the fence of any move."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.control.state.fence import MoveStep
from towpath.errors import MoveRefused
from towpath.plan import CarrierKinds

from .world import DELAY, SECOND, World, losses, submission

COMPILED, UNIVERSAL = CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal.sqlite", ("a",), UNIVERSAL)


def seat(world: World, name: str) -> str:
    """The kind of the carrier that answers a query now."""
    part = world.turns(name)[-1]
    return world.controller.known.carrier_of(world.controller.state.fragments[part.fragment]).template.family.kind


def flow(world: World, *seconds: int) -> None:
    for second in seconds:
        for name in list(world.carriers):
            if world.carriers[name].running:
                world.batch(name, [second * SECOND])


def test_there_and_back(world: World) -> None:
    world.submit(submission("q", "window"))
    flow(world, 1, 2)
    world.change_carrier("q", COMPILED)
    flow(world, *range(3, 30))
    assert seat(world, "q") == "tumbling aggregate"
    world.change_carrier("q", UNIVERSAL)
    flow(world, *range(30, 60))
    assert seat(world, "q") == "universal aggregate"
    assert [m.step for m in world.controller.state.moves.values()] == [MoveStep.DONE] * 2
    assert {c.node for c in world.controller.state.carriers.values()} == {"a"}
    # Each turn begins where the one before hands over, and none has missed a tuple.
    first, second, third = world.turns("q")
    assert (first.handed_over_us, second.handed_over_us) == (second.from_us, third.from_us)
    assert third.from_us is not None and third.from_us > 30 * SECOND - DELAY and not losses(world)


def test_the_history_names_the_carriers_and_the_reason(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1, 2)
    world.change_carrier("q", COMPILED)
    flow(world, *range(3, 20))
    texts = [entry.text for entry in world.journal.history() if entry.kind.startswith("move")]
    assert texts[0] == ("fragment 1 (q) sets out from universal carrier c0 on a to compiled carrier c1 on a: asked for")
    assert texts[-1] == "fragment 1 is done on universal carrier c0 on a; on compiled carrier c1 on a it is fragment 2"


def test_those_who_share_a_fragment_change_together(world: World) -> None:
    world.submit(submission("q", "filter"), submission("r", "filter"))
    flow(world, 1, 2)
    world.change_carrier("q", COMPILED)
    flow(world, *range(3, 20))
    assert seat(world, "q") == seat(world, "r") == "filter"


def test_who_comes_meanwhile_joins_the_target(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1, 2)
    world.change_carrier("q", COMPILED)
    world.submit(submission("late", "filter"))
    assert seat(world, "late") == "filter"


def test_an_equal_fragment_of_that_kind_is_taken(world: World) -> None:
    """Of two equal fragments in carriers of different kinds, one is left."""
    world.submit(submission("q", "filter"))
    flow(world, 1, 2)
    world.change_carrier("q", COMPILED)
    flow(world, 3)
    (move,) = world.controller.state.moves.values()
    world.submit(submission("r", "filter"))
    world.abandon(move.id)
    flow(world, 4)
    world.change_carrier("q", COMPILED)
    assert world.controller.state.moves[move.id + 1].target == world.part("r").fragment


def test_there_already(world: World) -> None:
    world.submit(submission("q", "filter"))
    flow(world, 1)
    with pytest.raises(MoveRefused, match=r"^fragment 1 is on node a, in a universal carrier, already$"):
        world.change_carrier("q", UNIVERSAL)


def test_what_needs_a_plan_of_its_own_keeps_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.places.carriers = COMPILED
    world.crash()
    world.submit(submission("q", "window"))
    flow(world, 1)
    monkeypatch.setattr("towpath.control.decide.kinds.universal_for", lambda pipeline: None)
    with pytest.raises(MoveRefused, match="needs a plan of its own"):
        world.change_carrier("q", UNIVERSAL)
    assert not world.controller.state.moves
