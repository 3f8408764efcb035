"""The random queries of Zhou et al., section 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from towpath.config.settings import Number, Settings, Whole
from towpath.placement.cluster import Cluster, Node
from towpath.placement.index import index
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.draw import some, spread, zipf
from towpath.problems.generate.ranges import Counts, Shares
from towpath.problems.generate.uniform import Uniform, uniform
from towpath.problems.units import Bytes, BytesPerSecond, Seconds

SINK = "sink"
EVEN = 1e-9  # the share by which a swap must make the heaviest node lighter


class Zhou(Settings):
    """The paper's values are the defaults. It leaves these open:

    - how many streams a query has. 11.5 operators per query fit 2 to 6 streams with two filters each as well as 2 or 3
      streams with four; only the latter can be processed by 32 nodes at 4 ms per stream and still leaves room for four
      nodes' streams to triple (mean load 0.66), so it is the default;
    - the shape of the joins: left deep, in the order in which the streams were drawn;
    - latency, and the size of what an operator emits;
    - whether "the network connecting the nodes" is one medium (`medium: shared`) or a link for each pair.

    `balanced` delegates streams to nodes so that the native fragments of all nodes have nearly equal load, as the
    balanced start of Fig. 6 wants; otherwise they are delegated in turn.

    Results go to one more node without cpu, as in the paper; it takes in as much as comes, because it is there to
    measure the others.
    """

    nodes: Whole = Field(32, ge=1)
    streams_per_node: Whole = Field(3, ge=1)
    queries: Whole = Field(500, ge=1)
    streams_per_query: Counts = (2, 3)
    operators_per_fragment: Number = Field(4.6, ge=1)  # on average, when cut one_per_stream: 5,750 / (500 x 2.5)
    fragmenter: Literal["one_per_stream", "one_per_operator"] = "one_per_stream"
    theta: Number = Field(0.95, ge=0)  # of the Zipf distribution by which queries choose streams; 0 is uniform
    shared: Number = Field(0.0, ge=0, le=1)  # chance that a filter over a stream is the one that others have there too
    interarrival: Seconds = Field(0.004, gt=0)  # of each stream
    tuple_bytes: Bytes = Field(100.0, gt=0)  # of streams and of everything derived from them
    filter_cost: Seconds = Field(20e-6, gt=0)
    join_cost: Seconds = Field(80e-6, gt=0)
    selectivity: Shares = (0.5, 0.8)
    window: Counts = (5_000, 20_000)  # tuples, on each side of a join
    balanced: bool = False
    medium: Literal["links", "shared"] = "links"
    bandwidth: BytesPerSecond = Field(100e6 / 8, gt=0)  # of each node and link, or of the one medium
    latency: Seconds = Field(0.0001, ge=0)


def zhou(parameters: Zhou | None = None, seed: int = 0, cluster: Cluster | None = None) -> Problem:
    """The same seed draws the same operators whatever the fragmenter."""
    p = parameters or Zhou()
    sink: str | None = None
    if cluster is None:
        cluster, sink = _cluster(p), SINK
    rng = np.random.default_rng(seed)
    streams = _streams(p, cluster)
    chosen = _chosen_streams(p, rng, streams)
    inputs = sum(len(of_query) for of_query in chosen)
    joins = inputs - len(chosen)
    filters = max(round(p.operators_per_fragment * inputs) - joins, inputs)
    lengths = iter(spread(rng, filters, inputs, least=1))
    builder = _QueryBuilder(p, rng, sink)
    for number, of_query in enumerate(chosen, start=1):
        builder.add_query(f"q{number}", [(stream, next(lengths)) for stream in of_query])
    problem = Problem(cluster, streams, tuple(builder.fragments), tuple(builder.queries))
    return replace(problem, streams=_balanced(p, problem)) if p.balanced else problem


def _balanced(p: Zhou, problem: Problem) -> tuple[PlacementStream, ...]:
    """Every node gets as many streams as before; no two nodes could be made more even by swapping one of each."""
    load = dict(zip(problem.stream, _native_loads(problem), strict=True))
    nodes = list(dict.fromkeys(stream.node for stream in problem.streams))
    heavy_first = sorted(load, key=lambda stream: -load[stream])
    held: dict[str, list[str]] = {node: [] for node in nodes}
    for n in range(0, len(heavy_first), len(nodes)):
        lightest_first = sorted(nodes, key=lambda node: sum(load[s] for s in held[node]))
        for node, stream in zip(lightest_first, heavy_first[n : n + len(nodes)], strict=False):
            held[node].append(stream)
    while (swap := _best_swap(held, load)) is not None:
        (one, a), (other, b) = swap
        held[one][a], held[other][b] = held[other][b], held[one][a]
    node_of = {stream: node for node, streams in held.items() for stream in streams}
    return tuple(replace(stream, node=node_of[stream.name]) for stream in problem.streams)


def _native_loads(problem: Problem) -> list[float]:
    """By stream, the load of its fragments; operators of equal signature are over one stream and work once."""
    columns = index(problem)
    found = dict.fromkeys(problem.stream, 0.0)
    seen: set[int] = set()
    for o, (home, work) in enumerate(zip(columns.home, columns.load, strict=True)):
        identity, native = int(columns.identity[columns.streams + o]), problem.fragments[home].native
        if identity not in seen and native is not None:
            seen.add(identity)
            found[native] += float(work)
    return list(found.values())


def _best_swap(
    held: Mapping[str, list[str]], load: Mapping[str, float]
) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """Of a stream of the heaviest node and one of another, where they bring the two nearest to each other."""
    sums = {node: sum(load[s] for s in streams) for node, streams in held.items()}
    heaviest = max(sums, key=sums.__getitem__)
    best, found = sums[heaviest], None
    for other in held:
        for a, mine in enumerate(held[heaviest]):
            for b, theirs in enumerate(held[other]):
                less = load[mine] - load[theirs]
                worst = max(sums[heaviest] - less, sums[other] + less)
                if other != heaviest and worst < best * (1 - EVEN):
                    best, found = worst, ((heaviest, a), (other, b))
    return found


def _cluster(p: Zhou) -> Cluster:
    shared = p.medium == "shared"
    wires = {"medium": p.bandwidth} if shared else {"bandwidth": p.bandwidth}
    workers = uniform(Uniform(nodes=p.nodes, latency=p.latency, **wires))
    return replace(workers, nodes=(*workers.nodes, Node(SINK, cpu=0.0)))


def _streams(p: Zhou, cluster: Cluster) -> tuple[PlacementStream, ...]:
    workers = [node.name for node in cluster.nodes if node.cpu > 0]
    number = p.streams_per_node * len(workers)
    return tuple(
        PlacementStream(f"s{n + 1}", workers[n % len(workers)], 1 / p.interarrival, p.tuple_bytes)
        for n in range(number)
    )


def _chosen_streams(p: Zhou, rng: Generator, streams: tuple[PlacementStream, ...]) -> list[list[PlacementStream]]:
    popularity = zipf(rng, len(streams), p.theta)
    least, most = (min(max(n, 1), len(streams)) for n in p.streams_per_query)
    numbers = rng.integers(least, most, size=p.queries, endpoint=True)
    return [[streams[n] for n in some(rng, popularity, int(number))] for number in numbers]


@dataclass(eq=False)
class _Branch:
    """A fragment that grows, and what leaves it."""

    stream: str
    output: str
    rate: float
    operators: list[Operator] = field(default_factory=list)


@dataclass
class _QueryBuilder:
    p: Zhou
    rng: Generator
    sink: str | None
    common: dict[tuple[str, int], float] = field(default_factory=dict)  # selectivities of the filters to be shared
    fragments: list[Fragment] = field(default_factory=list)
    queries: list[PlacementQuery] = field(default_factory=list)

    def add_query(self, name: str, inputs: list[tuple[PlacementStream, int]]) -> None:
        drafts = [self._filtered(name, stream, length) for stream, length in inputs]
        top = drafts[0]
        for number, other in enumerate(drafts[1:], start=1):
            top = self._joined(f"{name}.j{number}", top, other)
        made = _together(name, drafts) if self.p.fragmenter == "one_per_stream" else _apart(name, drafts)
        self.fragments += made
        self.queries.append(PlacementQuery(name, tuple(f.name for f in made), self.sink))

    def _filtered(self, query: str, stream: PlacementStream, length: int) -> _Branch:
        draft = _Branch(stream.name, stream.name, stream.rate)
        alike = True  # equal signatures must emit equal streams: what is shared is a prefix of the filters
        for number in range(1, length + 1):
            alike = self.rng.random() < self.p.shared and alike
            selectivity = self._selectivity()
            if alike:
                selectivity = self.common.setdefault((stream.name, number), selectivity)
            operator = Operator(
                f"{query}.{stream.name}.f{number}",
                (draft.output,),
                "filter",
                self.p.filter_cost,
                selectivity,
                tuple_bytes=self.p.tuple_bytes,
                signature=f"{stream.name}.f{number}" if alike else None,
            )
            draft.operators.append(operator)
            draft.output, draft.rate = operator.name, draft.rate * selectivity
        return draft

    def _joined(self, name: str, left: _Branch, right: _Branch) -> _Branch:
        """The join goes to the input of the higher rate, as in section 3.1, step 4."""
        window = int(self.rng.integers(*self.p.window, endpoint=True))
        operator = Operator(
            name,
            (left.output, right.output),
            "join",
            self.p.join_cost,
            self._selectivity(),
            state_bytes=2 * window * self.p.tuple_bytes,
            tuple_bytes=self.p.tuple_bytes,
        )
        heavier = left if left.rate >= right.rate else right
        heavier.operators.append(operator)
        heavier.output, heavier.rate = name, (left.rate + right.rate) * operator.selectivity
        return heavier

    def _selectivity(self) -> float:
        return float(self.rng.uniform(*self.p.selectivity))


def _together(query: str, drafts: list[_Branch]) -> list[Fragment]:
    return [Fragment(f"{query}.{d.stream}", query, tuple(d.operators), d.stream) for d in drafts]


def _apart(query: str, drafts: list[_Branch]) -> list[Fragment]:
    return [Fragment(o.name, query, (o,), d.stream) for d in drafts for o in d.operators]
