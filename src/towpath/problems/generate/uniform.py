"""A cluster of equal nodes, equally far from each other."""

from __future__ import annotations

import math

from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster, Network, Node
from towpath.problems.units import Bytes, BytesPerSecond, Seconds


class Uniform(Settings):
    nodes: Whole = Field(ge=1, le=1_000_000, examples=[32])
    cpu: Number = Field(1.0, gt=0)
    memory: Bytes = Field(math.inf, gt=0)
    bandwidth: BytesPerSecond = Field(math.inf, gt=0)  # of each node in each direction, and of each link
    medium: BytesPerSecond = Field(math.inf, gt=0)  # that all nodes share
    latency: Seconds = Field(0.0, ge=0)


def uniform(parameters: Uniform) -> Cluster:
    nodes = tuple(
        Node(f"n{n}", parameters.cpu, parameters.memory, parameters.bandwidth, parameters.bandwidth)
        for n in range(1, parameters.nodes + 1)
    )
    return Cluster(nodes, Network(parameters.latency, parameters.bandwidth, parameters.medium))
