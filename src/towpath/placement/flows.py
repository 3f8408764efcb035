"""What flows, and what it takes, when a problem's streams run at their stated rates.

A placement sends every result and every stream at most once from one node to another, however many fragments there read
it; operators of equal signature on one node run as one. A fragment reads the copy of its input on its own node, else
the first copy that the placement names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np

from towpath.placement.index import Floats, Index, Ints, index, ranges, sums
from towpath.placement.problem import EVERYWHERE, Operator, Placement, Problem
from towpath.placement.statistics import Statistics


@dataclass(frozen=True, slots=True)
class OperatorRates:
    rate_in: float  # tuples per second, over all inputs
    rate_out: float
    load: float  # seconds of work per second on a node of cpu 1.0
    bytes_out: float  # per second


@dataclass(frozen=True, slots=True)
class Flow:
    """What one fragment reads of a stream, or of an operator of another fragment."""

    producer: str  # a stream or an operator
    consumer: str  # a fragment
    tuples: float  # per second
    bytes: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """A flow between two nodes."""

    producer: str  # a stream or an operator
    source: str
    target: str
    tuples: float  # per second
    bytes: float


@dataclass(frozen=True, eq=False)
class Usage:
    """What a placement takes, in columns: by node, and one row per transfer."""

    load: Floats  # seconds of work per second, transfers included, as if every cpu were 1.0
    state_bytes: Floats
    state_tuples: Floats
    bytes_in: Floats
    bytes_out: Floats
    producer: Ints  # of each transfer: the point (placement/index.py)
    source: Ints
    target: Ints
    tuples: Floats
    bytes: Floats


def operator_rates(problem: Problem) -> Mapping[str, OperatorRates]:
    columns = index(problem)
    rows = zip(
        columns.rate_in.tolist(),
        columns.rate_out[columns.streams :].tolist(),
        columns.load.tolist(),
        columns.bytes_out[columns.streams :].tolist(),
        strict=True,
    )
    return {o.name: OperatorRates(*row) for o, row in zip(columns.operators, rows, strict=True)}


def fragment_loads(problem: Problem) -> Mapping[str, float]:
    """Seconds of work per second on a node of cpu 1.0."""
    columns = index(problem)
    return dict(zip(columns.fragment, columns.by_fragment(columns.load).tolist(), strict=True))


def fragment_states(problem: Problem) -> Mapping[str, float]:
    """Bytes of state."""
    columns = index(problem)
    return dict(zip(columns.fragment, columns.by_fragment(columns.state_bytes).tolist(), strict=True))


def flows(problem: Problem) -> list[Flow]:
    """Everything that fragments read from streams and from each other, in the order of the fragments."""
    columns = index(problem)
    producers, consumers = columns.inputs, columns.home[columns.readers]
    of_fragment = np.concatenate([np.full(columns.streams, -1), columns.home])
    outside = of_fragment[producers] != consumers
    pairs = np.unique(np.stack([consumers[outside], producers[outside]]), axis=1)
    fragments, points = problem.fragments, columns.points
    rates, sizes = columns.rate_out.tolist(), columns.bytes_out.tolist()
    return [Flow(points[p], fragments[f].name, rates[p], sizes[p]) for f, p in pairs.T.tolist()]


def transfers(problem: Problem, placement: Placement) -> list[Transfer]:
    """Everything that a placement sends between nodes, results to their sinks included."""
    return list(_rows(index(problem), usage(problem, placement)))


def _rows(columns: Index, used: Usage) -> Iterator[Transfer]:
    nodes = columns.problem.cluster.nodes
    rows = zip(used.producer, used.source, used.target, used.tuples.tolist(), used.bytes.tolist(), strict=True)
    for producer, source, target, tuples, size in rows:
        yield Transfer(columns.points[producer], nodes[source].name, nodes[target].name, tuples, size)


def usage(problem: Problem, placement: Placement) -> Usage:
    """Names that the problem does not have are left out: `check` reports them."""
    columns = index(problem)
    fragments, nodes = _copies(columns, placement)
    operators, owner = ranges(columns.first, fragments)
    at = nodes[owner]
    count = len(problem.cluster.nodes)
    # Operators of equal signature on one node run as one: the first of them.
    _, once = np.unique(columns.identity[operators + columns.streams] * count + at, return_index=True)
    operators, at = operators[once], at[once]

    producer, source, target = _sent(columns, fragments, nodes, operators, at)
    size, tuples = columns.bytes_out[producer], columns.rate_out[producer]
    handled = sums(source, tuples, count) + sums(target, tuples, count)
    transfer_cost = np.array([node.transfer_cost for node in problem.cluster.nodes])
    return Usage(
        load=sums(at, columns.load[operators], count) + transfer_cost * handled,
        state_bytes=sums(at, columns.state_bytes[operators], count),
        state_tuples=sums(at, columns.state_tuples[operators], count),
        bytes_in=sums(target, size, count),
        bytes_out=sums(source, size, count),
        producer=producer,
        source=source,
        target=target,
        tuples=tuples,
        bytes=size,
    )


def _copies(columns: Index, placement: Placement) -> tuple[Ints, Ints]:
    """The fragment and the node of each copy, in the order of the placement."""
    sizes = np.fromiter(map(len, placement.nodes.values()), np.int64, len(placement.nodes))
    names = chain.from_iterable(placement.nodes.values())
    fragments = np.repeat(_positions(placement.nodes, columns.fragment, len(sizes)), sizes)
    nodes = _positions(names, columns.problem.cluster.position, int(sizes.sum()))
    known = (fragments >= 0) & (nodes >= 0)
    return fragments[known], nodes[known]


def _positions(names: Iterable[str], position: Mapping[str, int], count: int) -> Ints:
    """-1 for a name that has none."""
    return np.fromiter(map(position.get, names, repeat(-1)), np.int64, count)


def _sent(columns: Index, fragments: Ints, nodes: Ints, operators: Ints, at: Ints) -> tuple[Ints, Ints, Ints]:
    """Producer, source and target of each transfer; `operators` run on the nodes `at`."""
    edges, owner = ranges(columns.first_input, operators)
    roots, sinks = columns.results
    wanted = sinks >= 0
    producer = np.concatenate([columns.inputs[edges], roots[wanted] + columns.streams])
    target = np.concatenate([at[owner], sinks[wanted]])
    source = _read_from(columns, fragments, nodes, producer, target)
    sent = (source >= 0) & (source != target)
    producer, source, target = producer[sent], source[sent], target[sent]
    count = len(columns.problem.cluster.nodes)
    _, once = np.unique((columns.identity[producer] * count + source) * count + target, return_index=True)
    return producer[once], source[once], target[once]


def _read_from(columns: Index, fragments: Ints, nodes: Ints, producer: Ints, target: Ints) -> Ints:
    """The node from which each target gets what a producer emits; -1 if it runs nowhere."""
    if not columns.operators:
        return columns.stream_node[producer]
    count = len(columns.problem.cluster.nodes)
    first_copy = np.full(len(columns.problem.fragments), -1)
    first_copy[fragments[::-1]] = nodes[::-1]
    is_stream = producer < columns.streams
    home = columns.home[np.where(is_stream, 0, producer - columns.streams)]
    local = np.isin(home * count + target, fragments * count + nodes)
    found = np.where(local, target, first_copy[home])
    found[is_stream] = columns.stream_node[producer[is_stream]]
    return found


def read_from(problem: Problem, placement: Placement, producer: str, target: str) -> str | None:
    """The node from which `target` gets what a stream or an operator emits; None if it runs nowhere."""
    if producer in problem.stream:
        node = problem.stream[producer].node
        return target if node == EVERYWHERE else node
    copies = placement.nodes.get(problem.home[producer], ())
    return target if target in copies else next(iter(copies), None)


def results(problem: Problem) -> Mapping[str, tuple[str, ...]]:
    """By query, the operators whose output no other operator of the query reads."""
    columns = index(problem)
    found: dict[str, list[str]] = {q.name: [] for q in problem.queries}
    for operator in columns.results[0]:
        fragment = problem.fragments[columns.home[operator]]
        found[fragment.query].append(columns.operators[operator].name)
    return {query: tuple(operators) for query, operators in found.items()}


def with_statistics(problem: Problem, statistics: Statistics) -> Problem:
    """The problem with what was measured in place of what was estimated."""

    def measured(operator: Operator) -> Operator:
        seen = statistics.operators.get(operator.name)
        if seen is None:
            return operator
        return replace(operator, cost=seen.cost, selectivity=seen.selectivity, state_bytes=seen.state_bytes)

    return replace(
        problem,
        streams=tuple(replace(s, rate=statistics.streams.get(s.name, s.rate)) for s in problem.streams),
        fragments=tuple(replace(f, operators=tuple(map(measured, f.operators))) for f in problem.fragments),
    )
