from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from towpath import planners
from towpath.lab.testing.problems import SMALL, TINY, ProblemSize, random_problem
from towpath.placement.cluster import Cluster, Node
from towpath.placement.costs import hummer as cost
from towpath.placement.flows import fragment_loads
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.planners.hummer import Options, Swap, _Solution, search
from towpath.problems.generate.hummer import Hummer, hummer

WEIGHTS = {"load": 2.0, "transfer": 3.0, "duplication": 0.5, "migration": 0.25}


def with_current(problem: Problem, seed: int) -> Problem:
    current = planners.run("random", problem, planners.options("random", {"seed": str(seed)}))
    return replace(problem, current=current)


@pytest.mark.parametrize("seed", range(30))
def test_what_a_swap_changes_adds_up_to_the_objective(seed: int) -> None:
    problem, rng = with_current(random_problem(Random(seed), SMALL), seed), Random(seed)
    solution = _Solution(problem, Options(**WEIGHTS))
    solution.start()
    first, cost_before = solution.copy(), solution.cost
    for _ in range(50):
        fragment = rng.randrange(len(solution.at))
        copies = len(solution.at[fragment])
        swap = Swap(fragment, rng.randrange(max(copies, 1)), rng.choice(solution.nodes))
        if copies and solution.has_room(swap.fragment, swap.node):
            solution.apply(swap)
    expected = cost.objective(problem, solution.placement({}), cost.HummerWeights(**WEIGHTS))
    assert solution.cost == pytest.approx(expected)
    solution.restore(first)
    assert solution.copy() == first
    assert solution.cost == pytest.approx(cost_before)


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_the_optimum_of_tiny_problems(seed: int) -> None:
    problem = random_problem(Random(seed), ProblemSize(nodes=3, streams=3, queries=2, fragments=2))
    roomy = replace(problem, cluster=Cluster(tuple(Node(n.name, cpu=1e9) for n in problem.cluster.nodes)))
    best = planners.run("brute_force", roomy, planners.options("brute_force", {"metric": "hummer.F"}))
    found = planners.run("hummer", roomy)
    assert cost.objective(roomy, found) == pytest.approx(cost.objective(roomy, best))


def two_inputs(cpu: float) -> Problem:
    streams = (PlacementStream("s1", "a", 1.0), PlacementStream("s2", "b", 1.0))
    work = [Operator(f"o{n}", (f"s{n}",), cost=0.5) for n in (1, 2)]
    fragments = tuple(Fragment(f"f{n}", f"q{n}", (operator,)) for n, operator in enumerate(work, 1))
    queries = tuple(PlacementQuery(f"q{n}", (f"f{n}",)) for n in (1, 2))
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


@pytest.mark.parametrize("seed", range(60))
def test_whoever_comes_finds_room_for_all_that_is_there(seed: int) -> None:
    problem = with_current(random_problem(Random(seed), SMALL), seed)
    current = problem.current
    assert current is not None
    placement = planners.run("hummer", problem, Options(evaluations=300, stress=0.5))
    loads = fragment_loads(problem)
    for node in problem.cluster.nodes:
        here = [f for f, nodes in placement.nodes.items() if node.name in nodes]
        came = [f for f in here if node.name not in current.nodes.get(f, ()) and f not in problem.pinned]
        assert not came or sum(loads[f] for f in here) <= 0.5 * node.cpu * (1 + 1e-6)


def one_input(nodes: str, copies: int) -> Problem:
    source = PlacementStream("s", "a", 1.0, 1000.0)
    work = Operator("o", ("s",), cost=0.1, state_bytes=700.0)
    cluster = Cluster(tuple(map(Node, nodes)))
    return Problem(cluster, (source,), (Fragment("f", "q", (work,)),), (PlacementQuery("q", ("f",), copies=copies),))


def test_a_lost_copy_is_made_again_from_the_one_that_is_left() -> None:
    # It ran on a and b; b is gone. The buffer of 700 bytes is copied from a; a single copy would leave that out.
    problem = replace(one_input("ac", copies=2), current=Placement({"f": ("a", "b")}))
    placement = planners.run("hummer", problem)
    assert placement.nodes == {"f": ("a", "c")}
    assert cost.migration(problem, placement) == 700.0
    assert cost.duplication(problem, placement) == 1.0


def test_copies_that_have_no_nodes_are_refused() -> None:
    full = replace(one_input("ac", copies=2), cluster=Cluster((Node("a"), Node("c", cpu=0.1))))
    placement = planners.run("hummer", full)
    assert set(placement.refused) == {"q"} and placement.nodes == {}


def test_it_ends_when_the_solution_is_good_enough() -> None:
    problem = hummer(Hummer(queries=10))
    best, easy = search(problem, Options()), search(problem, Options(enough=20.0))
    assert best.cost <= easy.cost <= 20.0
    assert easy.evaluated < best.evaluated


def test_it_ends_when_nothing_better_was_found_for_long() -> None:
    problem = hummer(Hummer(queries=10))
    found = search(problem, Options(evaluations=0, patience=9_000))
    assert found.evaluated < 50_000
    assert found.cost == pytest.approx(
        4.0
    )  # proven: 2.25 kB/s of L with a source on each of four nodes, 7 x 0.25 kB/s of T


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
