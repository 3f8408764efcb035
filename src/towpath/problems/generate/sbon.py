"""The queries of SBON's section 4.1: several producers, one aggregator, one consumer."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.transit_stub import TransitStub, transit_stub
from towpath.problems.units import Bytes, BytesPerSecond, Seconds


class Sbon(Settings):
    """Each producer is a stream that only its query reads. The paper leaves open the size of a tuple and the cost."""

    queries: Whole = Field(1_000, ge=1)
    producers: Whole = Field(4, ge=1)  # of each query, all on different nodes
    data_rate: BytesPerSecond = Field(2_000.0, gt=0)  # of each producer
    tuple_bytes: Bytes = Field(100.0, gt=0)
    selectivity: Number = Field(1 / 8, gt=0)
    cost: Seconds = Field(0.0, ge=0)


def sbon(parameters: Sbon | None = None, seed: int = 0, cluster: Cluster | None = None) -> Problem:
    """On the paper's transit-stub topology if no cluster is given."""
    p = parameters or Sbon()
    cluster = transit_stub(TransitStub(), seed) if cluster is None else cluster
    if len(cluster.nodes) < p.producers:
        raise ValueError(f"{p.producers} producers need as many nodes, but there are {len(cluster.nodes)}")
    rng = np.random.default_rng([seed, 1])  # apart from the topology's draws
    rate = p.data_rate / p.tuple_bytes
    streams: list[PlacementStream] = []
    fragments: list[Fragment] = []
    queries: list[PlacementQuery] = []
    for name in (f"q{n}" for n in range(1, p.queries + 1)):
        producers = rng.choice(len(cluster.nodes), size=p.producers, replace=False)
        consumer = cluster.nodes[int(rng.integers(len(cluster.nodes)))]
        own = [
            PlacementStream(f"{name}.p{n}", cluster.nodes[at].name, rate, p.tuple_bytes)
            for n, at in enumerate(producers, 1)
        ]
        aggregator = Operator(
            f"{name}.a", tuple(s.name for s in own), "join", p.cost, p.selectivity, tuple_bytes=p.tuple_bytes
        )
        streams += own
        fragments.append(Fragment(f"{name}.a", name, (aggregator,), own[0].name))
        queries.append(PlacementQuery(name, (f"{name}.a",), consumer.name))
    return Problem(cluster, tuple(streams), tuple(fragments), tuple(queries))
