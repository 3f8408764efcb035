"""Latencies and loads that change over time: a slice every so often, each drawn from the one before.

Slices can be written as numbered matrix files, which the topology `matrix` and `towpath simulate --latencies` read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from towpath.placement.cluster import Cluster
from towpath.placement.index import latencies

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Drifting:
    """A latency is its base times the factors of both nodes, which wander, and of its route, which changes at times."""

    every: float = 300.0  # seconds between two slices
    node_spread: float = 0.1  # of the logarithm of a node's factor: congestion of its own line
    memory: float = 3_600.0  # seconds after which little is left of what a node's factor or load was
    route_spread: float = 0.05  # of the logarithm of a route's factor
    route_life: float = 14_400.0  # seconds that a route stays on average

    def slices(self, cluster: Cluster, number: int, seed: int = 0) -> Iterator[Matrix]:
        """Seconds, by position in the cluster's nodes. All slices are alike: the first is no calmer than the last."""
        rng, count = np.random.default_rng([seed, 4]), len(cluster.nodes)
        sources, targets = (side.ravel() for side in np.indices((count, count)))
        base = latencies(cluster, sources, targets).reshape(count, count)
        route = _symmetric(rng.normal(0.0, self.route_spread, (count, count)))
        for node in self._wandering(rng, count, number):
            scaled = self.node_spread * node
            yield base * np.exp(scaled[:, None] + scaled[None] + route)
            changes = _symmetric(rng.random((count, count))) < 1 - np.exp(-self.every / self.route_life)
            route = np.where(changes, _symmetric(rng.normal(0.0, self.route_spread, (count, count))), route)

    def loads(self, nodes: int, number: int, most: float, seed: int = 0) -> Iterator[Matrix]:
        """By node: any load up to `most` is as likely as any other."""
        for wandering in self._wandering(np.random.default_rng([seed, 5]), nodes, number):
            yield most * _uniform(wandering)

    def _wandering(self, rng: Generator, count: int, number: int) -> Iterator[Matrix]:
        """Numbers of mean 0 and deviation 1 that forget what they were (an Ornstein-Uhlenbeck process)."""
        kept = float(np.exp(-self.every / self.memory))
        now = rng.normal(size=count)
        for _ in range(number):
            yield now
            now = kept * now + np.sqrt(1 - kept**2) * rng.normal(size=count)


def write(folder: Path, slices: Iterable[Matrix]) -> None:
    """1.txt, 2.txt and so on: round-trip times in milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seconds in enumerate(slices, start=1):
        np.savetxt(folder / f"{number}.txt", 2_000 * seconds, fmt="%.3f")


def _symmetric(values: Matrix) -> Matrix:
    upper = np.triu(values, 1)
    return np.asarray(upper + upper.T)


def _uniform(normal: Matrix) -> Matrix:
    """The share of a normal distribution below each number, by its usual approximation (Bowling et al., 2009)."""
    return np.asarray(1 / (1 + np.exp(-(0.07056 * normal**3 + 1.5976 * normal))))
