"""Examples of the papers as problems small enough to compute by hand."""

from __future__ import annotations

from dataclasses import replace

from towpath.placement.cluster import Cluster, Network, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem

MS = 1e-3


def fig1(nodes: int = 2) -> Problem:
    """Zhou et al., Fig. 1: s1 -> o1 -> o2 -> o5 and s2 -> o3 -> o4 -> o5, in two fragments.

    A tuple of 100 bytes takes 10 ms of latency and 10 ms of bandwidth between nodes. In tuples per second:
    o1 10 -> 20, o2 20 -> 10, o3 10 -> 10, o4 10 -> 30, o5 40 -> 40.
    """
    upper = (
        Operator("o1", ("s1",), cost=1 * MS, selectivity=2.0),
        Operator("o2", ("o1",), cost=2 * MS, selectivity=0.5),
    )
    lower = (
        Operator("o3", ("s2",), cost=1 * MS, selectivity=1.0),
        Operator("o4", ("o3",), cost=2 * MS, selectivity=3.0),
        Operator("o5", ("o2", "o4"), "join", cost=4 * MS, selectivity=1.0, state_bytes=500.0, tuple_bytes=200.0),
    )
    return Problem(
        Cluster(tuple(Node(f"n{n}") for n in range(1, nodes + 1)), Network(latency=10 * MS, bandwidth=1e4)),
        (PlacementStream("s1", "n1", 10.0), PlacementStream("s2", "n2", 10.0)),
        (Fragment("upper", "q", upper, "s1"), Fragment("lower", "q", lower, "s2")),
        (PlacementQuery("q", ("upper", "lower")),),
    )


def twins(signature: str | None = None) -> Problem:
    """Two queries that do the same with s1, 10 tuples of 100 bytes a second; each keeps 50 bytes and works 10 ms/s."""

    def fragment(name: str) -> Fragment:
        operator = Operator(f"{name}1", ("s1",), cost=1 * MS, state_bytes=50.0, signature=signature)
        return Fragment(name, f"q{name}", (operator,), "s1")

    queries = (PlacementQuery("qa", ("a",)), PlacementQuery("qb", ("b",)))
    return replace(fig1(), fragments=(fragment("a"), fragment("b")), queries=queries)


def placed(text: str) -> Placement:
    """ "upper:n1 lower:n2,n3" """
    pairs = (word.split(":") for word in text.split())
    return Placement({fragment: tuple(nodes.split(",")) for fragment, nodes in pairs})
