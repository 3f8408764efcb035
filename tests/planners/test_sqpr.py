"""The planners sqpr and sqpr_heuristic on problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from figures import fig1, placed, twins
from towpath import planners
from towpath.placement.check import check
from towpath.placement.cluster import Cluster, Node
from towpath.placement.costs.sqpr import objective
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem


def random_joins(random: Random) -> Problem:
    """Two or three queries of one or two fragments over two streams; equal fragments have equal signatures."""
    nodes = tuple(Node(f"n{n}", random.choice([0.3, 0.5, 1.0]), 1e6, 3e3, random.choice([2e3, 4e3])) for n in range(2))
    streams = tuple(PlacementStream(f"s{n}", f"n{n}", 10.0) for n in range(2))
    fragments, queries = [], []
    for n in range(random.randint(2, 3)):
        kind = random.choice(["x", "y"])
        join = Operator(f"q{n}.join", ("s0", "s1"), "join", 0.01, 0.5, signature=f"join {kind}")
        own = [Fragment(join.name, f"q{n}", (join,))]
        if random.random() < 0.5:
            last = Operator(f"q{n}.last", (join.name,), "aggregate", 0.02, 0.1, signature=f"last {kind}")
            own.append(Fragment(last.name, f"q{n}", (last,)))
        fragments += own
        queries.append(PlacementQuery(f"q{n}", tuple(f.name for f in own), random.choice([None, "n0", "n1"])))
    return Problem(Cluster(nodes), streams, tuple(fragments), tuple(queries))


def everything(problem: Problem) -> Iterator[Placement]:
    """Every placement of every choice of queries."""
    names = [node.name for node in problem.cluster.nodes]
    for admitted in product([False, True], repeat=len(problem.queries)):
        chosen = {query.name for query, yes in zip(problem.queries, admitted, strict=True) if yes}
        fragments = [f.name for f in problem.fragments if f.query in chosen]
        refused = {query.name: "" for query in problem.queries if query.name not in chosen}
        for nodes in product(names, repeat=len(fragments)):
            yield Placement({f: (node,) for f, node in zip(fragments, nodes, strict=True)}, refused)


@pytest.mark.parametrize("seed", range(8))
def test_planned_at_once_nothing_is_better(seed: int) -> None:
    """The best placement may run equal fragments on two nodes; the planner never does, so it may be below that."""
    problem = random_joins(Random(seed))
    options = planners.options("sqpr", {"batch": "10", "gap": "0"})
    found = objective(problem, planners.run("sqpr", problem, options))
    valid = [p for p in everything(problem) if not check(problem, p)]
    once = [p for p in valid if _runs_once(problem, p)]
    assert found == pytest.approx(max(objective(problem, p) for p in once), abs=1e-6)


def _runs_once(problem: Problem, placement: Placement) -> bool:
    places: dict[str | None, set[str]] = {}
    for operator in problem.operators():
        places.setdefault(operator.signature, set()).update(placement.nodes.get(operator.name, ()))
    return all(len(nodes) <= 1 for nodes in places.values())


@pytest.mark.parametrize("name", ["sqpr", "sqpr_heuristic"])
def test_equal_fragments_run_as_one(name: str) -> None:
    placement = planners.run(name, twins("equal"))
    assert placement.nodes["a"] == placement.nodes["b"]
    assert not placement.refused


@pytest.mark.parametrize("name", ["sqpr", "sqpr_heuristic"])
def test_what_does_not_fit_is_refused_and_the_rest_runs(name: str) -> None:
    problem = replace(fig1(), cluster=Cluster((Node("n1", 0.2), Node("n2", 0.2))))  # it takes 0.05 and 0.19
    assert planners.run("sqpr", problem).refused == {}
    weak = replace(problem, cluster=Cluster((Node("n1", 0.18), Node("n2", 0.18))))
    assert set(planners.run(name, weak).refused) == {"q"}


def test_the_reason_names_the_resource() -> None:
    weak = replace(fig1(), cluster=Cluster((Node("n1", 0.18), Node("n2", 0.18))))
    assert planners.run("sqpr", weak).refused == {"q": "it would take more cpu"}
    # Together on one node they need a stream of 1,000 bytes/s from the other, apart as much of o2.
    nodes = tuple(Node(f"n{n}", 0.2, bandwidth_out=500.0) for n in (1, 2))
    slow = replace(fig1(), cluster=Cluster(nodes))
    assert planners.run("sqpr", slow).refused == {"q": "it would take more bandwidth"}
    query = replace(fig1().queries[0], copies=2)
    assert "copies" in planners.run("sqpr", replace(fig1(), queries=(query,))).refused["q"]


def test_a_pinned_fragment_stays() -> None:
    problem = replace(fig1(), pinned={"upper": "n2"})
    assert planners.run("sqpr", problem).nodes["upper"] == ("n2",)
    assert planners.run("sqpr_heuristic", problem) == placed("upper:n2 lower:n2")


def test_who_reads_from_a_refused_query_is_refused() -> None:
    reader = Operator("r1", ("o5",))
    problem = replace(
        fig1(),
        cluster=Cluster((Node("n1", 0.18), Node("n2", 0.18))),
        fragments=(*fig1().fragments, Fragment("reader", "r", (reader,))),
        queries=(*fig1().queries, PlacementQuery("r", ("reader",))),
    )
    for name in ("sqpr", "sqpr_heuristic"):
        assert planners.run(name, problem).refused["r"] == "reads from q, which has not been admitted"
