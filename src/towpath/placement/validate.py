"""Is a problem one that can be planned at all? Everything wrong in it, at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import numpy as np

from towpath.placement.cluster import Cluster, Network, NetworkLink, Node
from towpath.placement.index import Index, index
from towpath.placement.problem import EVERYWHERE, Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.placement.violation import Violation, some

_COUNTS_FROM = {"copies": 1}  # the other numbers start at 0
_MAY_BE_INFINITE = ("memory", "medium", "bandwidth", "bandwidth_in", "bandwidth_out")


def validate(problem: Problem) -> list[Violation]:
    """An empty list if planners, `check` and the metrics may rely on it."""
    return [
        *_names(problem),
        *_numbers(problem),
        *_cluster(problem.cluster),
        *_streams(problem),
        *_queries(problem),
        *_fragments(problem),
        *_cycles(problem),
        *_current(problem),
    ]


def _names(problem: Problem) -> Iterator[Violation]:
    """Streams and operators share one space of names."""
    columns = index(problem)
    kinds: tuple[tuple[str, Mapping[str, Any], Sequence[str]], ...] = (
        ("node", problem.cluster.position, [n.name for n in problem.cluster.nodes]),
        ("stream or operator", columns.point, columns.points),
        ("fragment", columns.fragment, [f.name for f in problem.fragments]),
        ("query", problem.query, [q.name for q in problem.queries]),
    )
    for kind, known, names in kinds:
        if len(known) == len(names) and "" not in known:
            continue
        for name, times in Counter(names).items():
            if times > 1:
                yield Violation("name", f"{kind} {name}", f"{times} have this name, expected one")
            if not name:
                yield Violation("name", kind, "has an empty name")


def _numbers(problem: Problem) -> Iterator[Violation]:
    network = problem.cluster.network
    yield from _bad_numbers("network", Network, [network])
    yield from _bad_numbers("link", NetworkLink, network.links)
    yield from _bad_numbers("node", Node, problem.cluster.nodes)
    yield from _bad_numbers("stream", PlacementStream, problem.streams)
    yield from _bad_numbers("operator", Operator, index(problem).operators)
    yield from _bad_numbers("query", PlacementQuery, problem.queries)
    yield from _bad_numbers("problem", Problem, [problem])


def _bad_numbers(kind: str, of: type, things: Sequence[Any]) -> Iterator[Violation]:
    """Limits such as memory and bandwidth may be infinite, what is measured may not."""
    for field in fields(of):
        if field.type not in ("float", "int"):
            continue
        values = np.fromiter(map(attrgetter(field.name), things), np.float64, len(things))
        least = _COUNTS_FROM.get(field.name, 0)
        endless = field.name in _MAY_BE_INFINITE
        for n in np.flatnonzero(~(values >= least) | (np.isinf(values) & (not endless))).tolist():
            expected = f"at least {least}" if endless else f"a finite number from {least}"
            yield Violation("number", _place(kind, things[n]), f"{field.name} is {values[n]:g}, expected {expected}")


def _place(kind: str, thing: Any) -> str:
    if isinstance(thing, NetworkLink):
        return f"link {thing.source} -> {thing.target}"
    return f"{kind} {thing.name}" if hasattr(thing, "name") else kind


def _cluster(cluster: Cluster) -> Iterator[Violation]:
    if not cluster.nodes:
        yield Violation("empty", "cluster", "has no nodes, expected at least one")
    for link in cluster.network.links:
        for end in (link.source, link.target):
            if end not in cluster.position:
                yield _unknown_node(f"link {link.source} -> {link.target}", "connects", end)
    positions = cluster.network.positions
    if positions is not None and (positions.ndim != 2 or len(positions) != len(cluster.nodes)):
        text = f"positions have the shape {positions.shape}, expected a row for each of {len(cluster.nodes)} nodes"
        yield Violation("number", "network", text)
    matrix = cluster.network.latencies
    wanted = (len(cluster.nodes), len(cluster.nodes))
    if matrix is not None and matrix.shape != wanted:
        text = f"latencies have the shape {matrix.shape}, expected {wanted}: a row and a column for each node"
        yield Violation("number", "network", text)
    elif matrix is not None and bool((matrix < 0).any()):
        yield Violation("number", "network", f"{int((matrix < 0).sum()):,} latencies are negative, expected at least 0")


def _unknown_node(where: str, does: str, node: str) -> Violation:
    return Violation("unknown node", where, f"{does} {node}, which is not in the cluster")


def _streams(problem: Problem) -> Iterator[Violation]:
    for stream in problem.streams:
        if stream.node != EVERYWHERE and stream.node not in problem.cluster.position:
            yield _unknown_node(f"stream {stream.name}", "is delegated to", stream.node)


def _queries(problem: Problem) -> Iterator[Violation]:
    workers = sum(node.cpu > 0 for node in problem.cluster.nodes)
    for query in problem.queries:
        where = f"query {query.name}"
        if not query.fragments:
            yield Violation("empty", where, "has no fragments, expected at least one")
        for name in query.fragments:
            fragment = problem.fragment.get(name)
            if fragment is None:
                yield Violation("unknown fragment", where, f"lists {name}, but there is no such fragment")
            elif fragment.query != query.name:
                yield Violation("contradiction", where, f"lists {name}, a fragment of query {fragment.query}")
        if query.sink is not None and query.sink not in problem.cluster.position:
            yield _unknown_node(where, "wants its results on", query.sink)
        if query.copies > workers:
            text = f"wants {query.copies} copies on different nodes, but {workers} have cpu"
            yield Violation("contradiction", where, text)


def _fragments(problem: Problem) -> Iterator[Violation]:
    for n in _doubtful(problem):
        yield from _fragment(problem, problem.fragments[n])
    yield from _pinned(problem)


def _doubtful(problem: Problem) -> Iterable[int]:
    """The fragments that have to be looked at one by one: all that are wrong, and perhaps some that are not."""
    columns = index(problem)
    fragments, streams, point = problem.fragments, columns.streams, columns.point
    if len(point) < len(columns.points):
        return range(len(fragments))
    lister = {name: query.name for query in problem.queries for name in query.fragments}
    natives = ((n, f.native) for n, f in enumerate(fragments) if f.native is not None)
    return sorted(
        {
            *(n for n, f in enumerate(fragments) if lister.get(f.name) != f.query),
            *(n for n, native in natives if point.get(native, streams) >= streams),
            *_doubtful_within(columns),
        }
    )


def _doubtful_within(columns: Index) -> Iterator[int]:
    """Operators of which each but the last reads only what was before it, and is read by a later one, are connected."""
    home, inputs, readers = columns.home, columns.inputs, columns.readers
    of_operator = inputs >= columns.streams
    sources = inputs[of_operator] - columns.streams
    unread = np.ones(len(home), bool)
    unread[sources[home[sources] == home[readers[of_operator]]]] = False
    yield from np.flatnonzero(np.bincount(home[unread], minlength=len(columns.problem.fragments)) != 1).tolist()
    without = np.flatnonzero(np.diff(columns.first_input) == 0)
    yield from home[np.concatenate([readers[inputs < 0], readers[columns.late], without])].tolist()


def _fragment(problem: Problem, fragment: Fragment) -> Iterator[Violation]:
    where = f"fragment {fragment.name}"
    query = problem.query.get(fragment.query)
    if query is None:
        yield Violation("unknown query", where, f"belongs to {fragment.query}, but there is no such query")
    elif fragment.name not in query.fragments:
        yield Violation("contradiction", where, f"belongs to query {fragment.query}, which does not list it")
    if fragment.native is not None and fragment.native not in problem.stream:
        yield Violation("unknown stream", where, f"is native to {fragment.native}, but there is no such stream")
    yield from _operators(fragment, index(problem).point)


def _operators(fragment: Fragment, known: Container[str]) -> Iterator[Violation]:
    if not fragment.operators:
        yield Violation("empty", f"fragment {fragment.name}", "has no operators, expected at least one")
    before: set[str] = set()
    within = {operator.name for operator in fragment.operators}
    for operator in fragment.operators:
        where = f"operator {operator.name}"
        if not operator.inputs:
            yield Violation("empty", where, "has no inputs, expected at least one")
        for name in operator.inputs:
            if name not in known:
                yield Violation("unknown input", where, f"reads {name}, but there is no such stream or operator")
            elif name in within and name not in before and name != operator.name:
                yield Violation("connection", where, f"comes before its input {name}, expected inputs first")
        before.add(operator.name)
    apart = _parts(fragment)
    if len(apart) > 1:
        text = f"its operators fall into {len(apart)} parts that share nothing: {some(apart)}; expected one"
        yield Violation("connection", f"fragment {fragment.name}", text)


def _parts(fragment: Fragment) -> list[str]:
    """The first operator of each connected part; to read the same stream connects too."""
    if len(fragment.operators) < 2:
        return []
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for operator in fragment.operators:
        for name in operator.inputs:
            leader[find(name)] = find(operator.name)
    return list({find(o.name): o.name for o in reversed(fragment.operators)}.values())[::-1]


def _pinned(problem: Problem) -> Iterator[Violation]:
    for name, node in problem.pinned.items():
        fragment = problem.fragment.get(name)
        if fragment is None:
            yield Violation("unknown fragment", f"pinned {name}", "is pinned, but there is no such fragment")
        if node not in problem.cluster.position:
            yield _unknown_node(f"pinned {name}", "is pinned to", node)
        query = problem.query.get(fragment.query) if fragment else None
        if query is not None and query.copies > 1:
            text = f"is pinned to one node, but query {query.name} wants {query.copies} copies on different nodes"
            yield Violation("contradiction", f"pinned {name}", text)


def _cycles(problem: Problem) -> Iterator[Violation]:
    """Also operators that only read from a cycle are in the message: without it they would have no rate."""
    columns = index(problem)
    reached = np.zeros(len(columns.operators), bool)
    for level in columns.levels:
        reached[level] = True
    stuck = [columns.operators[n].name for n in np.flatnonzero(~reached)]
    if stuck:
        text = f"{len(stuck)} read each other's results in a circle: {some(stuck)}; expected streams at the beginning"
        yield Violation("cycle", "operators", text)


def _current(problem: Problem) -> Iterator[Violation]:
    if problem.current is None:
        return
    for name, nodes in problem.current.nodes.items():
        if name not in problem.fragment:
            yield Violation("unknown fragment", f"current {name}", "has a place, but there is no such fragment")
        for node in nodes:
            if node not in problem.cluster.position:
                yield _unknown_node(f"current {name}", "runs on", node)
    for name in problem.current.refused:
        if name not in problem.query:
            yield Violation("unknown query", f"current {name}", "is refused, but there is no such query")
