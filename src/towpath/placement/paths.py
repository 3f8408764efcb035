"""The ways that tuples take from a stream through a query, and the nodes on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from towpath.placement.flows import read_from, results
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True, slots=True)
class Path:
    """From a stream to a result of a query. In a tree there is one for each stream that is read."""

    stream: str
    operators: tuple[str, ...]


def paths(problem: Problem) -> Iterator[tuple[str, Path]]:
    """Every query with each of its paths."""
    for query, roots in results(problem).items():
        for root in roots:
            for path in _upwards(problem, root):
                yield query, path


def _upwards(problem: Problem, root: str) -> Iterator[Path]:
    waiting: list[tuple[str, ...]] = [(root,)]
    while waiting:
        operators = waiting.pop()
        for name in reversed(problem.operator[operators[0]].inputs):
            if name in problem.stream:
                yield Path(name, operators)
            else:
                waiting.append((name, *operators))


def nodes_on(problem: Problem, placement: Placement, query: str, path: Path) -> tuple[str, ...]:
    """Where each operator of the path runs for this query; empty if one of them runs nowhere."""
    reader = problem.query[query].sink
    found: list[str] = []
    for operator in reversed(path.operators):
        node = read_from(problem, placement, operator, reader or "")
        if node is None:
            return ()
        found.append(node)
        reader = node
    return tuple(reversed(found))
