"""Small random placement problems: by seed, or as a Hypothesis strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from towpath.placement.cluster import Cluster, Network, NetworkLink, Node
from towpath.placement.index import index
from towpath.placement.problem import (
    Fragment,
    Operator,
    OperatorKind,
    Placement,
    PlacementQuery,
    PlacementStream,
    Problem,
)
from towpath.placement.statistics import OperatorStatistics, Statistics

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

UNARY: tuple[OperatorKind, ...] = ("filter", "project", "aggregate")


@dataclass(frozen=True, slots=True)
class ProblemSize:
    """The most that a random problem has."""

    nodes: int = 4
    streams: int = 4
    queries: int = 3
    fragments: int = 4  # of a query


SMALL = ProblemSize()
TINY = ProblemSize(nodes=3, streams=3, queries=2, fragments=2)  # at most 3^4 placements, 6^4 with two copies


def problems(size: ProblemSize = SMALL) -> SearchStrategy[Problem]:
    """Valid problems. Hypothesis comes with the `dev` extra."""
    from hypothesis import strategies as st

    return st.randoms(use_true_random=False).map(lambda random: random_problem(random, size))


def random_problem(random: Random, size: ProblemSize = SMALL) -> Problem:
    """A valid problem in which everything that a problem can have is there now and then."""
    cluster = _cluster(random, random.randint(2, size.nodes))
    names = [node.name for node in cluster.nodes]
    streams = tuple(
        PlacementStream(f"s{n}", random.choice(names), random.uniform(1, 100), random.choice([10.0, 100.0]))
        for n in range(random.randint(1, size.streams))
    )
    queries, fragments = [], []
    for n in range(random.randint(1, size.queries)):
        own = _fragments(random, f"q{n}", streams, size.fragments)
        sink = random.choice([None, *names])
        queries.append(PlacementQuery(f"q{n}", tuple(f.name for f in own), sink, random.choice([1, 1, 1, 2])))
        fragments += own
    copies = {query.name: query.copies for query in queries}
    free = [f.name for f in fragments if copies[f.query] == 1]
    pinned = {name: random.choice(names) for name in free if random.random() < 0.2}
    problem = Problem(cluster, streams, tuple(fragments), tuple(queries), pinned)
    return replace(problem, current=random_placement(random, problem)) if random.random() < 0.5 else problem


def random_placement(random: Random, problem: Problem) -> Placement:
    """One that breaks no rule, except perhaps what nodes and links can take."""
    names = list(problem.cluster.position)

    def places(fragment: Fragment) -> tuple[str, ...]:
        pinned = problem.pinned.get(fragment.name)
        return (pinned,) if pinned else tuple(random.sample(names, problem.query[fragment.query].copies))

    return Placement({fragment.name: places(fragment) for fragment in problem.fragments})


def _cluster(random: Random, count: int) -> Cluster:
    nodes = tuple(
        Node(f"n{n}", random.choice([0.5, 1.0, 4.0]), 1e6, 1e6, 1e6, transfer_cost=random.choice([0.0, 1e-5]))
        for n in range(count)
    )
    links = [
        NetworkLink(a.name, b.name, random.uniform(0, 0.1), random.choice([1e5, 1e6]))
        for a in nodes
        for b in nodes
        if a != b and random.random() < 0.3
    ]
    matrix = np.array([[random.uniform(0.001, 0.1) for _ in nodes] for _ in nodes], np.float32)
    return Cluster(nodes, Network(0.01, 1e6, links=tuple(links), latencies=random.choice([None, matrix])))


def _fragments(random: Random, query: str, streams: tuple[PlacementStream, ...], most: int) -> list[Fragment]:
    """A tree of operators over some streams, cut into connected fragments."""
    operators: list[Operator] = []
    at: dict[str, int] = {}  # operator -> fragment

    def add(kind: OperatorKind, inputs: tuple[str, ...]) -> str:
        name = f"{query}.o{len(operators)}"
        operators.append(_operator(random, name, kind, inputs))
        near = sorted({at[i] for i in inputs if i in at})
        count = len(set(at.values()))
        at[name] = count if not near or (count < most and random.random() < 0.4) else random.choice(near)
        return name

    # A fragment starts at every stream that is read.
    heads = [
        add(random.choice(UNARY), (s.name,)) for s in random.sample(streams, random.randint(1, min(most, len(streams))))
    ]
    while len(heads) > 1:
        heads = [add("join", (heads[0], heads[1])), *heads[2:]]
    for _ in range(random.randint(0, 2)):
        heads = [add(random.choice(UNARY), (heads[0],))]
    return [
        _fragment(query, n, tuple(o for o in operators if at[o.name] == n), streams) for n in sorted(set(at.values()))
    ]


def _operator(random: Random, name: str, kind: OperatorKind, inputs: tuple[str, ...]) -> Operator:
    cost, selectivity = random.choice([1e-5, 1e-4, 1e-3]), random.choice([0.1, 0.5, 1.0, 2.0])
    state = 0.0 if kind in ("filter", "project") else random.uniform(0, 1e4)
    # Equal signatures stand for equal operators, so what has one is alike in everything.
    if kind == "filter" and random.random() < 0.5:
        return Operator(name, inputs, kind, 1e-4, 0.5, signature=f"filter({inputs[0]})")
    return Operator(name, inputs, kind, cost, selectivity, state, random.choice([10.0, 100.0]))


def _fragment(query: str, n: int, operators: tuple[Operator, ...], streams: tuple[PlacementStream, ...]) -> Fragment:
    names = {stream.name for stream in streams}
    read = [name for operator in operators for name in operator.inputs if name in names]
    return Fragment(f"{query}.f{n}", query, operators, read[0] if read else None)


def estimated(problem: Problem) -> Statistics:
    """What would be measured if the problem's own numbers were true."""
    columns = index(problem)
    rows = zip(columns.operators, columns.rate_in.tolist(), columns.state_tuples.tolist(), strict=True)
    measured = {o.name: OperatorStatistics(rate, o.selectivity, o.cost, o.state_bytes, kept) for o, rate, kept in rows}
    return Statistics(0.0, 0.0, {stream.name: stream.rate for stream in problem.streams}, measured)
