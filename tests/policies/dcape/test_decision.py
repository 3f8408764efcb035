"""Cost models and redistribution policies, each by hand and any with any."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import pytest

from plans import drawn
from towpath.errors import PolicyError
from towpath.placement.problem import Problem
from towpath.policies.dcape import Options
from towpath.policies.dcape.connections import Wiring, connections, gained, requests_for
from towpath.policies.dcape.costs import cost, network_output_rate, operator_costs, tuples_in_memory
from towpath.policies.dcape.decision import DecisionMaker, faults
from towpath.policies.dcape.known import CostTable, Known, ProcessorLimits
from towpath.policies.dcape.messages import WorkRequest
from towpath.policies.dcape.properties import PropertyChange, describe
from towpath.policies.dcape.redistribution import balance, degradation, shuttle

PLAN = drawn("a(s) b(a) c(t) d(c) j(b d) k(j)", nodes=3)
TABLE = {"a": "n1", "b": "n2", "c": "n1", "d": "n1", "j": "n3", "k": "n3"}
RATES = {"a": 10.0, "b": 10.0, "c": 10.0, "d": 10.0, "j": 20.0, "k": 40.0}


def known(problem: Problem = PLAN, table: dict[str, str] = TABLE, **of_nodes: dict[str, float]) -> Known:
    seen = describe(problem)
    for name, rate in RATES.items():
        joins = problem.operator[name].kind == "join"
        values = {
            "rate": rate,
            "selectivity": 2.0 if joins else 1.0,
            "state_tuples": 200.0 * joins,
            "state_bytes": 2e4 * joins,
        }
        for key, value in values.items():
            seen.apply(PropertyChange("operator", name, key, value))
    for node, values in of_nodes.items():
        for key, value in values.items():
            seen.apply(PropertyChange("processor", node, key, value))
    return Known(problem, Wiring(problem), table, seen, ("n1", "n2", "n3"))


# --- cost models ---


def test_the_network_output_rate_counts_what_leaves_a_processor() -> None:
    costs = cost(network_output_rate, known())
    # n1 sends a to b and d to j, but c stays; n2 sends b; n3 sends k to the user, but j stays.
    assert costs.processors == {"n1": 20.0, "n2": 10.0, "n3": 40.0}
    assert costs.fragments == {"a": 10.0, "b": 10.0, "c": 0.0, "d": 10.0, "j": 0.0, "k": 40.0}
    assert costs.worse == "falling"
    assert network_output_rate.shares(known(), costs, "n1") == {"a": 0.5, "c": 0.0, "d": 0.5}


def test_tuples_in_memory_are_queues_and_states() -> None:
    costs = cost(tuples_in_memory, known(n1={"queued": 100.0}))
    assert costs.processors == {"n1": 100 / 300, "n2": 0.0, "n3": 200 / 300}  # no limit: shares of all tuples
    limited = drawn("a(s) b(a) c(t) d(c) j(b d) k(j)", nodes=3, memory=1e5)  # 1,000 tuples of 100 bytes
    assert cost(tuples_in_memory, known(limited, n1={"queued": 100.0})).processors == {"n1": 0.1, "n2": 0.0, "n3": 0.2}


def test_operator_costs_follow_the_equations() -> None:
    costs = cost(operator_costs, known())
    # eq. 3.2: 10 (20 us + 100 us) + 10 * 20 us
    assert costs.fragments["a"] == pytest.approx(10 * 120e-6 + 10 * 20e-6)
    # eq. 3.3, both sides alike: n = 10 and s = 100 each
    expected = 20 * 20e-6 + 0.01e-6 * 200 + 0.1e-6 * (10 * 100 + 10 * 100) + 2 * 20 * 20e-6
    assert costs.fragments["j"] == pytest.approx(expected)
    assert costs.processors["n3"] == pytest.approx(costs.fragments["j"] + costs.fragments["k"])


# --- redistribution policies ---


def table(**processors: float) -> CostTable:
    return CostTable(processors, {"a": 5.0, "b": 2.0, "c": 3.0, "d": 1.0, "j": 4.0, "k": 1.0})


def moves(
    policy: object, costs: CostTable, options: Options, before: dict[str, float] | None = None
) -> list[tuple[str, str]]:
    suggested = policy.suggest(costs, before or {}, known(), ProcessorLimits(options))  # type: ignore[attr-defined]
    return [(s.fragment, s.target) for s in suggested]


def test_balance_goes_from_the_heaviest_to_the_lightest_until_they_are_even() -> None:
    # 9, 2, 5: half the gap is 3.5, c comes nearest; then 6, 5, 5 has no fragment smaller than the gap but d.
    assert moves(balance, table(n1=9, n2=2, n3=5), Options(percent_difference=0.2)) == [("c", "n2")]
    assert moves(balance, table(n1=5, n2=5, n3=5), Options(percent_difference=0.0)) == []


def test_degradation_starts_where_it_is_worst_and_saves_connections_first() -> None:
    before = {"n1": 10.0, "n2": 10.0, "n3": 10.0}
    costs = table(n1=13, n2=10, n3=10)
    # d to n3 (its parent j) and a to n2 (its parent b) save one each, a costs more; c is best left with d.
    assert moves(degradation, costs, Options(degraded=0.1), before)[:2] == [("a", "n2"), ("d", "n3")]
    assert moves(degradation, costs, Options(degraded=0.5), before) == []
    # Where all are degraded, each is a target of the others.
    all_worse = moves(degradation, table(n1=13, n2=12, n3=12), Options(degraded=0.1), before)
    assert all_worse[:2] == [("a", "n2"), ("d", "n3")]
    assert ("b", "n1") in all_worse or ("b", "n3") in all_worse
    falling = replace(costs, worse="falling")
    assert moves(degradation, falling, Options(degraded=0.1), before) == []


def test_shuttle_moves_one_to_and_fro() -> None:
    options = Options(eligible_operators=("j",), eligible_processors=("n2", "n3"))
    assert moves(shuttle, table(n1=1, n2=1, n3=1), options) == [("j", "n2")]


@pytest.mark.parametrize(
    ("options", "movable", "targets"),
    [
        (Options(), "a c d b j k", "n1 n2 n3"),
        (Options(eligible_operators=("a", "k")), "a k", "n1 n2 n3"),
        (Options(eligible_processors=("n1",)), "a c d b j k", "n1"),
        (Options(eligible_processors=("location=attic",)), "a c d b j k", "n2"),
        (Options(least_state=1.0), "j", "n1 n2 n3"),
        (Options(most_state=1.0), "a c d b k", "n1 n2 n3"),
    ],
)
def test_what_may_move_and_where(options: Options, movable: str, targets: str) -> None:
    seen = known()
    seen.descriptions.apply(PropertyChange("processor", "n2", "location", "attic"))
    limits = ProcessorLimits(options)
    assert " ".join(f for n in ("n1", "n2", "n3") for f in limits.fragments(seen, n)) == movable
    assert " ".join(limits.processors(seen)) == targets


@pytest.mark.parametrize(
    ("cost", "redistribution"),
    [*product(["network_output_rate", "tuples_in_memory", "operator_costs"], ["balance", "degradation", "shuttle"])],
)
def test_any_cost_model_goes_with_any_policy(cost: str, redistribution: str) -> None:
    maker = DecisionMaker(Options(cost=cost, redistribution=redistribution, percent_difference=0.0, at_once=3))
    best = {"n1": inf if cost == "network_output_rate" else 1e-9, "n2": 1.0, "n3": 1.0}
    decided = maker.decide(known(), best, frozenset())
    assert len({m.fragment for m in decided.moves}) == len(decided.moves) <= 3
    assert all(TABLE[m.fragment] == m.source != m.target for m in decided.moves)


def test_small_differences_are_left_alone() -> None:
    options = Options(cost="network_output_rate", redistribution="shuttle", percent_difference=0.75)
    assert DecisionMaker(options).decide(known(), {}, frozenset()).moves == ()  # (40 - 10) / 40
    assert DecisionMaker(replace(options, percent_difference=0.74)).decide(known(), {}, frozenset()).moves


@pytest.mark.parametrize("option", [{"cost": "weight"}, {"redistribution": "balanced"}])
def test_an_unknown_name_is_reported(option: dict[str, str]) -> None:
    with pytest.raises(PolicyError, match=f"{next(iter(option))}: .* is unknown"):
        DecisionMaker(Options(**option))


# --- validity and connections ---


def test_validity_finds_everything() -> None:
    rows = [("a", "n1"), ("a", "n2"), ("b", "n9"), ("x", "n1")]
    assert faults(rows, ["a", "b", "c"], {"n1", "n2"}) == [
        "c is nowhere",
        "a is there 2 times",
        "x is not in any plan",
        "n9 of b is not alive",
    ]
    assert faults(list(TABLE.items()), TABLE, {"n1", "n2", "n3"}) == []


def test_connections_are_streams_and_pairs_on_two_processors() -> None:
    wired = connections(Wiring(PLAN), TABLE)
    assert [(c.producer, c.consumer) for c in wired] == [("s", "a"), ("a", "b"), ("t", "c"), ("b", "j"), ("d", "j")]


@pytest.mark.parametrize(
    ("fragment", "target", "gain"), [("b", "n1", 1), ("b", "n3", 1), ("c", "n2", -1), ("k", "n1", -1)]
)
def test_what_a_move_gains(fragment: str, target: str, gain: int) -> None:
    assert gained(Wiring(PLAN), TABLE, fragment, target) == gain


def test_algorithm_4_for_one_processor() -> None:
    assert requests_for(Wiring(PLAN), TABLE, "n3") == (
        WorkRequest("activate", "j"),
        WorkRequest("receive_data", "j", "b", "n2"),
        WorkRequest("receive_data", "j", "d", "n1"),
        WorkRequest("activate", "k"),
    )
