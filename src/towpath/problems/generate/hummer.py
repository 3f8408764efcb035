"""The queries of WS-Aggregation's section 7.2: inputs over a few sources, taken in turn, that wait for each other."""

from __future__ import annotations

from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.uniform import Uniform, uniform
from towpath.problems.units import Bytes, Seconds

OUTSIDE = "outside"  # where sources are; aggregators subscribe to them there


class Hummer(Settings):
    """Each input is a fragment. The second of a query also reads the first: the paper's one dependency.

    Ten events make one input with the content of all ten. The paper leaves open how long events are buffered and what
    an event costs; with the defaults all 90 inputs together need less than one node has.
    """

    nodes: Whole = Field(7, ge=1)
    sources: Whole = Field(10, ge=1)
    queries: Whole = Field(30, ge=1)
    inputs: Whole = Field(3, ge=2)  # of each query
    rate: Number = Field(1.0, gt=0)  # events of each source
    event_bytes: Bytes = Field(250.0, gt=0)
    group: Whole = Field(10, ge=1)  # events that make one input
    buffered: Seconds = Field(600.0, ge=0)
    cost: Seconds = Field(0.005, ge=0)
    copies: Whole = Field(1, ge=1)  # red(q)


def hummer(parameters: Hummer | None = None, seed: int = 0, cluster: Cluster | None = None) -> Problem:
    """Nothing in it is drawn, so every seed gives the same."""
    p = parameters or Hummer()
    if cluster is None:
        aggregators = uniform(Uniform(nodes=p.nodes))
        cluster = Cluster((*aggregators.nodes, Node(OUTSIDE, cpu=0.0)), aggregators.network)
    at = cluster.nodes[-1].name
    streams = tuple(PlacementStream(f"s{n}", at, p.rate, p.event_bytes) for n in range(1, p.sources + 1))
    fragments: list[Fragment] = []
    queries: list[PlacementQuery] = []
    for number in range(p.queries):
        query = f"q{number + 1}"
        names = [f"{query}.i{n + 1}" for n in range(p.inputs)]
        for n, name in enumerate(names):
            source = streams[(number * p.inputs + n) % p.sources].name
            fragments.append(Fragment(name, query, (_input(p, name, source, names[0] if n == 1 else None),), source))
        queries.append(PlacementQuery(query, tuple(names), copies=p.copies))
    return Problem(cluster, streams, tuple(fragments), tuple(queries))


def _input(p: Hummer, name: str, source: str, waits_for: str | None) -> Operator:
    return Operator(
        name,
        (source,) if waits_for is None else (source, waits_for),
        "aggregate",
        p.cost,
        1 / p.group,
        p.rate * p.buffered * p.event_bytes,
        p.event_bytes * p.group,
    )
