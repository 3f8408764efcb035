"""Every policy hears the same, in the same order, whoever runs it: the contract of runtime/driver.py."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from control.live import Steered, start_of
from towpath import policies
from towpath.control.act.loop import StartPolicy
from towpath.lab.sim import Crash
from towpath.lab.sim.runtime import Simulation
from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.runtime.actors import Move, MoveFailed

from .contract import Record, recording, violations

ROOT = Path(__file__).parents[2]
NODES = ("a", "b", "c")
# So that every one of them decides, and moves something, within a minute.
OPTIONS: dict[str, dict[str, Any]] = {
    "dcape": {"cost": "measured_work", "redistribution": "balance", "every": 4, "window": 2, "at_once": 4},
    "zhou": {"tau": 2, "delta": 4, "refresh": 10},
    "replan": {"every": 4, "window": 2},
    "hummer": {"every": 4, "window": 2, "migration": 0.0, "duplication": 0.0, "evaluations": 300},
    "sbon": {"every": 4, "window": 2, "sample": 2, "smoothing": 1.0},
    "sqpr": {"every": 4, "window": 2, "most_load": 0.3},
}
# What each must have heard, or nothing was tried; a policy that is not named here is held to the contract all the same.
HEARS = {
    "dcape": {"Started", "Woken", "Arrived", "Measured", "MoveDone", "NodeLost", "NodeJoined"},
    "zhou": {"Started", "Woken", "Arrived", "Measured", "MoveDone", "NodeLost", "NodeJoined"},
    "replan": {"Started", "Woken", "Measured", "MoveDone"},
    "hummer": {"Started", "Woken", "Measured", "MoveDone", "NodeLost", "NodeJoined"},
    "sbon": {"Started", "Woken", "Arrived", "Measured", "MoveDone", "NodeLost", "NodeJoined"},
    "sqpr": {"Started", "Woken", "Measured", "MoveDone"},
}
SECONDS = 60
EMPTY, FULL = (3, 5), (40, 50)  # when node c is lost and back: before anything is there, and later


RATE, WIDTH = 50.0, 100.0
MOVING = 2  # seconds in which windows fill up, and so long a move takes
FRAGMENTS = tuple(f"f{n}" for n in range(6))
ALL_ON_A = Placement.single(dict.fromkeys(FRAGMENTS, "a"))


def problem() -> Problem:
    """Each fragment has an eighth of a node's load."""
    operators = (
        Operator(f"{f}.o", ("s",), cost=0.125 / RATE, state_bytes=RATE * WIDTH * MOVING, tuple_bytes=WIDTH)
        for f in FRAGMENTS
    )
    fragments = tuple(Fragment(f, f"q{f}", (o,)) for f, o in zip(FRAGMENTS, operators, strict=True))
    queries = tuple(PlacementQuery(f"q{f}", (f,)) for f in FRAGMENTS)
    return Problem(Cluster(tuple(map(Node, NODES))), (PlacementStream("s", "a", RATE, WIDTH),), fragments, queries)


def started(policy: str) -> StartPolicy:
    return start_of(policy, OPTIONS.get(policy, {}))


def simulated(start: StartPolicy, *away: tuple[float, float]) -> tuple[list[Record], int]:
    records: list[Record] = []
    actors = recording(start, records)(problem(), ALL_ON_A)
    faults = [Crash(lost, "c", back) for lost, back in away]
    simulation = Simulation(problem(), ALL_ON_A, float(SECONDS), actors=actors, faults=faults, move="fence")
    simulation.run()
    return records, len(simulation._moves._running)


def steered(start: StartPolicy, folder: Path) -> tuple[list[Record], int]:
    records: list[Record] = []
    job = Steered(folder, recording(start, records), NODES)
    for lost, back in (EMPTY, FULL):
        job.run(lost - 1 - job.now)
        job.world.lose("c")
        job.run(back - 1 - job.now)
        job.world.back("c")
    job.run(SECONDS - job.now)
    return records, len(job.loop._under_way)


def run(start: StartPolicy, world: str, folder: Path) -> tuple[list[str], set[str]]:
    """What breaks the contract, and the kinds of events that were heard."""
    records, under_way = simulated(start, EMPTY, FULL) if world == "simulator" else steered(start, folder)
    losses = [("c", float(lost)) for lost, _ in (EMPTY, FULL)]
    pending = [0] * (len(records) - 1) + [under_way]  # a policy is started again when nothing is on its way
    found = [v for record, n in zip(records, pending, strict=True) for v in violations(record, n, losses)]
    return found, {kind for record in records for kind in record.kinds()}


