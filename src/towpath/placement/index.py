"""A problem as columns of numbers: built once per Problem, so that 100,000 fragments are a matter of array operations.

Streams and operators share one numbering, streams first: "point" is either. Operators come fragment by fragment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from towpath.placement.cluster import Cluster
from towpath.placement.problem import EVERYWHERE, Operator, Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Index:
    """Only `validate` meets unknown inputs (-1 in `inputs`), cycles and names that are not unique."""

    problem: Problem

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(self.problem.operators())

    @cached_property
    def points(self) -> tuple[str, ...]:
        return tuple(map(attrgetter("name"), chain(self.problem.streams, self.operators)))

    @cached_property
    def point(self) -> dict[str, int]:
        return dict(zip(self.points, range(len(self.points)), strict=True))

    @cached_property
    def fragment(self) -> dict[str, int]:
        return {f.name: n for n, f in enumerate(self.problem.fragments)}

    @property
    def streams(self) -> int:
        """How many points are streams: also the point of the first operator."""
        return len(self.problem.streams)

    @cached_property
    def first(self) -> Ints:
        """The first operator of each fragment, and the number of operators at the end."""
        sizes = np.fromiter((len(f.operators) for f in self.problem.fragments), np.int64)
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def home(self) -> Ints:
        """The fragment of each operator."""
        return np.repeat(np.arange(len(self.problem.fragments)), np.diff(self.first))

    @cached_property
    def stream_node(self) -> Ints:
        """Where each stream enters; -1: every node reads it by itself."""
        position = {EVERYWHERE: -1, **self.problem.cluster.position}
        return np.fromiter((position[s.node] for s in self.problem.streams), np.int64, self.streams)

    @cached_property
    def identity(self) -> Ints:
        """Of each point: equal where signatures are equal, so that what is equal is counted once per node."""
        found = np.arange(len(self.points))
        first: dict[str, int] = {}
        for n, signature in enumerate(map(attrgetter("signature"), self.operators), self.streams):
            if signature is not None:
                found[n] = first.setdefault(signature, n)
        return found

    @cached_property
    def first_input(self) -> Ints:
        """Where the inputs of each operator begin in `inputs`, and the number of them at the end."""
        sizes = np.fromiter((len(o.inputs) for o in self.operators), np.int64, len(self.operators))
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def inputs(self) -> Ints:
        """The points that the operators read, operator by operator."""
        names = chain.from_iterable(map(attrgetter("inputs"), self.operators))
        return np.fromiter(map(self.point.get, names, repeat(-1)), np.int64, self.first_input[-1])

    @cached_property
    def readers(self) -> Ints:
        """The operator that reads each of `inputs`."""
        return np.repeat(np.arange(len(self.operators)), np.diff(self.first_input))

    @cached_property
    def late(self) -> Ints:
        """Which of `inputs` are made by an operator of the reader's fragment that does not come before the reader."""
        sources = self.inputs - self.streams
        later = np.flatnonzero(sources >= self.readers)
        return later[self.home[sources[later]] == self.home[self.readers[later]]]

    @cached_property
    def levels(self) -> tuple[Ints, ...]:
        return tuple(levels(self.inputs - self.streams, self.readers, len(self.operators)))

    @cached_property
    def results(self) -> tuple[Ints, Ints]:
        """Operators whose output leaves their query, and the node that wants it (-1: none does)."""
        query = {q.name: n for n, q in enumerate(self.problem.queries)}
        position = self.problem.cluster.position
        query_of = np.fromiter((query[f.query] for f in self.problem.fragments), np.int64)[self.home]
        from_operator = self.inputs >= self.streams
        source, reader = self.inputs[from_operator] - self.streams, self.readers[from_operator]
        read_within = np.zeros(len(self.operators), bool)
        read_within[source[query_of[source] == query_of[reader]]] = True
        roots = np.flatnonzero(~read_within)
        sinks = np.fromiter((-1 if q.sink is None else position[q.sink] for q in self.problem.queries), np.int64)
        return roots, sinks[query_of[roots]]

    def _column(self, name: str) -> Floats:
        return np.fromiter(map(attrgetter(name), self.operators), np.float64, len(self.operators))

    @cached_property
    def cost(self) -> Floats:
        return self._column("cost")

    @cached_property
    def selectivity(self) -> Floats:
        return self._column("selectivity")

    @cached_property
    def state_bytes(self) -> Floats:
        return self._column("state_bytes")

    @cached_property
    def tuple_bytes(self) -> Floats:
        """Of what each point emits."""
        return np.concatenate([[s.tuple_bytes for s in self.problem.streams], self._column("tuple_bytes")])

    @cached_property
    def rate_out(self) -> Floats:
        """Tuples per second that each point emits in the steady state."""
        rate = np.zeros(len(self.points))
        rate[: self.streams] = [s.rate for s in self.problem.streams]
        for level in self.levels:
            edges, owner = ranges(self.first_input, level)
            total = sums(owner, rate[self.inputs[edges]], len(level))
            rate[level + self.streams] = total * self.selectivity[level]
        return rate

    @cached_property
    def rate_in(self) -> Floats:
        """Tuples per second that each operator takes in, over all its inputs."""
        return sums(self.readers, self.rate_out[self.inputs], len(self.operators))

    @cached_property
    def load(self) -> Floats:
        """Seconds of work per second of each operator, on a node of cpu 1."""
        return self.rate_in * self.cost

    @cached_property
    def state_tuples(self) -> Floats:
        """How many tuples the state of each operator is, each as large as the mean of its input."""
        read = sums(self.readers, self.bytes_out[self.inputs], len(self.operators))
        size = np.divide(read, self.rate_in, out=np.ones(len(self.operators)), where=read > 0)
        return self.state_bytes / size

    @cached_property
    def bytes_out(self) -> Floats:
        return self.rate_out * self.tuple_bytes

    def by_fragment(self, values: Floats) -> Floats:
        """The sums of a column of the operators over each fragment."""
        return sums(self.home, values, len(self.problem.fragments))


