"""A problem as a system, its fragments as operators; and allocations of it as placements.

Fragments whose operators have equal signatures, read the same and are pinned alike are one operator here: that is what
is reused. A placement sends every stream straight from where it is made, and has one node for a fragment, so rules for
such a system are `RULES`: without relays, and an operator on one node at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from towpath.errors import Mistake, PlannerError
from towpath.placement.flows import results
from towpath.placement.index import index
from towpath.placement.problem import EVERYWHERE, Fragment, Placement, Problem
from towpath.reuse.allocation import AllocatedRun, Allocation, routed
from towpath.reuse.model import Rules
from towpath.reuse.system import SharedOperator, SharedStream, StreamRequest, System

RULES = Rules(relays=False, once=True)


@dataclass(frozen=True)
class Fragments:
    """A problem's system, with the operator of each fragment and, by query, the queries that it reads from."""

    problem: Problem
    system: System
    operator: Mapping[str, str]
    needs: Mapping[str, frozenset[str]]

    def allocation(self, placement: Placement) -> Allocation:
        """What a placement runs; a query of which anything has no place is not admitted."""
        absent = {f.query for f in self.problem.fragments if not placement.nodes.get(f.name)}
        here = (f for f in self.problem.fragments if f.query not in absent)
        runs = {AllocatedRun(node, self.operator[f.name]) for f in here for node in placement.nodes[f.name]}
        return routed(self.system, runs, frozenset(self.needs) - absent)

    def placement(self, allocation: Allocation, refused: Mapping[str, str]) -> Placement:
        at = {run.operator: run.node for run in allocation.runs}
        nodes = {f.name: (at[self.operator[f.name]],) for f in self.problem.fragments if f.query in allocation.admitted}
        return Placement(nodes, refused)


def of_problem(problem: Problem) -> Fragments:
    building = _Building(problem)
    for fragment in _inputs_first(problem):
        building.add(fragment)
    of_query = results(problem)
    requests = tuple(
        StreamRequest(
            query.name, tuple(dict.fromkeys(building.stream[name] for name in of_query[query.name])), query.sink
        )
        for query in problem.queries
    )
    streams = [*building.streams.values()]
    system = System(problem.cluster, tuple(streams), tuple(building.operators.values()), requests, delivery=False)
    return Fragments(problem, system, building.operator, _needs(problem))


@dataclass
class _Building:
    problem: Problem
    streams: dict[str, SharedStream] = field(default_factory=dict)
    operators: dict[object, SharedOperator] = field(default_factory=dict)  # by what makes fragments equal
    operator: dict[str, str] = field(default_factory=dict)  # of each fragment
    stream: dict[str, str] = field(default_factory=dict)  # of each stream and each operator of the problem

    def __post_init__(self) -> None:
        self._columns = index(self.problem)
        self._copies = _copies(self.problem)
        self._able = frozenset(node.name for node in self.problem.cluster.nodes if node.cpu > 0)
        for base in self.problem.streams:
            self.streams[base.name] = SharedStream(
                base.name,
                base.rate * base.tuple_bytes,
                base.rate,
                frozenset(self.problem.cluster.position if base.node == EVERYWHERE else {base.node}),
            )
            self.stream[base.name] = base.name

    def add(self, fragment: Fragment) -> None:
        own = {o.name for o in fragment.operators}
        inputs = tuple(dict.fromkeys(self.stream[i] for o in fragment.operators for i in o.inputs if i not in own))
        pinned = self.problem.pinned.get(fragment.name) or self._copies.get(fragment.name)
        key = tuple(o.signature or o.name for o in fragment.operators), inputs, pinned
        if key not in self.operators:
            self.operators[key] = self._made(fragment, inputs, pinned)
        made = self.operators[key]
        self.operator[fragment.name] = made.name
        self.stream |= {o.name: out for o, out in zip(fragment.operators, made.outputs, strict=True)}

    def _made(self, fragment: Fragment, inputs: tuple[str, ...], pinned: str | None) -> SharedOperator:
        columns = self._columns
        for operator in fragment.operators:
            point = columns.point[operator.name]
            self.streams[operator.name] = SharedStream(
                operator.name, float(columns.bytes_out[point]), float(columns.rate_out[point])
            )
        numbers = [columns.point[o.name] - columns.streams for o in fragment.operators]
        return SharedOperator(
            fragment.name,
            inputs,
            tuple(o.name for o in fragment.operators),
            float(columns.load[numbers].sum()),
            float(columns.state_bytes[numbers].sum()),
            self._able if pinned is None else frozenset({pinned}),
        )


def _copies(problem: Problem) -> dict[str, str]:
    """The fragments that are copies of others, with their nodes: those of one query run apart, and stay there."""
    at = {} if problem.current is None else problem.current.nodes
    alike: dict[object, dict[str, str]] = {}
    for fragment in problem.fragments:
        key = fragment.query, tuple(o.signature or o.name for o in fragment.operators)
        for node in at.get(fragment.name, ())[:1]:
            alike.setdefault(key, {})[fragment.name] = node
    apart = (copies for copies in alike.values() if len(set(copies.values())) > 1)
    return {name: node for copies in apart for name, node in copies.items()}


def _inputs_first(problem: Problem) -> list[Fragment]:
    """The fragments, each after those that it reads from."""
    reads = {
        f.name: {problem.home[i] for o in f.operators for i in o.inputs if i in problem.home} - {f.name}
        for f in problem.fragments
    }
    found: dict[str, Fragment] = {}
    while len(found) < len(reads):
        ready = [problem.fragment[name] for name in reads if name not in found and reads[name] <= found.keys()]
        if not ready:
            around = sorted(reads.keys() - found.keys())
            mistake = Mistake(around[0], "reads from a fragment that reads from it", "cut the query otherwise")
            raise PlannerError("fragments read from each other in a circle", [mistake])
        found |= {fragment.name: fragment for fragment in ready}
    return list(found.values())


def _needs(problem: Problem) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {query.name: set() for query in problem.queries}
    for fragment in problem.fragments:
        read = (i for o in fragment.operators for i in o.inputs if i in problem.home)
        found[fragment.query] |= {problem.fragment[problem.home[name]].query for name in read} - {fragment.query}
    return {query: frozenset(others) for query, others in found.items()}
