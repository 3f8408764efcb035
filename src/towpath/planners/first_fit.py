"""What is new on the first node that has room for it; what has to leave its node on the one with the least load.

Few nodes are used as long as they suffice, so that queries meet others whose work they can share. What has run before
is spread, so that no node gets all that another one leaves behind. What is pinned, or stays where `current` has it,
counts and does not move. A node has room while its load, in the steady state, is at most `most_load` of its cpu; where
none has, the one with the least load is taken, of several the one with fewer fragments, then the earlier one. Nodes
without cpu only hand streams on: they get a fragment only when there are not enough others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from towpath.placement.cluster import Node
from towpath.placement.flows import fragment_loads
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True)
class Options:
    most_load: float = 0.8  # of a node's cpu


def plan(problem: Problem, options: Options) -> Placement:
    current = problem.current.nodes if problem.current is not None else {}
    known = problem.cluster.position
    placed = {name: nodes for name, nodes in current.items() if nodes and all(node in known for node in nodes)}
    placed |= {name: (node,) for name, node in problem.pinned.items()}
    loads = fragment_loads(problem)
    nodes = _Nodes(problem, options.most_load)
    for name, where in placed.items():
        nodes.add(where, loads[name])
    copies = {name: query.copies for query in problem.queries for name in query.fragments}
    for name in loads:
        if name not in placed:
            placed[name] = nodes.take(loads[name], copies[name], fills=name not in current)
    return Placement({name: placed[name] for name in loads})


class _Nodes:
    def __init__(self, problem: Problem, most_load: float) -> None:
        self._nodes = problem.cluster.nodes
        self._most_load = most_load
        self._load: defaultdict[str, float] = defaultdict(float)
        self._count = Counter[str]()

    def add(self, nodes: tuple[str, ...], load: float) -> None:
        for node in nodes:
            self._load[node] += load
            self._count[node] += 1

    def take(self, load: float, copies: int, *, fills: bool) -> tuple[str, ...]:
        """The nodes for something new; `fills`: one that has room is taken before one that is emptier."""

        def rank(node: Node) -> tuple[bool, bool, float, int]:
            after = (self._load[node.name] + load) / (node.cpu or 1.0)
            room = fills and copies == 1 and after <= self._most_load
            return node.cpu <= 0, not room, 0.0 if room else after, 0 if room else self._count[node.name]

        taken = tuple(node.name for node in sorted(self._nodes, key=rank)[:copies])
        self.add(taken, load)
        return taken
