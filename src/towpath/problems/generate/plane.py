"""Nodes on a square, however many: latencies are distances, and no matrix of them is made."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster, Network, Node
from towpath.problems.units import Seconds


class Plane(Settings):
    nodes: Whole = Field(ge=1, le=1_000_000, examples=[1000])
    diameter: Seconds = Field(0.2, gt=0)  # from corner to corner
    cpu: Number = Field(1.0, gt=0)


def plane(parameters: Plane, seed: int = 0) -> Cluster:
    side = parameters.diameter / np.sqrt(2)
    positions = np.random.default_rng([seed, 6]).random((parameters.nodes, 2)) * side
    nodes = tuple(Node(f"n{n}", parameters.cpu) for n in range(1, parameters.nodes + 1))
    return Cluster(nodes, Network(positions=positions))
