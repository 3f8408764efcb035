"""The queries of a problem with every order of their joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean

from towpath.errors import Mistake, PlannerError
from towpath.placement.problem import Operator as Join
from towpath.placement.problem import Problem
from towpath.reuse.system import SharedOperator, SharedStream, StreamRequest, System

Leaves = tuple[str, ...]  # streams of the problem that are joined, in its order


def with_join_orders(problem: Problem) -> System:
    """Queries that join streams of the problem, each to be joined in any order; equal streams make equal results.

    The selectivity of a join that is in no query's plan is the mean of those that are. A result's rate is that of
    joining its streams one by one in the order in which the problem names them, however it is made in the end. Results
    go to clients outside the cluster, as in the paper: sinks are left aside.
    """
    _refuse(problem)
    leaves = _leaves(problem)
    catalogue = _Catalogue(problem, {leaves[o.name]: o for o in problem.operators()})
    wanted = {query.name: max((leaves[f] for f in query.fragments), key=len) for query in problem.queries}
    for joined in wanted.values():
        catalogue.add(joined)
    requests = tuple(StreamRequest(name, ("*".join(joined),)) for name, joined in wanted.items())
    return System(problem.cluster, tuple(catalogue.streams.values()), tuple(catalogue.operators.values()), requests)


def _refuse(problem: Problem) -> None:
    mistakes = [
        Mistake(operator.name, f"a {operator.kind} in a fragment named {fragment.name}", "one join each, of its name")
        for fragment in problem.fragments
        for operator in fragment.operators
        if operator.kind != "join" or operator.name != fragment.name
    ]
    if len({(o.cost, o.tuple_bytes) for o in problem.operators()}) > 1:
        mistakes.append(Mistake("operators", "joins differ in cost or tuple_bytes", "give all joins the same"))
    if mistakes:
        raise PlannerError("join orders are for queries that consist of joins", mistakes)


def _leaves(problem: Problem) -> Mapping[str, Leaves]:
    """The streams that each join reads, by way of other joins too."""
    order = {stream.name: n for n, stream in enumerate(problem.streams)}
    found: dict[str, Leaves] = {name: (name,) for name in order}
    for operator in problem.operators():
        found[operator.name] = tuple(
            sorted({s for name in operator.inputs for s in found[name]}, key=order.__getitem__)
        )
    return found


@dataclass
class _Catalogue:
    """Streams and operators as they become known, by the streams of the problem that they join."""

    problem: Problem
    known: Mapping[Leaves, Join]
    streams: dict[Leaves, SharedStream] = field(default_factory=dict)
    operators: dict[str, SharedOperator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._usual = fmean(join.selectivity for join in self.known.values())
        self._join = next(iter(self.known.values()))

    def add(self, leaves: Leaves) -> SharedStream:
        """The stream that joins these, with everything that it can be made of."""
        if (there := self.streams.get(leaves)) is not None:
            return there
        if len(leaves) == 1:
            base = self.problem.stream[leaves[0]]
            made = SharedStream(base.name, base.rate * base.tuple_bytes, base.rate, frozenset({base.node}))
        else:
            left, right = self.add(leaves[:-1]), self.add(leaves[-1:])
            join = self.known.get(leaves)
            selectivity = self._usual if join is None else join.selectivity
            rate = selectivity * (left.tuples + right.tuples)
            made = SharedStream("*".join(leaves), rate * self._join.tuple_bytes, rate)
        self.streams[leaves] = made
        for parts in _splits(leaves):
            one, other = map(self.add, parts)
            name = f"{one.name} with {other.name}"
            load = self._join.cost * (one.tuples + other.tuples)
            self.operators[name] = SharedOperator(name, (one.name, other.name), (made.name,), load)
        return made


def _splits(leaves: Leaves) -> Iterator[tuple[Leaves, Leaves]]:
    """Every way to part them in two. The first one is always on the left, so that none comes twice."""
    head, rest = leaves[0], leaves[1:]
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            yield (head, *chosen), tuple(name for name in rest if name not in chosen)
