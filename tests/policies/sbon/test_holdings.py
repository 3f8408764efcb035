from __future__ import annotations

import pytest

from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.placement.statistics import NodeStatistics, OperatorStatistics, Statistics
from towpath.policies.sbon.cards import cards
from towpath.policies.sbon.holdings import Body, Holdings


def holdings(smoothing: float = 0.5) -> Holdings:
    """f and g on n, of one stream; f twice, as equal operators. Each tuple takes 10 ms and one of four leaves."""
    operators = [
        Operator(f"{f}.o", ("s",), "filter", 0.01, 0.25, signature=s) for f, s in (("f", "x"), ("e", "x"), ("g", None))
    ]
    fragments = tuple(Fragment(o.name[:-2], f"q{o.name[:-2]}", (o,)) for o in operators)
    queries = tuple(PlacementQuery(f.query, (f.name,), "sink") for f in fragments)
    cluster = Cluster((Node("n", cpu=2.0), Node("sink")))
    problem = Problem(cluster, (PlacementStream("s", "n", 40.0),), fragments, queries)
    placement = Placement.single({"f": "n", "e": "n", "g": "n"})
    return Holdings("n", 2.0, cards(problem, placement), ("f", "e", "g"), smoothing)


def body(held: Holdings, name: str) -> Body:
    return next(found for found in held.bodies() if found.name == name)


def measured(load: float, **rates: tuple[float, float]) -> Statistics:
    seen = {f"{name}.o": OperatorStatistics(rate, selectivity, 0.01) for name, (rate, selectivity) in rates.items()}
    return Statistics(1.0, 1.0, {}, seen, {"n": NodeStatistics(load)})


def test_equal_fragments_are_one_body_and_work_once() -> None:
    held = holdings()
    assert [[card.fragment for card in found.cards] for found in held.bodies()] == [["f", "e"], ["g"]]
    assert body(held, "f").names == ("query qf", "query qe", "signature x")
    assert held.load == pytest.approx(0.4), "two times 40 tuples of 10 ms, on two cores"


def test_rates_begin_with_what_is_stated_and_follow_what_is_measured() -> None:
    held = holdings()
    stream, result = body(held, "g").springs
    card = body(held, "g").cards[0]
    assert (held.rate(stream, card), held.rate(result, card)) == (4000.0, 1000.0)
    held.measured(measured(0.4, f=(40.0, 0.25), e=(40.0, 0.25), g=(20.0, 0.0)))
    assert held.rate(stream, card) == pytest.approx(3000.0)
    assert held.rate(result, card) == pytest.approx(30.0 * 0.125 * 100.0)


def test_a_node_runs_what_it_measures() -> None:
    held = holdings()
    held.measured(measured(0.2, g=(40.0, 0.25)))
    assert held.fragments == ("g",)
    assert not held.runs(("x",))
    held.measured(measured(0.2, g=(40.0, 0.25), e=(40.0, 0.25)))
    assert held.runs(("x",))
    assert not held.runs(())


def test_load_is_that_of_others_and_of_what_is_here_and_on_its_way() -> None:
    held = holdings(smoothing=1.0)
    held.measured(measured(0.5, g=(40.0, 0.25)))
    assert held.load == pytest.approx(0.5), "0.2 of it are g's"
    held.gave("g")
    assert held.load == pytest.approx(0.3)
    held.expect("f", "m", 0.4)
    assert held.load == pytest.approx(0.5)
    held.expect("f", "m", 0.0)
    assert held.load == pytest.approx(0.3), "it does not come after all"
    held.expect("f", "m", 0.4)
    held.lost("m")
    assert held.load == pytest.approx(0.3)


def test_what_comes_for_others_too() -> None:
    held = holdings()
    assert held.flows_of_others(body(held, "g")) == {"s"}
    held.measured(measured(0.2, g=(40.0, 0.25)))
    assert held.flows_of_others(body(held, "g")) == set()