@pytest.mark.parametrize("world", ["simulator", "fake"])
@pytest.mark.parametrize("policy", policies.available())
def test_every_policy_hears_what_it_can_rely_on(policy: str, world: str, tmp_path: Path) -> None:
    found, heard = run(started(policy), world, tmp_path)
    assert found == []
    assert heard >= HEARS.get(policy, set())


@pytest.mark.parametrize("world", ["simulator", "fake"])
def test_so_does_the_example_of_the_documentation(world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "how_to_add_a_policy.md").read_text(encoding="utf-8")
    module = ModuleType("busiest_first")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # its dataclass looks there for what its annotations mean
    exec(text.partition("```python\n")[2].partition("```")[0], module.__dict__)
    options = module.Options(every=4.0, window=2.0)
    found, heard = run(lambda *given: module.actors(*given, options), world, tmp_path)
    assert found == []
    assert heard >= HEARS["replan"]


def to_c(record: Record, kind: type[Move] | type[MoveFailed]) -> list[int]:
    """Where in the record something to do with moves to node c stands."""
    return [n for n, e in enumerate(record.entries) if isinstance(e.what, kind) and e.what.target == "c"]


def lost_while_moving_in_the_simulator(policy: str) -> tuple[Record, int, float]:
    """Times of the first run decide when to break the second."""
    (before,), _ = simulated(started(policy))
    asked = next(iter(to_c(before, Move)))
    lost = max(e.what.at for e in before.entries[:asked] if e.heard) + MOVING / 2  # type: ignore[union-attr]
    (record,), under_way = simulated(started(policy), (lost, SECONDS + 1.0))
    return record, under_way, lost


def lost_while_moving_in_the_fake(policy: str, folder: Path) -> tuple[Record, int, float]:
    records: list[Record] = []
    job = Steered(folder, recording(started(policy), records), NODES)
    while not any(u.move.target == "c" for u in job.loop._under_way.values()) and job.now < SECONDS:
        job.run(1)
    job.world.lose("c")
    lost = float(job.now + 1)  # when the loop looks next
    while job.loop._under_way and job.now < SECONDS:
        job.run(1)
    return records[0], len(job.loop._under_way), lost


@pytest.mark.parametrize("world", ["simulator", "fake"])
@pytest.mark.parametrize("policy", OPTIONS)
def test_the_loss_of_a_node_is_heard_before_that_moves_to_it_have_failed(
    policy: str, world: str, tmp_path: Path
) -> None:
    if world == "simulator":
        record, under_way, lost = lost_while_moving_in_the_simulator(policy)
    else:
        record, under_way, lost = lost_while_moving_in_the_fake(policy, tmp_path)
    assert violations(record, under_way, [("c", lost)]) == []
    assert to_c(record, MoveFailed)


# Loads are reported once and not for every ripple, moves end before the next measurement: there the worlds differ.
ALIKE: dict[str, dict[str, Any]] = {
    "dcape": {**OPTIONS["dcape"], "every": 5, "window": 4, "at_once": 1, "tolerance": 1e9},
    "zhou": {"tau": 2, "delta": 20, "refresh": 1000, "alpha": 1.0, "kappa": 1.5},
}
STARTED = 2  # the second in which the loop starts its policy
AWAY = (1, 3)  # seconds of the policy between which node b, where nothing is, is lost


@pytest.mark.parametrize(
    ("policy", "said"), [("dcape", {"Configure", "LoadReport", "WorkRequests"}), ("zhou", {"Coming", "Handover"})]
)
def test_the_same_situation_makes_actors_say_the_same(policy: str, said: set[str], tmp_path: Path) -> None:
    start, live, simulated = start_of(policy, ALIKE[policy]), list[Record](), list[Record]()
    job = Steered(tmp_path, recording(start, live), ("a", "b"))
    lost, back = AWAY
    job.run(STARTED + lost - 1)
    job.world.lose("b")
    job.run(back - lost)
    job.world.back("b")
    job.run(30)
    (record,) = live
    actors = recording(start, simulated)(record.problem, record.placement)
    crash = Crash(float(lost), "b", float(back))
    Simulation(record.problem, record.placement, float(job.now - STARTED), actors=actors, faults=[crash]).run()
    assert record.messages() == simulated[0].messages()
    assert said <= {kind for _, _, kind in record.messages()}
    assert {"MoveDone", "NodeLost", "NodeJoined"} <= record.kinds()
