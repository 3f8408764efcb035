from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from control.live import Steered, start_of
from control.world import submission
from towpath.placement.cluster import Cluster, Node
from towpath.placement.costs.hummer import duplication
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.placement.statistics import NodeStatistics, Statistics
from towpath.policies._central import PLAN
from towpath.policies.hummer import ADDRESS, Optimiser, Options, actors
from towpath.runtime.actors import (
    Measured,
    Move,
    MoveDone,
    MoveFailed,
    NeedNode,
    NodeJoined,
    NodeLost,
    Note,
    PolicyInstruction,
    ReleaseNode,
    Started,
    Wake,
    Woken,
)

ONLY_D = Options(load=0.0, transfer=0.0, duplication=1.0, migration=0.0, every=10.0)
APART = Placement.single({"f1": "a", "f2": "b"})


def twins(nodes: str = "ab", cost: float = 0.1) -> Problem:
    """Two queries with a buffer of the same stream each; each takes `cost` of a node."""
    made = [Operator(f"o{n}", ("s",), "aggregate", cost, state_bytes=100.0) for n in (1, 2)]
    fragments = tuple(Fragment(f"f{n}", f"q{n}", (o,)) for n, o in enumerate(made, 1))
    queries = tuple(PlacementQuery(f"q{n}", (f"f{n}",)) for n in (1, 2))
    return Problem(Cluster(tuple(map(Node, nodes))), (PlacementStream("s", "a", 1.0),), fragments, queries)


def begun(problem: Problem, placement: Placement, options: Options = ONLY_D) -> Optimiser:
    (optimiser,) = actors(problem, placement, options).actors
    assert isinstance(optimiser, Optimiser)
    assert optimiser.handle(Started(0.0)) == [Wake(options.every, PLAN)]
    return optimiser


def measure(optimiser: Optimiser, **loads: float) -> None:
    for node, load in loads.items():
        seen = Statistics(5.0, 5.0, {}, {}, {node: NodeStatistics(load)})
        assert optimiser.handle(Measured(5.0, seen)) == []


def woken(optimiser: Optimiser, at: float = 10.0) -> list[PolicyInstruction]:
    """What it asks for, besides to be woken again."""
    *asked, again = optimiser.handle(Woken(at, PLAN))
    assert again == Wake(at + 10.0, PLAN)
    return asked


def test_inputs_of_one_source_come_together() -> None:
    optimiser = begun(twins(), APART)
    (move,) = woken(optimiser)
    assert isinstance(move, Move)
    assert (move.fragment, move.source, move.target) in [("f1", "a", "b"), ("f2", "b", "a")]
    assert move.reason == "F becomes 0 instead of 1"
    (note,) = woken(optimiser, 20.0)
    assert note == Note("no new search: 1 moves of the last one are under way")
    optimiser.handle(MoveDone(25.0, move.fragment, move.source, move.target, 1.0))
    assert woken(optimiser, 30.0) == [Note("F stays 0: the best found is 0")]


def test_a_move_that_failed_is_tried_again() -> None:
    optimiser = begun(twins(), APART)
    (move,) = woken(optimiser)
    assert isinstance(move, Move)
    failed = MoveFailed(12.0, move.fragment, move.source, move.target, "it is resting")
    (note,) = optimiser.handle(failed)
    assert isinstance(note, Note) and note.text.endswith("it is resting")
    assert woken(optimiser, 20.0) == [move]


def four() -> tuple[Problem, Placement]:
    """Four buffers of one stream on a node each."""
    made = [Operator(f"o{n}", ("s",), "aggregate", 0.01) for n in range(4)]
    fragments = tuple(Fragment(f"f{n}", f"q{n}", (o,)) for n, o in enumerate(made))
    queries = tuple(PlacementQuery(f"q{n}", (f"f{n}",)) for n in range(4))
    cluster = Cluster((*map(Node, "abcd"), Node("outside", cpu=0.0)))
    problem = Problem(cluster, (PlacementStream("s", "outside", 1.0),), fragments, queries)
    return problem, Placement.single({f"f{n}": node for n, node in enumerate("abcd")})


def moves(asked: list[PolicyInstruction]) -> list[Move]:
    assert all(isinstance(one, Move) for one in asked)
    return [one for one in asked if isinstance(one, Move)]


def test_what_does_not_go_at_once_follows() -> None:
    optimiser = begun(*four(), replace(ONLY_D, at_once=2))
    first = moves(woken(optimiser))
    for move in first:
        optimiser.handle(MoveDone(11.0, move.fragment, move.source, move.target, 1.0))
    second = moves(woken(optimiser, 20.0))
    assert (len(first), len(second)) == (2, 1)
    assert len({move.target for move in [*first, *second]}) == 1, "one solution is carried out to its end"


