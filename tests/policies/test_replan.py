from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from towpath import policies
from towpath.errors import PolicyError, UnknownNameError
from towpath.lab.testing.problems import estimated, random_problem
from towpath.placement.problem import Placement, Problem
from towpath.policies._central import PLAN
from towpath.policies.replan import ADDRESS, Options, Replanner
from towpath.runtime.actors import Measured, Move, MoveDone, MoveFailed, Note, Started, Wake, Woken, moves_between


@pytest.fixture
def problem() -> Problem:
    """Everything on one node."""
    made = random_problem(Random(1))
    first = max(made.cluster.nodes, key=lambda node: node.cpu).name
    return replace(made, pinned={}, current=Placement.single({fragment.name: first for fragment in made.fragments}))


def replanner(problem: Problem, **options: object) -> Replanner:
    assert problem.current is not None
    return Replanner(problem, problem.current, replace(Options(gain=-10.0), **options))


def moves_of(actor: Replanner, at: float = 60.0) -> list[Move]:
    return [i for i in actor.handle(Woken(at, PLAN)) if isinstance(i, Move)]


def test_it_plans_every_so_often(problem: Problem) -> None:
    actor = replanner(problem)
    assert actor.handle(Started(0.0)) == [Wake(60.0, PLAN)]
    assert actor.handle(Woken(60.0, PLAN))[-1] == Wake(120.0, PLAN)


def test_what_differs_moves_with_the_reason(problem: Problem) -> None:
    moves = moves_of(replanner(problem))
    assert moves and all(move.reason.startswith("round_robin makes load.highest ") for move in moves)


def test_a_plan_that_gains_too_little_is_not_followed(problem: Problem) -> None:
    actor = replanner(problem, planner="single", gain=0.1)
    note, _ = actor.handle(Woken(60.0, PLAN))
    assert isinstance(note, Note) and note.text.startswith("single gains too little: load.highest ")


def test_the_next_plan_waits_for_the_moves_of_the_last(problem: Problem) -> None:
    actor = replanner(problem)
    first = moves_of(actor)
    note, _ = actor.handle(Woken(120.0, PLAN))
    assert note == Note(f"no new plan: {len(first)} moves of the last one are under way")
    for move in first[:-1]:
        actor.handle(MoveDone(130.0, move.fragment, move.source, move.target, 1.0))
    stays = first[-1]
    (note,) = actor.handle(MoveFailed(130.0, stays.fragment, stays.source, stays.target, "it rests"))
    assert note == Note(f"{stays.fragment} stays on {stays.source}, did not go to {stays.target}: it rests")
    assert [(m.fragment, m.target) for m in moves_of(actor, 180.0)] == [(stays.fragment, stays.target)]


def test_measurements_take_the_place_of_estimates(problem: Problem) -> None:
    actor = replanner(problem, gain=0.1)
    measured = estimated(problem)
    idle = {name: replace(seen, cost=0.0) for name, seen in measured.operators.items()}
    actor.handle(Measured(10.0, replace(measured, operators=idle)))
    assert moves_of(actor) == []  # nothing costs anything, so nothing is gained


def test_at_most_so_many_at_once(problem: Problem) -> None:
    assert len(moves_of(replanner(problem, at_once=1))) == 1


def test_wrong_options_are_reported_at_the_start(problem: Problem) -> None:
    assert problem.current is not None
    with pytest.raises(UnknownNameError, match="round_robbin is not a known planner"):
        policies.start("replan", problem, problem.current, Options(planner="round_robbin"))
    with pytest.raises(PolicyError, match="did you mean load"):
        policies.start("replan", problem, problem.current, Options(metric="load.higest"))


def test_one_actor_hears_all_nodes(problem: Problem) -> None:
    assert problem.current is not None
    started = policies.start("replan", problem, problem.current)
    assert set(started.measures.values()) == {ADDRESS}
    assert set(started.measures) == {node.name for node in problem.cluster.nodes}


def test_of_copies_only_those_move_that_have_no_place_there() -> None:
    before, after = Placement({"f": ("a", "b"), "g": ("a",)}), Placement({"f": ("b", "c"), "g": ("a",)})
    assert moves_between(before, after, "why") == [Move("f", "a", "c", "why")]
