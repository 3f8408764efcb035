"""Is a placement one that can run? Every way in which it is not, at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from towpath.placement.flows import Usage, usage
from towpath.placement.index import Floats, bandwidths, index, sums
from towpath.placement.problem import Placement, Problem
from towpath.placement.violation import Resource, Violation, some

TOLERANCE = 1e-6  # sums of many rates end a little above a limit that is just reached


def check(problem: Problem, placement: Placement) -> list[Violation]:
    """Every violation; an empty list if there is none. The problem itself is expected to be valid."""
    return [
        *_names(problem, placement),
        *_queries(problem, placement),
        *_copies(problem, placement),
        *_inputs(problem, placement),
        *_resources(problem, usage(problem, placement)),
    ]


def _names(problem: Problem, placement: Placement) -> Iterator[Violation]:
    nodes = problem.cluster.position
    for fragment, places in placement.nodes.items():
        if fragment not in problem.fragment:
            yield Violation(
                "unknown fragment", f"fragment {fragment}", "is placed, but the problem has no such fragment"
            )
        for node in places:
            if node not in nodes:
                yield Violation("unknown node", f"fragment {fragment}", f"runs on {node}, which is not in the cluster")
    for query in placement.refused:
        if query not in problem.query:
            yield Violation("unknown query", f"query {query}", "is refused, but the problem has no such query")


def _queries(problem: Problem, placement: Placement) -> Iterator[Violation]:
    """A query runs whole, or it is refused and does not run."""
    for query in problem.queries:
        missing = [name for name in query.fragments if not placement.nodes.get(name)]
        refused = query.name in placement.refused
        count = len(query.fragments)
        if missing and len(missing) < count:
            placed = count - len(missing)
            found = f"{placed} of its {count} fragments run, expected all or none; nowhere: {some(missing)}"
            yield Violation("partly placed", f"query {query.name}", found)
        elif missing and not refused:
            text = f"none of its {count} fragments runs, though it is not refused: {some(missing)}"
            yield Violation("missing", f"query {query.name}", text)
        elif not missing and refused and count:
            yield Violation("refused", f"query {query.name}", f"is refused, yet its {count} fragments run")


def _copies(problem: Problem, placement: Placement) -> Iterator[Violation]:
    for fragment in problem.fragments:
        places = placement.nodes.get(fragment.name, ())
        if not places:
            continue
        wanted = problem.query[fragment.query].copies
        if len(places) != wanted:
            text = f"runs {len(places)} times ({some(places)}), expected {wanted}"
            yield Violation("copies", f"fragment {fragment.name}", text)
        if len(places) > len(set(places)):
            twice = sorted({node for node in places if places.count(node) > 1})
            yield Violation(
                "copies", f"fragment {fragment.name}", f"runs more than once on {some(twice)}, expected once"
            )
        pinned = problem.pinned.get(fragment.name)
        if pinned is not None and any(node != pinned for node in places):
            yield Violation("pinned", f"fragment {fragment.name}", f"runs on {some(places)}, but is pinned to {pinned}")


def _inputs(problem: Problem, placement: Placement) -> Iterator[Violation]:
    """What a fragment reads is made somewhere, even if it is made for another query."""
    columns = index(problem)
    runs = np.fromiter((bool(placement.nodes.get(f.name)) for f in problem.fragments), bool, len(problem.fragments))
    read = columns.inputs >= columns.streams
    producers, readers = columns.inputs[read] - columns.streams, columns.readers[read]
    sources, targets = columns.home[producers], columns.home[readers]
    for n in np.flatnonzero(runs[targets] & ~runs[sources]):
        source, target = problem.fragments[sources[n]], problem.fragments[targets[n]]
        if source.query != target.query:  # else the query is partly placed, and is reported so
            text = f"reads {columns.operators[producers[n]].name} of query {source.query}, which runs nowhere"
            yield Violation("input", f"fragment {target.name}", text)


def _resources(problem: Problem, used: Usage) -> Iterator[Violation]:
    nodes = problem.cluster.nodes
    columns: tuple[tuple[Resource, Floats, list[float], str], ...] = (
        ("cpu", used.load, [node.cpu for node in nodes], "seconds of work per second"),
        ("memory", used.state_bytes, [node.memory for node in nodes], "bytes of state"),
        ("bandwidth in", used.bytes_in, [node.bandwidth_in for node in nodes], "bytes per second from other nodes"),
        ("bandwidth out", used.bytes_out, [node.bandwidth_out for node in nodes], "bytes per second to other nodes"),
    )
    for kind, taken, limits, unit in columns:
        limit = np.array(limits)
        for n in np.flatnonzero(_exceeds(taken, limit)):
            yield Violation(kind, f"node {nodes[n].name}", _too_much(kind, taken[n], limit[n], unit))
    yield from _medium(problem, used)
    yield from _links(problem, used)


def _medium(problem: Problem, used: Usage) -> Iterator[Violation]:
    taken, limit = float(used.bytes.sum()), problem.cluster.network.medium
    if _exceeds(np.array([taken]), np.array([limit]))[0]:
        yield Violation("medium", "network", _too_much("medium", taken, limit, "bytes per second between all nodes"))


def _links(problem: Problem, used: Usage) -> Iterator[Violation]:
    nodes = problem.cluster.nodes
    count = len(nodes)
    pairs, pair = np.unique(used.source * count + used.target, return_inverse=True)
    sources, targets = np.divmod(pairs, max(count, 1))
    taken = sums(pair, used.bytes, len(pairs))
    limit = bandwidths(problem.cluster, sources, targets)
    for n in np.flatnonzero(_exceeds(taken, limit)):
        where = f"link {nodes[sources[n]].name} -> {nodes[targets[n]].name}"
        yield Violation("link", where, _too_much("bandwidth", taken[n], limit[n], "bytes per second"))


def _exceeds(taken: Floats, limit: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return taken > limit * (1 + TOLERANCE)


def _too_much(what: str, taken: float, limit: float, unit: str) -> str:
    return f"{what}: {taken:,.6g} {unit}, but it has {limit:,.6g}"