def index(problem: Problem) -> Index:
    # A Problem cannot be hashed, so the index is kept where functools.cached_property would keep it.
    kept = vars(problem).setdefault("_index", Index(problem))
    assert isinstance(kept, Index)
    return kept


def sums(groups: Ints, values: Floats, count: int) -> Floats:
    """The sum of the values of each of `count` groups."""
    return np.bincount(groups, values, count).astype(np.float64, copy=False)


def ranges(first: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """All positions first[c] <= i < first[c + 1] for each c chosen, and which of the chosen each belongs to."""
    sizes = first[chosen + 1] - first[chosen]
    owner = np.repeat(np.arange(len(chosen)), sizes)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return first[chosen][owner] + within, owner


def levels(sources: Ints, readers: Ints, count: int) -> Iterable[Ints]:
    """Operators by the length of the longest way to them from the streams; those in a cycle never come.

    `sources[i]` is read by `readers[i]`; it is negative for a stream.
    """
    known = sources >= 0
    order = np.argsort(sources[known], kind="stable")
    read_by = readers[known][order]
    first = np.searchsorted(sources[known][order], np.arange(count + 1))
    waiting = np.bincount(readers[known], minlength=count)
    ready = np.flatnonzero(waiting == 0)
    while len(ready):
        yield ready
        freed = read_by[ranges(first, ready)[0]]
        np.subtract.at(waiting, freed, 1)
        ready = np.unique(freed[waiting[freed] == 0])


def latencies(cluster: Cluster, sources: Ints, targets: Ints) -> Floats:
    """`Cluster.latency` of many pairs of nodes, by position."""
    network = cluster.network
    if network.latencies is not None:
        found = network.latencies[sources, targets].astype(np.float64)
    elif network.positions is not None:
        found = np.asarray(np.linalg.norm(network.positions[sources] - network.positions[targets], axis=-1))
    else:
        found = np.full(len(sources), network.latency)
    _overrule(cluster, sources, targets, found, [link.latency for link in cluster.network.by_pair.values()])
    found[sources == targets] = 0.0
    return found


def bandwidths(cluster: Cluster, sources: Ints, targets: Ints) -> Floats:
    """`Cluster.bandwidth` of many pairs of nodes, by position."""
    found = np.full(len(sources), cluster.network.bandwidth)
    _overrule(cluster, sources, targets, found, [link.bandwidth for link in cluster.network.by_pair.values()])
    found[sources == targets] = np.inf
    return found


def _overrule(cluster: Cluster, sources: Ints, targets: Ints, found: Floats, of_links: Sequence[float]) -> None:
    """Where a pair has a link of its own, the link's value counts."""
    if not of_links:
        return
    position, count = cluster.position, len(cluster.nodes)
    keys = np.array([position[a] * count + position[b] for a, b in cluster.network.by_pair])
    order = np.argsort(keys)
    wanted = sources * count + targets
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    linked = keys[place] == wanted
    found[linked] = np.array(of_links)[place[linked]]
