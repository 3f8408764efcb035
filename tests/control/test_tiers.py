"""When fragments change their kind of carrier by what was measured. Times are seconds, costs shares of a core."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from towpath.control.decide.tiers import LOOKS, Change, Tiers
from towpath.control.observe.measures import Measures
from towpath.plan import CarrierKinds
from towpath.runtime.carriers import BatchDone

from .world import SECOND, World, submission

COMPILED, UNIVERSAL = CarrierKinds.COMPILED, CarrierKinds.UNIVERSAL
REST_S = 60.0


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A filter, and two kinds of windows in one universal carrier."""
    found = World(tmp_path / "journal.sqlite", ("a",), CarrierKinds.UNIVERSAL)
    found.submit(submission("tumbles", "window"), submission("hops", "hopping"))
    found.batch("c0", [1 * SECOND])
    found.batch("c0", [2 * SECOND])
    found.places.carriers = CarrierKinds.AUTO
    found.crash()
    found.batch("c0", [3 * SECOND])
    return found


class Job:
    """What its carriers do in every second: how long a micro-batch takes, of that the work, and rows by fragment."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.measures = Measures()
        self.tiers = Tiers(REST_S)
        self.now = 0.0
        self.number = 0

    def look(self, doing: Mapping[str, tuple[float, float, Mapping[int, int]]], times: int = 1) -> list[Change]:
        found: list[Change] = []
        for _ in range(times):
            for _ in range(10):
                self.now += 1
                self.number += 1
                for name, (busy, work, rows) in doing.items():
                    phases = {"addBatch": int(work * 1000)}
                    self.measures.hear(
                        BatchDone(name, self.number, 1, (0,), None, 1000, (), 0, busy, phases, False), self.now
                    )
                    self.measures.sampled(name, rows, {self.number: rows})
            self.measures.close_window(self.now, lambda carrier: False)
            found += self.tiers.look(self.world.controller.known, self.measures, self.now)
        return found


HOT = {"c0": (0.9, 0.8, {1: 990, 2: 10})}  # 0.2 is what any carrier calculates, and 0.1 what it plans and commits
MILD = {"c0": (0.9, 0.8, {1: 500, 2: 500})}


def test_a_hot_shape_gets_a_carrier_of_its_own(world: World) -> None:
    job = Job(world)
    assert job.look(HOT, LOOKS - 1) == []
    (change,) = job.look(HOT)
    assert (change.fragments, change.carriers) == ((1,), COMPILED)
    # 99 of 100 rows of the 0.6 that is left when 0.2 is taken away; for itself 0.1 and 0.2.
    assert change.reason == (
        "1 fragment of a shape take about 0.59 of a core in universal carrier c0, "
        "a carrier of their own would take 0.30"
    )


def test_no_shape_that_is_not_hotter_by_far(world: World) -> None:
    assert Job(world).look(MILD, 3 * LOOKS) == []


def test_it_has_to_last(world: World) -> None:
    job = Job(world)
    assert job.look(HOT, LOOKS - 1) + job.look(MILD, 3) + job.look(HOT, LOOKS - 2) == []


def test_it_rests_after_a_change(world: World) -> None:
    job = Job(world)
    assert len(job.look(HOT, LOOKS)) == 1
    assert job.look(HOT, int(REST_S / 10) - 1) == []  # it could not, or it did not help
    assert len(job.look(HOT)) == 1


@pytest.mark.parametrize("kinds", [COMPILED, UNIVERSAL])
def test_only_if_the_job_leaves_it_open(world: World, kinds: CarrierKinds) -> None:
    world.places.carriers = kinds
    world.crash()
    assert Job(world).look(HOT, 3 * LOOKS) == []


def changed(world: World) -> Job:
    """The hot shape has gone to c1."""
    job = Job(world)
    (change,) = job.look(HOT, LOOKS)
    with world.deciding() as todo:
        todo += world.controller.change_carriers(change.fragments, change.carriers, change.reason)
    for second in range(4, 30):
        for name in ("c0", "c1"):
            world.batch(name, [second * SECOND])
    assert [c.template.family.kind for c in world.controller.state.carriers.values()] == [
        "universal aggregate",
        "tumbling aggregate",
    ]
    return job


def test_it_goes_back_when_it_has_cooled_down(world: World) -> None:
    job = changed(world)
    hot = {"c0": (0.4, 0.3, {2: 100}), "c1": (0.4, 0.3, {3: 1000})}
    assert job.look(hot, 12) == []
    cold = {"c0": (0.4, 0.3, {2: 100}), "c1": (0.3, 0.2, {3: 10})}
    back = job.look(cold, 6)
    assert [(change.fragments, change.carriers) for change in back] == [((3,), UNIVERSAL)]
    assert back[0].reason.startswith("carrier c1 takes 0.3")


def test_what_is_on_its_way_is_left_alone(world: World) -> None:
    job = Job(world)
    world.change_carrier("tumbles", COMPILED)
    assert job.look(HOT, 2 * LOOKS) == []


def test_a_change_states_its_reason_and_makes_one_carrier_for_all(world: World) -> None:
    with world.deciding() as todo:
        todo += world.controller.change_carriers([1, 2], COMPILED, "they are hot")
    texts = [entry.text for entry in world.journal.history() if entry.kind == "move begun"]
    assert [text.split(": ")[-1] for text in texts] == ["they are hot"] * 2
    assert len(world.controller.state.carriers) == 3  # one tumbles, one hops
