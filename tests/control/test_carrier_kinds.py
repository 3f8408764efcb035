"""Which kind of carrier a query goes to, by what the job says of carriers and what a node has to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath.config.settings import NOW
from towpath.control.decide import kinds as rule
from towpath.control.decide.preview import preview
from towpath.control.decide.requests import Request
from towpath.lang import parse
from towpath.plan import CarrierKinds

from .world import CATALOG, SQL, World, submission

ALIKE = ("filter", "narrow filter", "other filter")  # one shape, with other constants and streams
WINDOWS = ("window", "hopping")  # two shapes, since one tumbles and one hops


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(rule, "MANY_ALIKE", len(ALIKE))
    monkeypatch.setattr(rule, "FEW_SHAPES", 1)
    return World(tmp_path / "journal.sqlite", ("a", "b"), CarrierKinds.AUTO)


def submit(world: World, *kinds: str, node: str | None = None) -> list[str]:
    """The kinds of the carriers that the queries go to, in their order."""
    names = [f"{kind.replace(' ', '_')}_{len(world.controller.state.queries)}_{n}" for n, kind in enumerate(kinds)]
    world.submit(*(submission(name, kind, node=node) for name, kind in zip(names, kinds, strict=True)))
    fragments = [world.controller.state.fragments[world.parts(name)[0].fragment] for name in names]
    return [world.controller.state.carriers[f.carrier].template.family.kind for f in fragments]


def entered(world: World) -> list[str]:
    """Why each query is where it is, as the history has it."""
    return [
        entry.text.replace(": ", "; ").split("; ")[-1] for entry in world.journal.history() if entry.kind == "submitted"
    ]


def test_one_shape_is_worth_a_plan_of_its_own(world: World) -> None:
    assert submit(world, "filter", "narrow filter", "window") == ["filter", "filter", "tumbling aggregate"]
    assert entered(world)[0] == "c0 is compiled, since a node has few shapes of such queries"


def test_several_shapes_are_universal(world: World) -> None:
    assert submit(world, *WINDOWS, "filter") == ["universal aggregate", "universal aggregate", "filter"]
    assert entered(world)[0] == "c0 is universal, since a node would have 2 shapes of such queries"


def test_shapes_count_that_one_plan_could_run(world: World) -> None:
    assert submit(world, "filter", "computed") == ["universal filter"] * 2


def test_which_plain_columns_are_put_out_is_no_other_shape(world: World) -> None:
    assert submit(world, "filter", "all columns") == ["filter"] * 2


def test_what_runs_counts(world: World) -> None:
    assert submit(world, "window") == ["tumbling aggregate"]
    assert submit(world, "hopping") == ["universal aggregate"]
    assert submit(world, "window") == ["tumbling aggregate"]


def test_a_universal_carrier_that_runs_takes_in_what_has_no_plan_yet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule, "FEW_SHAPES", 0)
    submit(world, "window")
    monkeypatch.setattr(rule, "FEW_SHAPES", 1)
    assert submit(world, "hopping") == ["universal aggregate"]
    assert entered(world)[-1] == "c0 is universal, since c0 runs any shape already"


def test_each_node_is_asked_for_itself(world: World) -> None:
    assert submit(world, "window", node="a") == ["tumbling aggregate"]
    assert submit(world, "hopping", node="b") == ["hopping aggregate"]
    assert submit(world, "hopping", node="a") == ["universal aggregate"]


def test_many_of_a_shape_have_a_plan_of_their_own_and_who_comes_later_joins_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule, "FEW_SHAPES", 0)
    assert submit(world, "computed") == ["universal filter"]
    assert submit(world, *ALIKE) == ["filter"] * len(ALIKE)
    assert submit(world, "narrow filter", "computed") == ["filter", "universal filter"]


def test_equal_queries_are_not_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "FEW_SHAPES", 0)
    assert submit(world, "filter", "same filter", "filter") == ["universal filter"] * len(ALIKE)


def test_joins_of_two_can_be_universal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "FEW_SHAPES", 0)
    assert submit(world, "join", "filter", "join window") == [
        "universal 2-way join",
        "universal filter",
        "universal 2-way join + aggregate",
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [(CarrierKinds.COMPILED, "filter"), (CarrierKinds.UNIVERSAL, "universal filter")],
)
def test_what_the_job_says_holds_however_many_there_are(world: World, said: CarrierKinds, expected: str) -> None:
    world.places.carriers = said
    world.crash()
    assert submit(world, *ALIKE) == [expected] * len(ALIKE)


@pytest.mark.parametrize("crash", [False, True])
def test_it_is_decided_the_same_after_a_restart(world: World, crash: bool) -> None:
    submit(world, "window")
    submit(world, "hopping", "computed")
    if crash:
        world.crash()
    assert submit(world, "hopping", "filter", "window") == [
        "universal aggregate",
        "universal filter",
        "tumbling aggregate",
    ]


def test_explaining_says_why(world: World) -> None:
    submit(world, "window")
    asked = Request(parse(SQL["hopping"], CATALOG, "hopping"), NOW)
    found = preview(world.journal.load(), CATALOG, world.nodes, [asked], world.places)
    (share,) = found["hopping"][0].shares
    assert (share.kind, share.why) == (
        "universal aggregate",
        "universal, since a node would have 2 shapes of such queries",
    )


def test_what_is_universal_stays_so_when_it_moves(world: World) -> None:
    submit(world, *WINDOWS)
    world.batch("c0", [1, 2])
    name = next(iter(world.controller.queries.running))
    world.move(name, "b")
    assert [c.template.family.kind for c in world.controller.state.carriers.values()] == ["universal aggregate"] * 2


def test_a_fragment_that_moves_changes_its_kind_with_what_the_job_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule, "FEW_SHAPES", 0)
    world.submit(submission("q", "window"))
    world.batch("c0", [1, 2])
    world.places.carriers = CarrierKinds.COMPILED
    world.crash()
    world.batch("c0", [3])
    world.move("q", "b")
    (move,) = world.controller.state.moves.values()
    source, target = (world.controller.state.fragments[f] for f in (move.source, move.target))
    here, there = (world.controller.state.carriers[f.carrier].template.family.kind for f in (source, target))
    assert (here, there) == ("universal aggregate", "tumbling aggregate")
    # The columns of its results are called otherwise there: its group and its count.
    assert dict(move.columns) == {"l0": "g0", "l1": "a0"}
