"""The control loop over a world without Spark: policies by name, moves carried out, limits, advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from towpath import problems
from towpath.control.decide.limits import Limits
from towpath.control.decide.tiers import Change, Tiers
from towpath.control.state.history import EventKind
from towpath.placement.problem import Placement, Problem
from towpath.plan import CarrierKinds
from towpath.runtime.actors import Actors
from towpath.store.layout import Store

from .live import KINDS, Steered, start_of
from .world import submission

DCAPE = {"cost": "measured_work", "redistribution": "balance", "every": 4, "window": 2, "at_once": 4}


@pytest.mark.parametrize(
    ("policy", "options"), [("dcape", DCAPE), ("zhou", {"tau": 2, "delta": 4}), ("replan", {"every": 4})]
)
def test_a_policy_moves_fragments_to_the_idle_node(tmp_path: Path, policy: str, options: dict[str, Any]) -> None:
    job = Steered(tmp_path, start_of(policy, options))
    job.run(60)
    assert sorted(set(job.places.values())) == ["a", "b"]
    moves = job.world.controller.state.moves.values()
    assert moves and all(move.reason for move in moves)


def test_static_moves_nothing(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("static", {}))
    job.run(60)
    assert set(job.places.values()) == {"a"}


def test_advice_is_reported_once_and_nothing_moves(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("dcape", DCAPE), advise=True)
    job.run(60)
    assert set(job.places.values()) == {"a"} and not job.world.controller.state.moves
    assert job.engine.history and {kind for kind, _ in job.engine.history} == {EventKind.ADVICE}
    texts = [text for _, text in job.engine.history]
    assert len(texts) == len(set(texts))
    assert texts[0].startswith("would move f") and " from a to b: " in texts[0]


def test_what_the_limits_refuse_is_reported_with_the_reason(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("dcape", DCAPE), limits=Limits(rest_s=0, per_minute=1))
    job.run(20)
    assert len(job.world.controller.state.moves) == 1
    kind, text = job.engine.history[0]
    assert kind is EventKind.REFUSED and text.endswith("1 moves began within a minute (control.limits.per_minute)")


MILD = Change(frozenset({("a", 0)}), (1,), CarrierKinds.UNIVERSAL, "it is mild")


@pytest.mark.parametrize("change", [True, False])
def test_fragments_change_their_kind_of_carrier_unless_the_job_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: bool
) -> None:
    monkeypatch.setattr(Tiers, "look", once([MILD]))
    job = Steered(tmp_path, start_of("static", {}), change_carriers=change)
    job.run(20)
    assert [move.reason for move in job.world.controller.state.moves.values()] == ["it is mild"] * change
    assert set(job.places.values()) == {"a"}


def test_a_change_of_carriers_can_be_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiers, "look", once([MILD]))
    job = Steered(tmp_path, start_of("static", {}), advise=True)
    job.run(20)
    assert not job.world.controller.state.moves
    assert job.engine.history == [(EventKind.ADVICE, "would move 1 fragments to universal carriers: it is mild")]


def once(found: list[Change]) -> Callable[..., list[Change]]:
    """What is found the first time it is looked for."""
    answers = iter([found])
    return lambda *_: next(answers, [])


def starts(job: Steered) -> list[tuple[set[str], dict[str, str]]]:
    """Of every start of the policy from now on, the nodes that it was given and where everything was."""
    found: list[tuple[set[str], dict[str, str]]] = []
    start = job.loop._start

    def noted(problem: Problem, placement: Placement) -> Actors:
        places = {name: nodes[0] for name, nodes in placement.nodes.items()}
        found.append((set(problem.cluster.position), places))
        return start(problem, placement)

    job.loop._start = noted
    return found


def test_a_policy_is_started_again_for_queries_that_came(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("static", {}))
    started = starts(job)
    job.run(10)
    job.world.submit(submission("late", "hopping", node="a"))
    job.run(10)
    assert [len(places) for _, places in started] == [4]
    job.run(20)
    assert [len(places) for _, places in started] == [4, 5]


def test_a_policy_is_started_again_when_somebody_else_moves_something(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("static", {}))
    started = starts(job)
    job.run(10)
    job.world.move("filter", "b")
    job.run(10)
    root = f"f{job.world.turns('filter')[0].fragment}"
    assert [places[root] for _, places in started] == ["a", "b"]


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [("static", [{"a", "b"}]), ("dcape", [{"a", "b"}]), ("zhou", [{"a", "b"}]), ("replan", [{"a", "b"}, {"a"}])],
)
def test_a_policy_that_takes_nodes_hears_that_an_empty_one_is_lost(
    tmp_path: Path, policy: str, nodes: list[set[str]]
) -> None:
    job = Steered(tmp_path, start_of(policy, {}))
    started = starts(job)
    job.run(2)
    job.world.lose("b")
    job.run(4)
    assert [known for known, _ in started] == nodes


def test_a_policy_is_started_again_where_the_fragments_of_a_lost_node_went(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("dcape", {}))
    started = starts(job)
    job.run(2)
    job.world.lose("a")
    job.run(4)
    assert [(known, set(places.values())) for known, places in started] == [({"a", "b"}, {"a"}), ({"b"}, {"b"})]
    job.world.back("a")
    job.run(4)
    assert [known for known, _ in started[2:]] == [{"a", "b"}], "a node that the policy was not started with"


def test_nodes_that_are_drained_are_left_out(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("dcape", DCAPE))
    job.run(4)
    job.world.act(job.world.controller.draining.begin("b"))
    job.run(40)
    assert set(job.loop.situation.cores) == {"a"} and not job.world.controller.state.moves


def test_what_was_measured_is_left_for_those_who_ask_later(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("static", {}))
    job.run(10)
    job.loop.close()
    saved = problems.load(Store(tmp_path).situation)
    assert saved.fragment.keys() == job.loop.situation.fragments.keys()
    assert saved.current == job.loop.situation.problem.current


def test_a_fragment_that_was_withdrawn_is_not_moved(tmp_path: Path) -> None:
    job = Steered(tmp_path, start_of("dcape", DCAPE))
    job.run(4)
    for kind in KINDS:
        job.world.withdraw(kind)
    job.run(20)
    assert not job.world.controller.state.moves
