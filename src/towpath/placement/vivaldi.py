"""Network coordinates by Vivaldi (Dabek et al., SIGCOMM 2004), as SBON's section 3.1.1 uses them.

Each node keeps a point and how much it trusts it, and corrects both with every latency that it measures to another
node. The distance between two points then predicts the latency between their nodes, also where nobody has measured it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from towpath.placement.index import Floats, Ints

Sample = Callable[[Ints, Ints], Floats]  # the latencies measured between pairs of nodes, in seconds; NaN: none

DIMENSIONS = 3
CORRECTION = 0.25  # c_c: how far a measurement moves a point
SMOOTHING = 0.25  # c_e: how fast the error follows the newest measurements
LEAST_S = 1e-6  # a latency of zero has no relative error


@dataclass
class PercentileFilter:
    """What a link's measurements settle on: their 20th percentile over the last ten, so that load does not show."""

    percentile: float = 20.0
    history: int = 10
    _samples: deque[float] = field(default_factory=deque)

    def __call__(self, sample: float) -> float:
        self._samples.append(sample)
        if len(self._samples) > self.history:
            self._samples.popleft()
        ordered = sorted(self._samples)  # of ten numbers this takes a fiftieth of the time of np.percentile
        below, part = divmod((len(ordered) - 1) * self.percentile / 100, 1)
        low, high = ordered[int(below)], ordered[min(int(below) + 1, len(ordered) - 1)]
        return low + part * (high - low)


def corrected(
    points: Floats, errors: Floats, others: Floats, other_errors: Floats, latency: Floats
) -> tuple[Floats, Floats]:
    """Points and errors of nodes after each has measured its latency to another one: a row for each."""
    latency = np.maximum(latency, LEAST_S)
    away = points - others
    distance = np.linalg.norm(away, axis=1)
    weight = errors / (errors + other_errors)
    error = np.abs(distance - latency) / latency
    share = SMOOTHING * weight
    direction = away / np.maximum(distance, LEAST_S)[:, None]
    moved = points + (CORRECTION * weight * (latency - distance))[:, None] * direction
    return moved, np.clip(error * share + errors * (1 - share), LEAST_S, 10.0)


class Coordinates:
    """The points of nodes, corrected measurement by measurement."""

    def __init__(self, nodes: int, seed: int = 0, dimensions: int = DIMENSIONS) -> None:
        self._rng = np.random.default_rng([seed, 7])
        # Nodes that begin in one point would not know in which direction to part.
        self.points: Floats = self._rng.normal(scale=LEAST_S, size=(nodes, dimensions))
        self.errors: Floats = np.ones(nodes)

    def measure(self, nodes: Ints, others: Ints, latency: Floats) -> None:
        """Each of `nodes`, all different, has measured its latency to one of `others`."""
        known = np.isfinite(latency) & (latency >= 0) & (nodes != others)
        nodes, others = nodes[known], others[known]
        self.points[nodes], self.errors[nodes] = corrected(
            self.points[nodes], self.errors[nodes], self.points[others], self.errors[others], latency[known]
        )

    def distance(self, nodes: Ints, others: Ints) -> Floats:
        """The latencies that the points predict."""
        return np.asarray(np.linalg.norm(self.points[nodes] - self.points[others], axis=1))


def embed(sample: Sample, nodes: int, rounds: int = 400, seed: int = 0) -> Coordinates:
    """Coordinates after so many rounds, in each of which every node measures its latency to a random other one."""
    found = Coordinates(nodes, seed)
    rng, everyone = np.random.default_rng([seed, 8]), np.arange(nodes)
    if nodes > 1:
        for _ in range(rounds):
            others = (everyone + rng.integers(1, nodes, nodes)) % nodes
            found.measure(everyone, others, sample(everyone, others))
    return found
