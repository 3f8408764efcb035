from __future__ import annotations

from dataclasses import replace

import pytest

from plans import drawn, where
from towpath.placement.check import check
from towpath.placement.costs.dcape import connections
from towpath.planners import grouping, round_robin, run
from towpath.problems.generate.dcape import PLANS, dcape

CHAIN = "a(s) b(a) c(b) d(c) e(d)"
TREE = "a(s) b(a) c(t) d(c) j(b d) k(j) e(u) l(k e) m(l)"  # two chains joined, then joined with a third stream


@pytest.mark.parametrize(
    ("plans", "nodes", "expected"),
    [
        ([CHAIN], 2, {"n1": "a c e", "n2": "b d"}),
        ([CHAIN], 5, {"n1": "a", "n2": "b", "n3": "c", "n4": "d", "n5": "e"}),
        ([TREE], 3, {"n1": "a d e", "n2": "b j l", "n3": "c k m"}),
        (["a(s) b(a) c(b)", "x(s) y(x)"], 2, {"n1": "a c y", "n2": "b x"}),
    ],
)
def test_round_robin_on_drawn_plans(plans: list[str], nodes: int, expected: dict[str, str]) -> None:
    assert where(round_robin.plan(drawn(*plans, nodes=nodes), round_robin.Options())) == expected


@pytest.mark.parametrize(
    ("plans", "nodes", "expected"),
    [
        ([CHAIN], 1, {"n1": "a b c d e"}),
        ([CHAIN], 2, {"n1": "a b c", "n2": "d e"}),
        ([CHAIN], 5, {"n1": "a", "n2": "b", "n3": "c", "n4": "d", "n5": "e"}),
        ([TREE], 2, {"n1": "a b c d j", "n2": "k e l m"}),  # the second chain fits below the join, so it comes along
        ([TREE], 3, {"n1": "a b j", "n2": "c d k", "n3": "e l m"}),  # here it does not
        (["a(s) b(a) c(b)", "x(s) y(x) z(y)"], 3, {"n1": "a b", "n2": "c x", "n3": "y z"}),  # goes on across plans
    ],
)
def test_grouping_on_drawn_plans(plans: list[str], nodes: int, expected: dict[str, str]) -> None:
    assert where(grouping.plan(drawn(*plans, nodes=nodes), grouping.Options())) == expected


def test_pinned_fragments_count_and_stay() -> None:
    problem = replace(drawn(CHAIN), pinned={"a": "n2", "b": "n2"})
    assert where(round_robin.plan(problem, round_robin.Options())) == {"n1": "c d e", "n2": "a b"}
    assert where(grouping.plan(problem, grouping.Options())) == {"n1": "c d e", "n2": "a b"}


@pytest.mark.parametrize("planner", ["round_robin", "grouping"])
def test_every_copy_has_its_own_node(planner: str) -> None:
    problem = drawn(CHAIN, nodes=3)
    problem = replace(problem, queries=(replace(problem.queries[0], copies=2),))
    assert not [v for v in check(problem, run(planner, problem)) if v.structural]


def test_plan_2_over_three_processors_has_the_thesis_number_of_connections() -> None:
    """Figure 5.3: 6 streams and 2 cuts between 3 groups."""
    problem = dcape(PLANS["2"].model_copy(update={"processors": 3}))
    assert connections(problem, run("grouping", problem)) == 8


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("processors", [2, 3, 4])
def test_grouping_connects_less_and_fills_nodes_alike(plan: str, processors: int) -> None:
    problem = dcape(PLANS[plan].model_copy(update={"processors": processors}))
    grouped, dealt = run("grouping", problem), run("round_robin", problem)
    assert connections(problem, grouped) < connections(problem, dealt)
    sizes = [len(names.split()) for names in where(grouped).values()]
    assert max(sizes) <= -(-len(problem.fragments) // processors)
