"""Actors without a simulator: messages wait in one queue per pair of nodes, and the test says what happens next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from towpath.placement.cluster import Cluster, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.placement.statistics import NodeStatistics, OperatorStatistics, Statistics
from towpath.policies.zhou import Options, actors
from towpath.policies.zhou.actor import NodeActor
from towpath.runtime.actors import Arrived, Measured, Move, MoveDone, Note, PolicyEvent, Send, Started, Wake, Woken


def chains(nodes: int, queries: Sequence[Sequence[tuple[int, float]]]) -> Problem:
    """Each query is a chain of fragments; each fragment has the number of its native node and its load."""
    names = [f"n{n}" for n in range(nodes)]
    fragments: list[Fragment] = []
    described = []
    for q, chain in enumerate(queries):
        below: tuple[str, ...] = ()
        for number, (node, load) in enumerate(chain):
            name = f"q{q}.f{number}"
            operator = Operator(f"{name}.o", (f"s{node}", *below), cost=load / 100)
            fragments.append(Fragment(name, f"q{q}", (operator,), f"s{node}"))
            below = (operator.name,)
        described.append(PlacementQuery(f"q{q}", tuple(f.name for f in fragments if f.query == f"q{q}")))
    streams = tuple(PlacementStream(f"s{n}", name, 100.0) for n, name in enumerate(names))
    return Problem(Cluster(tuple(Node(n) for n in names)), streams, tuple(fragments), tuple(described))


def at_home(problem: Problem) -> Placement:
    return Placement.single({f.name: str(problem.native_node(f)) for f in problem.fragments})


class World:
    def __init__(self, problem: Problem, options: Options, placement: Placement | None = None) -> None:
        self.placement = placement or at_home(problem)
        self.problem = problem
        self.options = options
        self.now = 0.0
        self.actors: dict[str, NodeActor] = {a.address: a for a in actors(problem, self.placement, options).actors}  # type: ignore[misc]
        self.channels: dict[tuple[str, str], deque[object]] = {}
        self.wakes: list[tuple[float, str, str]] = []
        self.moving: list[tuple[str, Move]] = []
        self.moved: list[Move] = []
        self.notes: list[str] = []
        self.bytes = 0
        for name in self.actors:
            self.hand(name, Started(0.0))

    def hand(self, name: str, event: PolicyEvent) -> None:
        for instruction in self.actors[name].handle(event):
            match instruction:
                case Send(to, message, size):
                    self.channels.setdefault((name, to), deque()).append(message)
                    self.bytes += size
                case Wake(at, what):
                    self.wakes.append((at, name, what))
                case Move():
                    assert instruction.source == name
                    self.moving.append((name, instruction))
                case Note(text):
                    self.notes.append(text)

    # --- what may happen next ----------------------------------------------------------------------------------------

    def possible(self) -> list[Callable[[], None]]:
        """Deliveries and ends of moves: what empties the world."""
        deliveries = [lambda pair=pair: self.deliver(*pair) for pair, queue in sorted(self.channels.items()) if queue]
        ends = [lambda n=n: self.end_move(n) for n in range(len(self.moving))]
        return [*deliveries, *ends]

    def spontaneous(self) -> list[Callable[[], None]]:
        """Wakes, in whatever order the clocks of the nodes let them come, and measurements."""
        wakes = [lambda wake=wake: self.wake(wake) for wake in sorted(self.wakes)]
        return [*wakes, *(lambda name=name: self.measure(name) for name in self.actors)]

    def deliver(self, sender: str, to: str) -> None:
        self.hand(to, Arrived(self.now, sender, self.channels[sender, to].popleft()))

    def end_move(self, number: int) -> None:
        name, move = self.moving.pop(number)
        assert self.placement.nodes[move.fragment] == (move.source,)
        self.placement = self.placement.moved(move.fragment, move.source, move.target)
        self.moved.append(move)
        self.hand(name, MoveDone(self.now, move.fragment, move.source, move.target, 0.0))

    def wake(self, wake: tuple[float, str, str]) -> None:
        self.wakes.remove(wake)
        at, name, what = wake
        self.now = max(self.now, at)
        self.hand(name, Woken(self.now, what))

    def measure(self, name: str) -> None:
        fragments = [f for f in self.problem.fragments if self.placement.nodes[f.name] == (name,)]
        operators = {o.name: OperatorStatistics(100.0, 1.0, o.cost) for f in fragments for o in f.operators}
        load = min(self.load(name), 1.0)
        self.hand(name, Measured(self.now, Statistics(self.now, 0.1, {}, operators, {name: NodeStatistics(load)})))

    # --- a clock that all share --------------------------------------------------------------------------------------

    def settle(self) -> None:
        while steps := self.possible():
            steps[0]()

    def run(self, until: float) -> None:
        """Measurements every tau; messages and moves take no time."""
        while self.now + self.options.tau <= until:
            end = self.now + self.options.tau
            self.settle()
            while due := [wake for wake in sorted(self.wakes) if wake[0] <= end]:
                self.wake(due[0])
                self.settle()
            self.now = end
            for name in self.actors:
                self.measure(name)
        self.settle()

    def load(self, node: str) -> float:
        fragments = [f for f in self.problem.fragments if self.placement.nodes[f.name] == (node,)]
        return sum(100.0 * o.cost for f in fragments for o in f.operators)
