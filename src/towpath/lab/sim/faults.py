"""What goes wrong, or just changes, in a cluster while a simulation runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.placement.cluster import Cluster
from towpath.placement.index import latencies


@dataclass(frozen=True)
class Crash:
    """A node dies with all that waits at it and all its state, and comes back empty."""

    at: float
    node: str
    until: float | None = None


@dataclass(frozen=True)
class Cut:
    """What is sent over a link, in its one direction, is lost; what is under way arrives."""

    at: float
    source: str
    target: str
    until: float | None = None


@dataclass(frozen=True)
class Drift:
    """Latencies change."""

    at: float
    latencies: NDArray[np.floating[Any]]  # seconds, by position in the cluster's nodes; NaN leaves one as it is


Fault = Crash | Cut | Drift


def drift(slices: Iterable[NDArray[np.floating[Any]]], every: float) -> list[Drift]:
    """A series of latencies: the first slice holds from the start, each other one as many times `every` later."""
    return [Drift(number * every, latencies) for number, latencies in enumerate(slices)]


def random_walk(cluster: Cluster, every: float, seconds: float, spread: float, seed: int = 0) -> Sequence[Drift]:
    """Every so often each latency is multiplied by a lognormal number of that spread; both directions alike."""
    rng = np.random.default_rng(seed)
    count = len(cluster.nodes)
    sources, targets = (side.ravel() for side in np.indices((count, count)))
    now = latencies(cluster, sources, targets).reshape(count, count)
    made = []
    for step in range(1, int(seconds / every) + 1):
        factor = np.triu(rng.lognormal(0.0, spread, (count, count)), 1)
        now = now * (factor + factor.T + np.eye(count))
        made.append(Drift(step * every, now))
    return made