def test_the_rest_is_forgotten_when_things_are_not_as_they_were_thought_to_be() -> None:
    optimiser = begun(*four(), replace(ONLY_D, at_once=2))
    first = moves(woken(optimiser))
    for move in first:
        optimiser.handle(MoveFailed(11.0, move.fragment, move.source, move.target, "it is resting"))
    assert len(moves(woken(optimiser, 20.0))) == 2, "of a new search"


def test_who_runs_nothing_is_not_asked_for_its_stress() -> None:
    optimiser = begun(*four())
    measure(optimiser, a=0.95, b=0.95, c=0.95, d=0.95, outside=0.0)
    assert woken(optimiser) == [NeedNode("all 4 nodes have more than 90% load")]


def test_what_moving_costs_counts() -> None:
    # Bringing f2 to a saves one buffer, and s is buffered there already.
    assert woken(begun(twins(), APART, replace(ONLY_D, migration=1.0))) != []
    problem = twins("abc")
    full = replace(problem, cluster=Cluster((Node("a", cpu=0.1), Node("b", cpu=0.1), Node("c"))))
    # Only c has room for both, and 200 bytes would have to go there for one buffer less.
    assert woken(begun(full, APART, replace(ONLY_D, migration=1.0))) == [Note("F stays 1: the best found is 1")]
    assert len(woken(begun(full, APART))) == 2


def test_too_small_a_gain_moves_nothing() -> None:
    assert woken(begun(twins(), APART, replace(ONLY_D, gain=1.5))) == [Note("F stays 1: the best found is 0")]


def test_a_node_is_asked_for_when_all_are_under_stress() -> None:
    optimiser = begun(twins(), APART)
    measure(optimiser, a=0.95, b=0.89)
    assert [type(asked) for asked in woken(optimiser)] == [Move], "b may take something in"
    optimiser = begun(twins(), APART)
    measure(optimiser, a=0.95, b=0.91)
    assert woken(optimiser) == [NeedNode("all 2 nodes have more than 90% load")]


def test_a_node_is_asked_for_when_there_is_no_room() -> None:
    optimiser = begun(twins(cost=0.95), Placement({}))
    assert woken(optimiser) == [NeedNode("no node would stay below 90% of its cpu with it; add a node")]


def test_nodes_without_which_everything_has_room_may_go() -> None:
    together = Placement.single({"f1": "a", "f2": "a"})
    optimiser = begun(twins("abc"), together)
    measure(optimiser, a=0.2, b=0.1, c=0.0)
    _, release = woken(optimiser)
    assert release == ReleaseNode(("c", "b", "a"), "3 nodes have less than 30% load on average")
    small = replace(twins("abc"), cluster=Cluster((Node("a"), Node("b", cpu=0.1), Node("c", cpu=0.1))))
    optimiser = begun(small, together)
    measure(optimiser, a=0.2, b=0.0, c=0.1)
    assert woken(optimiser)[1:] == [ReleaseNode(("b", "c"), "3 nodes have less than 30% load on average")]


def test_busy_nodes_stay() -> None:
    optimiser = begun(twins("ab"), Placement.single({"f1": "a", "f2": "a"}))
    measure(optimiser, a=0.6, b=0.0)
    assert [type(asked) for asked in woken(optimiser)] == [Note]


def test_a_lost_node_gets_nothing_and_nothing_is_moved_from_it() -> None:
    optimiser = begun(twins("ab"), APART)
    optimiser.handle(NodeLost(5.0, "b"))
    assert woken(optimiser) == [Note("F stays 0: the best found is 0")]
    optimiser.handle(NodeJoined(15.0, Node("b")))
    assert [type(asked) for asked in woken(optimiser, 20.0)] == [Move]


def test_it_hears_of_all_nodes() -> None:
    assert actors(twins(), APART, ONLY_D).measures == {"a": ADDRESS, "b": ADDRESS}


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_running_job_buffers_a_stream_once(weight: float, tmp_path: Path) -> None:
    """What is measured of a job is what it decides by: its queries read one stream on two nodes at first."""
    options = {"every": 4, "window": 2, "load": 0, "transfer": 0, "duplication": weight, "migration": 0}
    job = Steered(tmp_path, start_of("hummer", options))
    job.world.submit(submission("elsewhere", "window", node="b"))
    job.run(6)
    situation = job.loop.situation
    before = duplication(situation.problem, situation.problem.current)
    job.run(30)
    after = duplication(job.loop.situation.problem, job.loop.situation.problem.current)
    assert (before, after) == ((1.0, 0.0) if weight else (1.0, 1.0))
