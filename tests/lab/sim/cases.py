"""Small problems that the tests share, and an actor that moves what it is asked to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from towpath.lab.sim import Crash, Cut, Profile, SimulationOutcome, StatefulJoin, random_walk, simulate
from towpath.lab.sim.outcome import TABLES
from towpath.placement.cluster import Cluster, Network, Node
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.runtime.actors import (
    Actors,
    Move,
    MoveDone,
    MoveFailed,
    PolicyEvent,
    PolicyInstruction,
    Started,
    Wake,
    Woken,
)


def queues(load: float, number: int) -> Problem:
    """So many nodes, each with one stream and one operator that works 1 ms for each tuple."""
    numbers = range(number)
    operators = [Operator(f"o{n}", (f"s{n}",), cost=0.001) for n in numbers]
    return Problem(
        Cluster(tuple(Node(f"n{n}") for n in numbers)),
        tuple(PlacementStream(f"s{n}", f"n{n}", 1000.0 * load) for n in numbers),
        tuple(Fragment(f"f{n}", f"q{n}", (operators[n],)) for n in numbers),
        tuple(PlacementQuery(f"q{n}", (f"f{n}",)) for n in numbers),
    )


def queue(load: float) -> Problem:
    return queues(load, 1)


def at_home(problem: Problem) -> Placement:
    return Placement.single({f"f{n}": f"n{n}" for n in range(len(problem.fragments))})


def pair(rate: float = 1.0, medium: float = inf) -> Problem:
    """Two queries over three streams and three nodes: filters, joins, a selectivity above 1, a shared filter."""
    network = Network(latency=0.002, bandwidth=50_000.0, medium=medium)
    rates = {"s1": 100.0 * rate, "s2": 60.0 * rate, "s3": 40.0 * rate}
    streams = (
        PlacementStream("s1", "a", rates["s1"]),
        PlacementStream("s2", "b", rates["s2"]),
        PlacementStream("s3", "c", rates["s3"], tuple_bytes=50.0),
    )
    fragments = (
        Fragment(
            "p1",
            "p",
            (
                Operator("p.f1", ("s1",), cost=0.0010, selectivity=0.7, signature="s1 hot"),
                Operator("p.f2", ("p.f1",), cost=0.0005, selectivity=0.9),
                Operator("p.j", ("p.f2", "p.g"), "join", cost=0.0020, selectivity=1.3, state_bytes=9_000.0),
            ),
            "s1",
        ),
        Fragment("p2", "p", (Operator("p.g", ("s2",), cost=0.0010, selectivity=0.6),), "s2"),
        Fragment("p3", "p", (Operator("p.h", ("p.j",), cost=0.0010, selectivity=0.8),)),
        Fragment("r1", "r", (Operator("r.f1", ("s1",), cost=0.0010, selectivity=0.7, signature="s1 hot"),), "s1"),
        Fragment("r2", "r", (Operator("r.j", ("r.f1", "s3"), "join", cost=0.0015, selectivity=2.0),), "s3"),
    )
    queries = (PlacementQuery("p", ("p1", "p2", "p3")), PlacementQuery("r", ("r1", "r2"), sink="b"))
    cluster = Cluster((Node("a"), Node("b", cpu=0.8), Node("c", cpu=1.5)), network)
    return Problem(cluster, streams, fragments, queries, migration_cost=1e-6)


def spread() -> Placement:
    return Placement.single({"p1": "a", "p2": "b", "p3": "a", "r1": "a", "r2": "c"})


@dataclass
class Script:
    """Asks for moves at given times, and keeps what it hears."""

    moves: Sequence[tuple[float, Move]]
    address: str = "script"
    heard: list[PolicyEvent] = field(default_factory=list)

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        match event:
            case Started():
                return [Wake(at, str(number)) for number, (at, _) in enumerate(self.moves)]
            case Woken(_, name):
                return [self.moves[int(name)][1]]
            case MoveDone() | MoveFailed():
                self.heard.append(event)
        return []


def scripted(moves: Sequence[tuple[float, str, str, str]]) -> Actors:
    return Actors([Script([(at, Move(*move, "script")) for at, *move in moves])])


BACK_AND_FORTH = [
    (0.3, "p1", "a", "b"),
    (0.7, "r2", "c", "a"),
    (1.2, "p3", "a", "c"),
    (1.6, "p1", "b", "c"),
    (1.7, "p2", "b", "a"),
    (2.0, "r2", "a", "b"),
    (2.4, "p3", "c", "b"),
    (2.8, "p1", "c", "a"),
]


def digest(outcome: SimulationOutcome) -> str:
    """Of every table's every byte."""
    text = "".join(getattr(outcome, name).to_csv(index=False) for name in TABLES)
    return hashlib.sha256(text.encode()).hexdigest()


def everything() -> SimulationOutcome:
    """A run in which all there is happens."""
    problem = pair(medium=400_000.0)
    return simulate(
        problem,
        spread(),
        3.5,
        actors=scripted(BACK_AND_FORTH),
        seed=7,
        profile={"s1": Profile("poisson", ((1.0, 2.0), (2.0, 1.0)))},
        service={"p.j": "exponential", "r.j": "uniform"},
        faults=[Crash(2.85, "c", 3.1), Cut(1.8, "a", "b", 1.9), *random_walk(problem.cluster, 0.5, 3.0, 0.2)],
        joins={"r.j": StatefulJoin(0.5, 0.001, 2e-5, 1e-6)},
        record=0.5,
    )


if __name__ == "__main__":
    print(digest(everything()))
