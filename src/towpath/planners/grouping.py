"""Connected fragments together, up to the average number of operators: D-CAPE's grouping (Algorithm 3).

As printed the algorithm forgets with every plan where it was. It is read here as: start at a leaf, climb to its parent,
take along the parent's other descendants when they all fit, then whatever else touches the group; a full node hands
over to the next one, across queries. Nodes without cpu only hand streams on: they get no group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from towpath.placement.copies import with_copies
from towpath.placement.flows import flows
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    """There is nothing to choose."""


def plan(problem: Problem, options: Options) -> Placement:
    every = problem.cluster.nodes
    nodes = [node.name for node in every if node.cpu > 0] or [node.name for node in every]
    placed = dict(problem.pinned)
    tree = _FragmentTree(problem, placed)
    count = Counter({node: 0 for node in nodes})
    for name, node in problem.pinned.items():
        count[node] += tree.size(name)
    average = ceil(sum(len(fragment.operators) for fragment in problem.fragments) / len(nodes))
    at = 0
    while (group := tree.next_group(average - count[nodes[at]])) is not None:
        placed |= dict.fromkeys(group, nodes[at])
        count[nodes[at]] += sum(map(tree.size, group))
        while count[nodes[at]] >= average and at + 1 < len(nodes):
            at += 1
    return with_copies(problem, {fragment.name: placed[fragment.name] for fragment in problem.fragments})


class _FragmentTree:
    """The fragments of all queries, who reads whom, and what is placed so far (`placed` grows meanwhile)."""

    def __init__(self, problem: Problem, placed: Mapping[str, str]) -> None:
        self.problem = problem
        self.placed = placed
        self.children: dict[str, list[str]] = {fragment.name: [] for fragment in problem.fragments}
        self.parents: dict[str, list[str]] = {fragment.name: [] for fragment in problem.fragments}
        for flow in flows(problem):
            child = problem.home.get(flow.producer)
            if child is not None and child not in self.children[flow.consumer]:
                self.children[flow.consumer].append(child)
                self.parents[child].append(flow.consumer)
        self.starts = self._leaves_first()

    def size(self, fragment: str) -> int:
        return len(self.problem.fragment[fragment].operators)

    def next_group(self, room: int) -> list[str] | None:
        """A connected group of what is not placed yet, from a leaf upwards; at least one fragment, None at the end."""
        start = next((name for name in self.starts if name not in self.placed), None)
        if start is None:
            return None
        group = {start: self.size(start)}
        at = start
        while (parent := self._free_parent(at, group)) is not None and self._add(group, [parent], room):
            self._add(group, list(self._free_descendants(parent, group)), room)
            at = parent
        self._add_neighbours(group, room)
        return list(group)

    def _leaves_first(self) -> Iterator[str]:
        """Every fragment after those that it reads, in the order of the queries."""
        seen: set[str] = set()
        for root in (name for query in self.problem.queries for name in query.fragments):
            waiting = [(root, False)]
            while waiting:
                name, ready = waiting.pop()
                if ready:
                    yield name
                elif name not in seen:
                    seen.add(name)
                    waiting.append((name, True))
                    waiting += [(child, False) for child in reversed(self.children[name])]

    def _free_parent(self, fragment: str, group: Mapping[str, int]) -> str | None:
        return next((p for p in self.parents[fragment] if p not in self.placed and p not in group), None)

    def _free_descendants(self, fragment: str, group: Mapping[str, int]) -> Iterator[str]:
        waiting = [fragment]
        seen = set(group)
        while waiting:
            for child in self.children[waiting.pop()]:
                if child not in seen and child not in self.placed:
                    seen.add(child)
                    waiting.append(child)
                    yield child

    def _add(self, group: dict[str, int], more: list[str], room: int) -> bool:
        """All of them, or none when they do not fit."""
        sizes = {name: self.size(name) for name in more}
        if sum(group.values()) + sum(sizes.values()) > room:
            return False
        group |= sizes
        return True

    def _add_neighbours(self, group: dict[str, int], room: int) -> None:
        waiting = list(group)
        for name in waiting:  # grows while it is read
            for other in (*self.children[name], *self.parents[name]):
                if other not in group and other not in self.placed and self._add(group, [other], room):
                    waiting.append(other)
