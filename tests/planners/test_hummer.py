from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from towpath import planners
from towpath.cluster import Cluster, Node
from towpath.cost import hummer as cost
from towpath.placement.problem import Fragment, Operator, Placement, Problem, Query, Stream
from towpath.planners.hummer import Options, Swap, _Solution
from towpath.testing.problems import SMALL, TINY, Size, random_problem

WEIGHTS = {"load": 2.0, "transfer": 3.0, "duplication": 0.5, "migration": 0.25}


def with_current(problem: Problem, seed: int) -> Problem:
    current = planners.run("random", problem, planners.options("random", {"seed": str(seed)}))
    return replace(problem, current=current)


@pytest.mark.parametrize("seed", range(30))
def test_what_a_swap_changes_adds_up_to_the_objective(seed: int) -> None:
    problem, rng = with_current(random_problem(Random(seed), SMALL), seed), Random(seed)
    solution = _Solution(problem, Options(**WEIGHTS))
    solution.start()
    for _ in range(50):
        fragment = rng.randrange(len(solution.at))
        copies = len(solution.at[fragment])
        swap = Swap(fragment, rng.randrange(max(copies, 1)), rng.choice(solution.nodes))
        if copies and solution.allows(swap):
            solution.apply(swap)
    expected = cost.objective(problem, solution.placement({}), cost.Weights(**WEIGHTS))
    assert solution.cost == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_the_optimum_of_tiny_problems(seed: int) -> None:
    problem = random_problem(Random(seed), Size(nodes=3, streams=3, queries=2, fragments=2))
    roomy = replace(problem, cluster=Cluster(tuple(Node(n.name, cpu=1e9) for n in problem.cluster.nodes)))
    best = planners.run("brute_force", roomy, planners.options("brute_force", {"metric": "hummer.F"}))
    found = planners.run("hummer", roomy)
    assert cost.objective(roomy, found) == pytest.approx(cost.objective(roomy, best))


def two_inputs(cpu: float) -> Problem:
    streams = (Stream("s1", "a", 1.0), Stream("s2", "b", 1.0))
    work = [Operator(f"o{n}", (f"s{n}",), cost=0.5) for n in (1, 2)]
    fragments = tuple(Fragment(f"f{n}", f"q{n}", (operator,)) for n, operator in enumerate(work, 1))
    queries = tuple(Query(f"q{n}", (f"f{n}",)) for n in (1, 2))
    return Problem(Cluster((Node("a", cpu=cpu), Node("b", cpu=cpu))), streams, fragments, queries)


def test_a_node_under_stress_takes_nothing_in_and_keeps_what_it_has() -> None:
    problem = two_inputs(cpu=0.6)
    apart = planners.run("hummer", problem)
    assert {node for nodes in apart.nodes.values() for node in nodes} == {"a", "b"}
    together = Placement({"f1": ("a",), "f2": ("a",)})
    kept = planners.run("hummer", replace(problem, current=together), Options(load=0.0))
    assert kept.nodes == together.nodes, "only who comes must find room"


def test_a_query_for_which_there_is_no_room_is_refused_with_the_reason() -> None:
    placement = planners.run("hummer", two_inputs(cpu=0.5))
    assert placement.nodes == {}
    assert placement.refused["q1"] == "no node would stay below 90% of its cpu with it; add a node"


def test_each_weight_asks_for_another_picture() -> None:
    problem = random_problem(Random(3), TINY)
    roomy = replace(problem, cluster=Cluster(tuple(Node(n.name, cpu=1e9) for n in problem.cluster.nodes)))
    nothing = {"load": 0.0, "transfer": 0.0, "duplication": 0.0, "migration": 0.0}
    parts = {"load": cost.load_differences, "transfer": cost.transfer, "duplication": cost.duplication}
    for name, part in parts.items():
        alone = planners.run("hummer", roomy, Options(**{**nothing, name: 1.0}))
        for other in parts:
            another = planners.run("hummer", roomy, Options(**{**nothing, other: 1.0}))
            assert part(roomy, alone) <= part(roomy, another) + 1e-9
