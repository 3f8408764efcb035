"""Which kind of carrier a query goes to, by what the job says of carriers."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.control.state import controller_state
from towpath.plan import CarrierKinds

from .world import World, submission

ALIKE = ("filter", "narrow filter", "other filter")  # one shape, with other constants and streams


@pytest.fixture
def kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(controller_state, "MANY_ALIKE", len(ALIKE))
    return World(tmp_path / "journal.sqlite", ("a", "b"), CarrierKinds.AUTO)


def submit(world: World, *kinds: str) -> list[str]:
    """The kinds of the carriers that the queries go to, in their order."""
    names = [f"{kind.replace(' ', '_')}_{len(world.controller.state.queries)}" for kind in kinds]
    world.submit(*(submission(name, kind) for name, kind in zip(names, kinds, strict=True)))
    fragments = [world.controller.state.fragments[world.parts(name)[0].fragment] for name in names]
    return [world.controller.state.carriers[f.carrier].template.family.kind for f in fragments]


def test_few_of_a_shape_are_universal(kinds: World) -> None:
    assert submit(kinds, *ALIKE[:-1], "computed", "window", "hopping") == [
        *["universal filter"] * len(ALIKE),
        *["universal aggregate"] * 2,
    ]
    assert len(kinds.controller.state.carriers) == 2


def test_many_of_a_shape_have_a_plan_of_their_own_and_who_comes_later_joins_them(kinds: World) -> None:
    assert submit(kinds, "computed") == ["universal filter"]
    assert submit(kinds, *ALIKE) == ["filter"] * len(ALIKE)
    assert submit(kinds, "filter", "computed") == ["filter", "universal filter"]


def test_joins_of_two_are_universal(kinds: World) -> None:
    assert submit(kinds, "join", "filter", "join window") == [
        "universal 2-way join",
        "universal filter",
        "universal 2-way join + aggregate",
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [(CarrierKinds.COMPILED, "filter"), (CarrierKinds.UNIVERSAL, "universal filter")],
)
def test_what_the_job_says_holds_however_many_there_are(kinds: World, said: CarrierKinds, expected: str) -> None:
    kinds.places.carriers = said
    kinds.crash()
    assert submit(kinds, *ALIKE) == [expected] * len(ALIKE)


def test_a_fragment_that_moves_changes_its_kind_with_what_the_job_says(kinds: World) -> None:
    kinds.submit(submission("q", "window"))
    kinds.batch("c0", [1, 2])
    kinds.places.carriers = CarrierKinds.COMPILED
    kinds.crash()
    kinds.batch("c0", [3])
    kinds.move("q", "b")
    (move,) = kinds.controller.state.moves.values()
    source, target = (kinds.controller.state.fragments[f] for f in (move.source, move.target))
    here, there = (kinds.controller.state.carriers[f.carrier].template.family.kind for f in (source, target))
    assert (here, there) == ("universal aggregate", "tumbling aggregate")
    # The columns of its results are called otherwise there: its group and its count.
    assert dict(move.columns) == {"l0": "g0", "l1": "a0"}
