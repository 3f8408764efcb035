"""A transit-stub topology like those of the Georgia Tech topology generator, as SBON's section 4.1 uses it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.extras import require
from towpath.placement.cluster import Cluster, Network, Node
from towpath.problems.units import Seconds

Points = NDArray[np.float64]
Edge = tuple[int, int]

# Where a domain lies within a square of side 1, and how far its nodes are from its centre.
TRANSIT_RADIUS, STUB_DISTANCE, STUB_RADIUS = 0.08, 0.03, 0.01


class TransitStub(Settings):
    """The paper gives numbers of domains and nodes and the diameter. Nodes lie on a plane and an edge is as long as the
    distance, which leaves open how likely an edge within a domain is: as in the generator's own examples.

    Packets take the routes that the generator's policy weights stand for: the fewest hops, within one domain as long
    as source and target are in it, and between domains over as few others as possible. With `routing: latency` they
    take the ways of the least latency instead.
    """

    transit_domains: Whole = Field(10, ge=1)
    transit_nodes: Whole = Field(5, ge=1)  # of each domain
    stub_domains: Whole = Field(150, ge=0)  # in all
    stub_nodes: Whole = Field(10, ge=1)  # of each domain on average: from half to one and a half times as many
    transit_edges: Number = Field(0.6, ge=0, le=1)
    stub_edges: Number = Field(0.42, ge=0, le=1)
    diameter: Seconds = Field(0.878, gt=0)  # the largest latency
    routing: Literal["policy", "latency"] = "policy"
    cpu: Number = Field(1.0, gt=0)


def transit_stub(parameters: TransitStub | None = None, seed: int = 0) -> Cluster:
    p = parameters or TransitStub()
    graph = _Graph(np.random.default_rng(seed))
    domains = [
        graph.domain(f"t{n}", graph.anywhere(), TRANSIT_RADIUS, p.transit_nodes, p.transit_edges)
        for n in range(1, p.transit_domains + 1)
    ]
    for n, domain in enumerate(domains[1:], start=1):
        graph.connect(graph.any_of(domain), graph.any_of(domains[int(graph.rng.integers(n))]))
    for domain in domains:  # a second way round for most domains, as between carriers
        graph.connect(graph.any_of(domain), graph.any_of(domains[int(graph.rng.integers(len(domains)))]))
    routers = [node for domain in domains for node in domain]
    for n, size in enumerate(_sizes(graph.rng, p), start=1):
        router = routers[(n - 1) % len(routers)]
        stub = graph.domain(f"d{n}", graph.near(router, STUB_DISTANCE), STUB_RADIUS, size, p.stub_edges)
        graph.connect(graph.any_of(stub), router)
    latencies, next_hops = graph.routes(p.routing, p.diameter)
    return Cluster(graph.nodes(p, len(routers)), Network(latencies=latencies, next_hops=next_hops))


def _sizes(rng: Generator, p: TransitStub) -> list[int]:
    """Of the stub domains: their sum is what the average says."""
    least = (p.stub_nodes + 1) // 2
    extra = p.stub_domains * (p.stub_nodes - least)
    most = p.stub_nodes - least + p.stub_nodes // 2
    sizes = [least] * p.stub_domains
    while extra:
        n = int(rng.integers(p.stub_domains))
        if sizes[n] - least < most:
            sizes[n] += 1
            extra -= 1
    return sizes


class _Graph:
    def __init__(self, rng: Generator) -> None:
        self.rng = rng
        self._places: list[Points] = []
        self._domains: list[str] = []
        self._edges: list[Edge] = []

    def anywhere(self) -> Points:
        return self.rng.random(2)

    def near(self, node: int, distance: float) -> Points:
        return self._places[node] + self.rng.normal(0, distance, 2)

    def any_of(self, nodes: list[int]) -> int:
        return nodes[int(self.rng.integers(len(nodes)))]

    def connect(self, one: int, other: int) -> None:
        if one != other:
            self._edges.append((min(one, other), max(one, other)))

    def domain(self, name: str, centre: Points, radius: float, size: int, edges: float) -> list[int]:
        """Nodes near a place: a random tree, so that all are connected, and each other pair with a probability."""
        first = len(self._places)
        nodes = list(range(first, first + size))
        for n in nodes:
            self._places.append(centre + self.rng.normal(0, radius, 2))
            self._domains.append(name)
            if n > first:
                self.connect(n, int(self.rng.integers(first, n)))
            for other in range(first, n):
                if self.rng.random() < edges:
                    self.connect(n, other)
        return nodes

    def nodes(self, p: TransitStub, routers: int) -> tuple[Node, ...]:
        return tuple(
            Node(f"n{n + 1}", p.cpu, properties={"domain": domain, "transit": n < routers})
            for n, domain in enumerate(self._domains)
        )

    def routes(self, routing: str, diameter: float) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Latencies, and towards each node (row) the next hop from every other."""
        # Here, because not every installation has it, and importing it takes long.
        require("planners", "the topology transit_stub", "scipy")
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import shortest_path

        count = len(self._places)
        places = np.array(self._places)
        one, other = np.array(sorted(set(self._edges)), dtype=np.int64).reshape(-1, 2).T
        lengths = np.linalg.norm(places[one] - places[other], axis=1)
        weights = lengths if routing == "latency" else self._policy_weights(one, other, lengths)
        graph = csr_matrix((weights, (one, other)), shape=(count, count))
        distances, hops = shortest_path(graph, method="D", directed=False, return_predecessors=True)
        edges = csr_matrix(
            (np.tile(lengths, 2), (np.r_[one, other], np.r_[other, one])), shape=(count, count)
        ).toarray()
        latencies = _along(distances, hops, edges)
        np.fill_diagonal(hops, np.arange(count))
        longest = latencies.max()
        scaled = latencies * (diameter / longest) if longest else latencies
        return scaled.astype(np.float32), hops.astype(np.int32)

    def _policy_weights(self, one: NDArray[np.int64], other: NDArray[np.int64], lengths: Points) -> Points:
        """A hop to another domain weighs more than all hops within one; the shorter edge wins between equal ways."""
        domains = np.array(self._domains)
        within = domains[one] == domains[other]
        return np.where(within, 1.0, float(len(domains))) + lengths / (lengths.sum() + 1.0)


def _along(distances: Points, previous: NDArray[np.int32], edges: Points) -> Points:
    """How long the ways are, by row from each node, given the last but one node of each way."""
    found = np.zeros_like(distances)
    rows = np.arange(len(distances))
    order = np.argsort(distances, axis=1, kind="stable")
    for rank in range(1, len(distances)):
        node = order[:, rank]
        before = previous[rows, node]
        found[rows, node] = found[rows, before] + edges[before, node]
    return found
