"""The policy sqpr: what it plans again, and in which order fragments move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from towpath.errors import PolicyError
from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import (
    EVERYWHERE,
    Fragment,
    Operator,
    Placement,
    PlacementQuery,
    PlacementStream,
    Problem,
)
from towpath.placement.statistics import OperatorStatistics, Statistics
from towpath.policies._central import PLAN
from towpath.policies.sqpr import ADDRESS, Options, SqprActor, actors
from towpath.runtime.actors import Measured, Move, MoveDone, MoveFailed, NeedNode, Note, PolicyInstruction, Wake, Woken

OPTIONS = Options(every=10.0, most_load=1.0)
Loads = dict[str, float]


def filters(loads: Loads, nodes: dict[str, float], signature: dict[str, str] | None = None) -> Problem:
    """A query of one filter for each load, over a stream of one tuple a second."""
    alike = signature or {}
    made = {name: Operator(f"{name}.o", ("s",), cost=load, signature=alike.get(name)) for name, load in loads.items()}
    fragments = tuple(Fragment(f"f.{name}", name, (operator,)) for name, operator in made.items())
    queries = tuple(PlacementQuery(name, (f"f.{name}",)) for name in loads)
    cluster = Cluster(tuple(Node(name, cpu) for name, cpu in nodes.items()))
    return Problem(cluster, (PlacementStream("s", EVERYWHERE, 1.0),), fragments, queries)


def planner(problem: Problem, at: dict[str, str], options: Options = OPTIONS) -> SqprActor:
    placement = Placement.single({f"f.{name}": node for name, node in at.items()})
    (found,) = actors(problem, placement, options).actors
    assert isinstance(found, SqprActor)
    return found


def measure(planner: SqprActor, **loads: float) -> None:
    operators = {f"{name}.o": OperatorStatistics(1.0, 1.0, load) for name, load in loads.items()}
    assert planner.handle(Measured(5.0, Statistics(5.0, 5.0, {}, operators))) == []


def woken(planner: SqprActor, at: float = 10.0) -> list[PolicyInstruction]:
    *asked, again = planner.handle(Woken(at, PLAN))
    assert again == Wake(at + 10.0, PLAN)
    return asked


def moves(asked: list[PolicyInstruction]) -> dict[str, tuple[str, str]]:
    return {move.fragment: (move.source, move.target) for move in asked if isinstance(move, Move)}


def test_what_takes_what_was_estimated_stays() -> None:
    policy = planner(filters({"q": 0.3, "r": 0.3}, {"a": 1.0, "b": 1.0}), {"q": "a", "r": "a"})
    measure(policy, q=0.33, r=0.27)
    assert woken(policy) == []


def test_a_query_that_has_drifted_is_planned_again_and_moves_where_that_is_better() -> None:
    policy = planner(filters({"q": 0.3, "r": 0.3}, {"a": 1.0, "b": 1.0}), {"q": "a", "r": "a"})
    measure(policy, q=0.6)
    (move,) = woken(policy)
    assert move == Move("f.q", "a", "b", "planned again, q: cpu 0.6 instead of 0.3")
    assert policy.handle(MoveDone(12.0, "f.q", "a", "b", 1.0)) == []
    assert woken(policy, 20.0) == []  # what was measured is its estimate now


def test_a_plan_that_is_hardly_better_is_not_followed() -> None:
    policy = planner(filters({"q": 0.1, "r": 0.5}, {"a": 1.0, "b": 1.0}), {"q": "b", "r": "a"})
    measure(policy, q=0.2)
    (note,) = woken(policy)
    assert note == Note("q stay: planned again, the objective would be better by 0.0%")


def test_a_full_node_gives_something_up_whatever_was_estimated() -> None:
    """Its two queries take 0.8 as was thought, and 0.7 of the node is for queries."""
    options = replace(OPTIONS, most_load=0.7)
    policy = planner(filters({"q": 0.4, "r": 0.4}, {"a": 1.0, "b": 1.0}), {"q": "a", "r": "a"}, options)
    measure(policy, q=0.4)
    (move,) = woken(policy)
    assert isinstance(move, Move)
    assert (move.source, move.target) == ("a", "b")
    assert move.reason.startswith("planned again, q: node a: cpu: 0.8, but it has 0.7")


def test_who_has_no_room_stays_and_a_node_is_asked_for() -> None:
    policy = planner(filters({"q": 0.6, "r": 0.6}, {"a": 1.0}), {"q": "a", "r": "a"})
    asked = woken(policy)
    assert moves(asked) == {}
    assert [type(i) for i in asked] == [NeedNode, Note]
    assert "no node has room for" in str(asked[0]) and "cpu: 1.2, but it has 1" in str(asked[0])


def test_where_all_nodes_are_full_load_gets_more_even_and_a_node_is_asked_for() -> None:
    policy = planner(filters(dict.fromkeys("qrtu", 0.9), {"a": 0.5, "b": 0.5}), dict(zip("qrtu", "aaab", strict=True)))
    asked = woken(policy)
    assert [str(i.reason).partition(":")[0] for i in asked if isinstance(i, NeedNode)] == [
        f"no node has room for {name} any more" for name in "qrtu"
    ]
    assert list(moves(asked).values()) == [("a", "b")]


def test_where_all_nodes_are_full_alike_nothing_moves() -> None:
    policy = planner(filters({"q": 0.95, "r": 0.8}, {"a": 0.9, "b": 0.7}), {"q": "a", "r": "b"})
    assert woken(policy) == [
        NeedNode("no node has room for q any more: node a: cpu: 0.95, but it has 0.9"),
        Note("q, r stay: planned again, the objective would be better by 0.0%"),
    ]


def test_of_a_full_node_only_what_is_too_much_moves() -> None:
    loads = {"q": 0.5, "r": 0.5, "t": 0.3}
    policy = planner(filters(loads, {"a": 0.6, "b": 0.6, "c": 0.6}), {"q": "a", "r": "b", "t": "b"})
    assert moves(woken(policy)) == {"f.r": ("b", "c")}


def test_what_flows_between_nodes_counts_where_their_bandwidth_has_no_limit() -> None:
    """A fragment takes more than was thought. Apart, load would be more even, and all that is made would flow."""
    operators = (Operator("q.o", ("s",), cost=0.1), Operator("last.o", ("q.o",), cost=0.1, selectivity=0.0))
    fragments = tuple(Fragment(f"f.{name}", "q", (o,)) for name, o in zip(("q", "last"), operators, strict=True))
    problem = replace(filters({"q": 0.1}, {"a": 1.0, "b": 1.0}), fragments=fragments)
    problem = replace(problem, queries=(PlacementQuery("q", ("f.q", "f.last")),))
    policy = planner(problem, {"q": "a", "last": "b"})
    measure(policy, q=0.1, last=0.2)
    assert moves(woken(policy)) in ({"f.q": ("a", "b")}, {"f.last": ("b", "a")})


def test_equal_queries_are_one_operator_and_move_together() -> None:
    problem = filters({"q": 0.3, "twin": 0.3, "r": 0.6}, {"a": 1.0, "b": 1.0}, {"q": "same", "twin": "same"})
    policy = planner(problem, {"q": "a", "twin": "a", "r": "a"})
    measure(policy, q=0.9, twin=0.9)
    assert moves(woken(policy)) == {"f.q": ("a", "b"), "f.twin": ("a", "b")}


def test_copies_of_a_query_stay_apart() -> None:
    problem = filters({"q": 0.3, "copy": 0.3}, {"a": 1.0, "b": 1.0}, {"q": "same", "copy": "same"})
    one = tuple(replace(f, query="q") for f in problem.fragments)
    problem = replace(problem, fragments=one, queries=(PlacementQuery("q", ("f.q", "f.copy")),))
    policy = planner(problem, {"q": "a", "copy": "b"})
    measure(policy, q=0.6, copy=0.6)
    assert moves(woken(policy)) == {}


def test_everybody_has_a_turn() -> None:
    """Four queries on a full node that no other has room for, one of them at a time."""
    names = ("q1", "q2", "q3", "q4")
    policy = planner(
        filters(dict.fromkeys(names, 0.5), {"a": 1.0}), dict.fromkeys(names, "a"), replace(OPTIONS, queries=1)
    )
    texts = [str(woken(policy, 10.0 * n)[0]) for n in range(1, 5)]
    assert [next(name for name in names if f"for {name} " in text) for text in texts] == list(names)


def test_a_move_that_failed_ends_the_plan() -> None:
    policy = planner(filters({"q": 0.3, "r": 0.3}, {"a": 1.0, "b": 1.0}), {"q": "a", "r": "a"})
    measure(policy, q=0.6)
    (move,) = woken(policy)
    assert isinstance(move, Move)
    (note,) = policy.handle(MoveFailed(12.0, move.fragment, move.source, move.target, "it is resting"))
    assert note == Note("f.q stays on a, did not go to b: it is resting")


def test_options_are_checked() -> None:
    with pytest.raises(PolicyError, match="expected at least 1"):
        planner(filters({"q": 0.3}, {"a": 1.0}), {"q": "a"}, Options(queries=0))
    assert planner(filters({"q": 0.3}, {"a": 1.0}), {"q": "a"}).address == ADDRESS
