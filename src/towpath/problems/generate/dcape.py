"""The query plans of D-CAPE, sections 4.3.1, 5.1.4 and 6.3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

from pydantic import Field, model_validator

from towpath.config.settings import Number, Settings, Whole, refusal
from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.trees import ChainSegment, join_tree
from towpath.problems.generate.uniform import Uniform, uniform
from towpath.problems.units import Bytes, BytesPerSecond, Seconds

FEED, LISTENER = "feed", "listener"
GIGABIT = 1e9 / 8
TUPLES, RUN_S = 72_000, 1_800  # section 4.3.1: that many tuples per stream in 30 minutes


class Dcape(Settings):
    """`queries` plans of equal shape: binary trees of joins with chains of single-stream operators between them.

    The thesis gives the number of operators, the depth (operators on the longest path) and the breadth (streams) of its
    plans, the rate of the streams, the selectivities and the windows. It leaves these open:

    - the trees themselves: as balanced as can be unless `joins` says left_deep; single-stream operators first make the
      longest path, then lie evenly over the rest, all of them before the first join if `singles` says streams;
    - the constants of its cost equations 3.1 to 3.3, and the size of a tuple.

    Streams come from machines of their own and results go to others (section 4.3.1): nodes without cpu, which run
    nothing. Every operator is a fragment of its own, because D-CAPE places operators.
    """

    processors: Whole = Field(5, ge=1)
    feeds: Whole = Field(2, ge=1)
    listeners: Whole = Field(2, ge=1)
    operators: Whole = Field(20, ge=1)  # of each plan, as are the next two
    streams: Whole = Field(6, ge=1)
    depth: Whole = Field(9, ge=1)
    queries: Whole = Field(1, ge=1)
    joins: Literal["balanced", "left_deep"] = "balanced"
    singles: Literal["everywhere", "streams"] = "everywhere"
    rate: Number = Field(TUPLES / RUN_S, gt=0)
    tuple_bytes: Bytes = Field(100.0, gt=0)
    window: Seconds = Field(10.0, ge=0)
    join_selectivity: Number = Field(2.0, gt=0)
    single_selectivity: Number = Field(1.0, gt=0)
    queue_cost: Seconds = Field(20e-6, ge=0)  # omega: to read a tuple from a queue or to write it to one
    predicate_cost: Seconds = Field(100e-6, ge=0)  # rho of a single-stream operator
    pair_cost: Seconds = Field(0.1e-6, ge=0)  # rho of a join: to compare two tuples
    purge_cost: Seconds = Field(0.01e-6, ge=0)  # psi: to look at a tuple of the state
    memory: Bytes = Field(2e9, gt=0)
    bandwidth: BytesPerSecond = Field(GIGABIT, gt=0)
    latency: Seconds = Field(0.0001, ge=0)

    @model_validator(mode="after")
    def _has_a_shape(self) -> Self:
        try:
            join_tree(self.operators, self.streams, self.depth, self.joins, self.singles)
        except ValueError as error:
            raise refusal(f"no plan is like that: {error}", "change operators, streams or depth") from error
        return self


# Section 5.1.4. Plan 1 is a chain in Fig. 5.4 and five joins in Fig. 5.12. Plan 4 has two outputs (section 5.1.6) and
# twice the operators and breadth of plan 3 at equal depth, so it is plan 3 twice.
PLANS: Mapping[str, Dcape] = {
    "1": Dcape(operators=5, streams=1, depth=5),
    "1-joins": Dcape(operators=5, streams=6, depth=5, joins="left_deep", window=60.0),
    "2": Dcape(operators=20, streams=6, depth=9),
    "3": Dcape(operators=40, streams=8, depth=14),
    "4": Dcape(operators=40, streams=8, depth=14, queries=2),
}


def dcape(parameters: Dcape | None = None, seed: int = 0, cluster: Cluster | None = None) -> Problem:
    """Nothing of it is drawn, so every seed gives the same. On a cluster that is given, streams enter at its nodes."""
    p = parameters or Dcape()
    if cluster is None:
        cluster = _testbed(p)
        feeds, listeners = _named(cluster, FEED), _named(cluster, LISTENER)
    else:
        feeds, listeners = tuple(cluster.position), ()
    return _of_tree(p, join_tree(p.operators, p.streams, p.depth, p.joins, p.singles), cluster, feeds, listeners)


def drawn(parameters: Dcape, tree: ChainSegment) -> Problem:
    """The plans with another tree than the parameters would give."""
    cluster = _testbed(parameters)
    return _of_tree(parameters, tree, cluster, _named(cluster, FEED), _named(cluster, LISTENER))


def _of_tree(
    p: Dcape, tree: ChainSegment, cluster: Cluster, feeds: tuple[str, ...], listeners: tuple[str, ...]
) -> Problem:
    names = [f"s{n + 1}" for n in range(p.streams * p.queries)]
    streams = [PlacementStream(name, feeds[n % len(feeds)], p.rate, p.tuple_bytes) for n, name in enumerate(names)]
    fragments: list[Fragment] = []
    queries: list[PlacementQuery] = []
    for n in range(p.queries):
        query = f"q{n + 1}"
        made = _Plan(p, query, streams[n * p.streams : (n + 1) * p.streams]).fragments(tree)
        fragments += made
        sink = listeners[n % len(listeners)] if listeners else None
        queries.append(PlacementQuery(query, tuple(f.name for f in made), sink))
    return Problem(cluster, tuple(streams), tuple(fragments), tuple(queries))


def _testbed(p: Dcape) -> Cluster:
    processors = uniform(Uniform(nodes=p.processors, memory=p.memory, bandwidth=p.bandwidth, latency=p.latency))
    others = [(FEED, n) for n in range(1, p.feeds + 1)] + [(LISTENER, n) for n in range(1, p.listeners + 1)]
    nodes = (Node(f"{kind}{n}", 0.0, p.memory, p.bandwidth, p.bandwidth) for kind, n in others)
    return replace(processors, nodes=(*processors.nodes, *nodes))


def _named(cluster: Cluster, kind: str) -> tuple[str, ...]:
    return tuple(node.name for node in cluster.nodes if node.name.startswith(kind))


@dataclass(frozen=True)
class _Flow:
    """What leaves an operator."""

    name: str
    stream: str  # that brings most of it
    rate: float


class _Plan:
    def __init__(self, p: Dcape, query: str, streams: list[PlacementStream]) -> None:
        self._p = p
        self._query = query
        self._streams = iter(streams)
        self._made: list[Fragment] = []

    def fragments(self, root: ChainSegment) -> list[Fragment]:
        self._visit(root)
        return self._made

    def _visit(self, segment: ChainSegment) -> _Flow:
        if segment.below:
            left, right = (self._visit(below) for below in segment.below)
            flow = self._join(left, right)
        else:
            stream = next(self._streams)
            flow = _Flow(stream.name, stream.name, stream.rate)
        for _ in range(segment.singles):
            flow = self._single(flow)
        return flow

    def _single(self, below: _Flow) -> _Flow:
        p = self._p
        # eq. 3.2 per tuple: omega + rho + sigma omega
        cost = p.queue_cost + p.predicate_cost + p.single_selectivity * p.queue_cost
        operator = Operator(
            self._name("o"), (below.name,), "filter", cost, p.single_selectivity, tuple_bytes=p.tuple_bytes
        )
        return self._add(operator, below.stream, below.rate)

    def _join(self, left: _Flow, right: _Flow) -> _Flow:
        p = self._p
        n1, n2 = left.rate, right.rate
        s1, s2 = n1 * p.window, n2 * p.window
        # eq. 3.3 per tuple, n = n1 + n2: omega + (psi (s1 + s2) + rho (n1 s2 + n2 s1)) / n + sigma omega
        state = (p.purge_cost * (s1 + s2) + p.pair_cost * (n1 * s2 + n2 * s1)) / (n1 + n2)
        cost = p.queue_cost + state + p.join_selectivity * p.queue_cost
        operator = Operator(
            self._name("j"),
            (left.name, right.name),
            "join",
            cost,
            p.join_selectivity,
            state_bytes=(s1 + s2) * p.tuple_bytes,
            tuple_bytes=p.tuple_bytes,
        )
        return self._add(operator, left.stream if n1 >= n2 else right.stream, n1 + n2)

    def _add(self, operator: Operator, stream: str, rate: float) -> _Flow:
        self._made.append(Fragment(operator.name, self._query, (operator,), stream))
        return _Flow(operator.name, stream, rate * operator.selectivity)

    def _name(self, kind: str) -> str:
        return f"{self._query}.{kind}{len(self._made) + 1}"
