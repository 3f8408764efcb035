"""The queries of SQPR's section V: joins over popular streams that many of them share."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.draw import some, zipf
from towpath.problems.generate.ranges import Counts, Shares
from towpath.problems.generate.uniform import Uniform, uniform
from towpath.problems.units import Bytes, BytesPerSecond, Seconds


class Sqpr(Settings):
    """The paper leaves open the tuple's size, which node wants a query's results (one drawn at random), and the cost of
    a join: it says that CPU and bandwidth both bind, so `cost` is where 1,000 queries need about what 50 nodes have.

    Joins are left deep over the streams in order of their names, one fragment each; equal joins have equal signatures.
    """

    nodes: Whole = Field(50, ge=1)
    streams: Whole = Field(500, ge=1)
    data_rate: BytesPerSecond = Field(10e6 / 8, gt=0)  # of each stream
    tuple_bytes: Bytes = Field(1_000.0, gt=0)
    queries: Whole = Field(1_000, ge=1)
    ways: Counts = (2, 4)  # of the joins, in equal parts
    selectivity: Shares = (0.001, 0.005)
    theta: Number = Field(1.0, ge=0)
    cost: Seconds = Field(15e-6, ge=0)
    bandwidth: BytesPerSecond = Field(1e9 / 8, gt=0)
    latency: Seconds = Field(0.0001, ge=0)


def sqpr(parameters: Sqpr | None = None, seed: int = 0, cluster: Cluster | None = None) -> Problem:
    p = parameters or Sqpr()
    if cluster is None:
        cluster = uniform(Uniform(nodes=p.nodes, bandwidth=p.bandwidth, latency=p.latency))
    rng = np.random.default_rng(seed)
    rate = p.data_rate / p.tuple_bytes
    at = rng.integers(len(cluster.nodes), size=p.streams)
    streams = tuple(
        PlacementStream(f"s{n}", cluster.nodes[node].name, rate, p.tuple_bytes) for n, node in enumerate(at, 1)
    )
    popularity = zipf(rng, p.streams, p.theta)
    least, most = (min(max(n, 2), p.streams) for n in p.ways)
    selectivities: dict[str, float] = {}  # of a join, by its signature
    fragments: list[Fragment] = []
    queries: list[PlacementQuery] = []
    for n in range(p.queries):
        query = f"q{n + 1}"
        sink = cluster.nodes[int(rng.integers(len(cluster.nodes)))].name
        chosen = [streams[i] for i in sorted(some(rng, popularity, least + n % (most - least + 1)))]
        below = joined = chosen[0].name
        made: list[Fragment] = []
        for number, stream in enumerate(chosen[1:], start=1):
            joined = f"{joined}*{stream.name}"
            selectivity = selectivities.setdefault(joined, float(rng.uniform(*p.selectivity)))
            name, inputs = f"{query}.j{number}", (below, stream.name)
            join = Operator(name, inputs, "join", p.cost, selectivity, tuple_bytes=p.tuple_bytes, signature=joined)
            made.append(Fragment(name, query, (join,), stream.name))
            below = name
        fragments += made
        queries.append(PlacementQuery(query, tuple(f.name for f in made), sink))
    return Problem(cluster, streams, tuple(fragments), tuple(queries))
