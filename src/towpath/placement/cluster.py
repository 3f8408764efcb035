"""Where things run: nodes, what they can take, and what lies between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

Property = str | float | bool


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    cpu: float = 1.0  # seconds of work per second; the costs of operators are stated for 1.0
    memory: float = inf  # bytes
    bandwidth_in: float = inf  # bytes per second, over all its links
    bandwidth_out: float = inf
    properties: Mapping[str, Property] = field(default_factory=dict)  # open: what a policy may ask for
    transfer_cost: float = 0.0  # seconds of work per tuple that it gets from or sends to another node, at cpu 1.0


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """One direction between two nodes."""

    source: str
    target: str
    latency: float = 0.0  # seconds
    bandwidth: float = inf  # bytes per second


@dataclass(frozen=True)
class Network:
    """Every pair of nodes is linked: by a link of its own, else by the latency matrix or the positions, else alike."""

    latency: float = 0.0
    bandwidth: float = inf
    medium: float = inf  # bytes per second of the one medium that everything between nodes takes turns on
    links: tuple[NetworkLink, ...] = ()
    latencies: NDArray[np.float32] | None = None  # seconds, by position in the cluster's nodes; NaN is unknown
    # Row by target, column by source: the node that a packet goes to next, itself at the target; None if unknown.
    next_hops: NDArray[np.int32] | None = None
    # Of nodes that are too many for a matrix, a row for each: latencies are the distances between them, in seconds.
    positions: NDArray[np.float64] | None = None

    @cached_property
    def by_pair(self) -> Mapping[tuple[str, str], NetworkLink]:
        return {(link.source, link.target): link for link in self.links}


@dataclass(frozen=True)
class Cluster:
    nodes: tuple[Node, ...]
    network: Network = Network()

    @cached_property
    def position(self) -> Mapping[str, int]:
        return {node.name: n for n, node in enumerate(self.nodes)}

    def latency(self, source: str, target: str) -> float:
        """Seconds from one node to another; none within a node."""
        if source == target:
            return 0.0
        if (link := self.network.by_pair.get((source, target))) is not None:
            return link.latency
        if self.network.latencies is not None:
            return float(self.network.latencies[self.position[source], self.position[target]])
        if self.network.positions is not None:
            one, other = self.network.positions[[self.position[source], self.position[target]]]
            return float(np.linalg.norm(one - other))
        return self.network.latency

    def route(self, source: str, target: str) -> tuple[str, ...]:
        """The nodes that packets pass, both ends among them; without routing tables every node is a neighbour."""
        if self.network.next_hops is None or source == target:
            return (source,) if source == target else (source, target)
        towards, at = self.network.next_hops[self.position[target]], self.position[source]
        found = [source]
        while found[-1] != target:
            at = int(towards[at])
            found.append(self.nodes[at].name)
        return tuple(found)

    def bandwidth(self, source: str, target: str) -> float:
        if source == target:
            return inf
        link = self.network.by_pair.get((source, target))
        return self.network.bandwidth if link is None else link.bandwidth
