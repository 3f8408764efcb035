"""The control loop over a world without Spark: policies by name, moves carried out, limits, advice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from towpath import policies, problems
from towpath.control.history import Kind
from towpath.control.limits import Limits
from towpath.control.loop import Loop, LoopSettings
from towpath.placement.problem import Placement, Problem
from towpath.runtime.moves import Actors
from towpath.store import Store

from .live import LiveWorld
from .world import CATALOG, World, submission

CORES = {"a": 1, "b": 1}
KINDS = ("filter", "other filter", "computed", "window")
DCAPE = {"cost": "measured_work", "redistribution": "balance", "every": 4, "window": 2, "at_once": 4}


class Steered:
    """A job whose queries all begin on node a."""

    def __init__(self, folder: Path, policy: str, options: Mapping[str, Any], **settings: Any) -> None:
        self.world = World(folder / "journal.sqlite", tuple(CORES))
        self.world.submit(*(submission(kind, kind, node="a") for kind in KINDS))
        self.engine = LiveWorld(self.world)
        chosen = policies.options(policy, options)
        self.loop = Loop(
            self.engine,
            Store(folder),
            CATALOG,
            CORES,
            lambda problem, placement: policies.start(policy, problem, placement, chosen),
            LoopSettings(2.0, 30.0, **{"limits": Limits(rest_s=1000), **settings}),
        )
        self.now = 0

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            self.loop.step(self.engine.round(self.now, dict.fromkeys(CORES, 0.2)), self.now)

    @property
    def places(self) -> dict[str, str]:
        return {name: self.loop.situation.node_of(name) for name in self.loop.situation.fragments}


@pytest.mark.parametrize(
    ("policy", "options"), [("dcape", DCAPE), ("zhou", {"tau": 2, "delta": 4}), ("replan", {"every": 4})]
)
def test_a_policy_moves_fragments_to_the_idle_node(tmp_path: Path, policy: str, options: dict[str, Any]) -> None:
    job = Steered(tmp_path, policy, options)
    job.run(60)
    assert sorted(set(job.places.values())) == ["a", "b"]
    moves = job.world.controller.state.moves.values()
    assert moves and all(move.reason for move in moves)


def test_static_moves_nothing(tmp_path: Path) -> None:
    job = Steered(tmp_path, "static", {})
    job.run(60)
    assert set(job.places.values()) == {"a"}


def test_advice_is_told_once_and_nothing_moves(tmp_path: Path) -> None:
    job = Steered(tmp_path, "dcape", DCAPE, advise=True)
    job.run(60)
    assert set(job.places.values()) == {"a"} and not job.world.controller.state.moves
    assert job.engine.told and {kind for kind, _ in job.engine.told} == {Kind.ADVICE}
    texts = [text for _, text in job.engine.told]
    assert len(texts) == len(set(texts))
    assert texts[0].startswith("would move f") and " from a to b: " in texts[0]


def test_what_the_limits_refuse_is_told_with_the_reason(tmp_path: Path) -> None:
    job = Steered(tmp_path, "dcape", DCAPE, limits=Limits(rest_s=0, per_minute=1))
    job.run(20)
    assert len(job.world.controller.state.moves) == 1
    kind, text = job.engine.told[0]
    assert kind is Kind.REFUSED and text.endswith("1 moves began within a minute (control.limits.per_minute)")


def test_a_policy_is_started_again_for_queries_that_came(tmp_path: Path) -> None:
    job = Steered(tmp_path, "static", {})
    started: list[int] = []
    start = job.loop._start

    def noted(problem: Problem, placement: Placement) -> Actors:
        started.append(len(problem.fragments))
        return start(problem, placement)

    job.loop._start = noted
    job.run(10)
    job.world.submit(submission("late", "hopping", node="a"))
    job.run(10)
    assert started == [4]
    job.run(20)
    assert started == [4, 5]


def test_a_policy_is_started_again_when_somebody_else_moves_something(tmp_path: Path) -> None:
    job = Steered(tmp_path, "static", {})
    places: list[dict[str, str]] = []
    start = job.loop._start

    def started(problem: Problem, placement: Placement) -> Actors:
        places.append({name: nodes[0] for name, nodes in placement.nodes.items()})
        return start(problem, placement)

    job.loop._start = started
    job.run(10)
    job.world.move("filter", "b")
    job.run(10)
    root = f"f{job.world.turns('filter')[0].fragment}"
    assert [place[root] for place in places] == ["a", "b"]


def test_nodes_that_are_drained_are_left_out(tmp_path: Path) -> None:
    job = Steered(tmp_path, "dcape", DCAPE)
    job.run(4)
    job.world.act(job.world.controller.drain_node("b"))
    job.run(40)
    assert set(job.loop.situation.cores) == {"a"} and not job.world.controller.state.moves


def test_what_was_measured_is_left_for_those_who_ask_later(tmp_path: Path) -> None:
    job = Steered(tmp_path, "static", {})
    job.run(10)
    job.loop.close()
    saved = problems.load(Store(tmp_path).situation)
    assert saved.fragment.keys() == job.loop.situation.fragments.keys()
    assert saved.current == job.loop.situation.problem.current


def test_a_fragment_that_was_withdrawn_is_not_moved(tmp_path: Path) -> None:
    job = Steered(tmp_path, "dcape", DCAPE)
    job.run(4)
    for kind in KINDS:
        job.world.withdraw(kind)
    job.run(20)
    assert not job.world.controller.state.moves
