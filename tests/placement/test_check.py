from __future__ import annotations

from dataclasses import replace

import pytest

from figures import fig1, placed
from towpath.placement.check import check
from towpath.placement.cluster import Cluster, Network, NetworkLink, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, Problem


def test_a_good_placement_has_no_violations() -> None:
    assert check(fig1(), placed("upper:n1 lower:n2")) == []
    assert check(fig1(), Placement({}, {"q": "no cpu"})) == []


@pytest.mark.parametrize(
    ("placement", "found"),
    [
        ("upper:n1 lower:n2 other:n1", ["fragment other: is placed, but the problem has no such fragment"]),
        ("upper:n1 lower:n9", ["fragment lower: runs on n9, which is not in the cluster"]),
        ("", ["query q: none of its 2 fragments runs, though it is not refused: upper, lower"]),
        ("upper:n1", ["query q: 1 of its 2 fragments run, expected all or none; nowhere: lower"]),
        ("upper:n1 lower:n1,n2", ["fragment lower: runs 2 times (n1, n2), expected 1"]),
        (
            "upper:n1 lower:n2,n2",
            [
                "fragment lower: runs 2 times (n2, n2), expected 1",
                "fragment lower: runs more than once on n2, expected once",
            ],
        ),
    ],
)
def test_structure(placement: str, found: list[str]) -> None:
    violations = check(fig1(), placed(placement))
    assert [str(violation) for violation in violations] == found
    assert all(violation.structural for violation in violations)


def test_refused_and_unknown_queries() -> None:
    whole = replace(placed("upper:n1 lower:n2"), refused={"q": "full", "p": "full"})
    assert [str(violation) for violation in check(fig1(), whole)] == [
        "query p: is refused, but the problem has no such query",
        "query q: is refused, yet its 2 fragments run",
    ]


def test_pinned() -> None:
    problem = replace(fig1(), pinned={"upper": "n2"})
    assert [str(v) for v in check(problem, placed("upper:n1 lower:n2"))] == [
        "fragment upper: runs on n1, but is pinned to n2"
    ]
    assert check(problem, placed("upper:n2 lower:n2")) == []


def test_an_input_from_a_query_that_was_refused() -> None:
    reader = Fragment("reader", "r", (Operator("o6", ("o5",)),))
    problem = fig1()
    problem = replace(
        problem, fragments=(*problem.fragments, reader), queries=(*problem.queries, PlacementQuery("r", ("reader",)))
    )
    alone = Placement({"reader": ("n1",)}, {"q": "full"})
    assert [str(v) for v in check(problem, alone)] == ["fragment reader: reads o5 of query q, which runs nowhere"]


# On n1 upper works 0.05 s/s; s1 and o2 are 1,000 bytes per second each; lower keeps 500 bytes.
RESOURCES = [
    (Node("n1", cpu=0.04), "upper:n1 lower:n2", "node n1: cpu: 0.05 seconds of work per second, but it has 0.04"),
    (Node("n1", memory=499), "upper:n1 lower:n1", "node n1: memory: 500 bytes of state, but it has 499"),
    (
        Node("n1", bandwidth_in=999),
        "upper:n1 lower:n1",
        "node n1: bandwidth in: 1,000 bytes per second from other nodes, but it has 999",
    ),
    (
        Node("n1", bandwidth_out=999),
        "upper:n1 lower:n2",
        "node n1: bandwidth out: 1,000 bytes per second to other nodes, but it has 999",
    ),
]


@pytest.mark.parametrize(("node", "placement", "found"), RESOURCES)
def test_nodes_that_are_too_full(node: Node, placement: str, found: str) -> None:
    problem = replace(fig1(), cluster=Cluster((node, Node("n2"))))
    violations = check(problem, placed(placement))
    assert [str(violation) for violation in violations] == [found]
    assert not violations[0].structural


def test_a_limit_that_is_just_reached_is_kept() -> None:
    exact = Node("n1", cpu=0.05, memory=500, bandwidth_in=1000, bandwidth_out=1000)
    problem = replace(fig1(), cluster=Cluster((exact, Node("n2"))))
    assert check(problem, placed("upper:n1 lower:n2")) == []


def test_a_medium_that_is_too_full() -> None:
    nodes = Node("n1"), Node("n2")
    for medium, found in (
        (3000, []),
        (2999, ["network: medium: 3,000 bytes per second between all nodes, but it has 2,999"]),
    ):
        problem = replace(fig1(), cluster=Cluster(nodes, Network(medium=medium)))
        assert [str(v) for v in check(problem, placed("upper:n2 lower:n1"))] == found


def test_links_that_are_too_full() -> None:
    links = (NetworkLink("n1", "n2", bandwidth=999), NetworkLink("n2", "n1", bandwidth=999))
    problem = replace(fig1(), cluster=Cluster((Node("n1"), Node("n2")), Network(links=links)))
    assert [str(v) for v in check(problem, placed("upper:n2 lower:n1"))] == [
        "link n1 -> n2: bandwidth: 1,000 bytes per second, but it has 999",
        "link n2 -> n1: bandwidth: 2,000 bytes per second, but it has 999",
    ]


def test_everything_at_once() -> None:
    problem: Problem = replace(fig1(), pinned={"lower": "n1"}, cluster=Cluster((Node("n1"), Node("n2", cpu=0.01))))
    kinds = [violation.kind for violation in check(problem, placed("lower:n2,n2 other:n7"))]
    assert kinds == ["unknown fragment", "unknown node", "partly placed", "copies", "copies", "pinned", "cpu"]
