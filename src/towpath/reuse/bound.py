"""The optimistic bound of section V-A: how many requests one node could serve that had everything.

It has all base streams and the cpu of all nodes, and no network to pay for. What is left of (III.8) is a program
without places; the solver's bound on it holds for whatever any planner does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np

from towpath.reuse.solver import IntegerProgram, Solution
from towpath.reuse.system import StreamRequest, System

ROUNDING = 1e-6


def optimistic_bound(system: System, requests: Sequence[StreamRequest], seconds: float = 0.0) -> int:
    """No more of these requests can be admitted, however they are planned."""
    return floor(-aggregate(system, requests, seconds).bound + ROUNDING)


def aggregate(system: System, requests: Sequence[StreamRequest], seconds: float = 0.0) -> Solution:
    """Minus the number of requests that the aggregate node serves."""
    streams, operators = system.related(s for request in requests for s in request.streams)
    program = IntegerProgram()
    z = program.columns(np.zeros(len(operators)))
    number = {name: n for n, name in enumerate(operators)}
    makers = {s: [(z[number[o.name]], -1.0) for o in system.makers[s]] for s in streams}
    enters = {s: float(bool(system.stream[s].nodes)) for s in streams}
    for name in operators:
        for stream in system.operator[name].inputs:
            if not enters[stream]:
                program.row([(z[number[name]], 1.0), *makers[stream]], most=0.0)
    same: dict[tuple[str, ...], int] = {}
    for request in requests:
        same[request.streams] = same.get(request.streams, 0) + 1
    served = program.columns(-np.array(list(same.values()), np.float64))
    for column, wanted in zip(served, same, strict=True):
        for stream in wanted:
            program.row([(column, 1.0), *makers[stream]], most=enters[stream])
    loads = np.array([system.operator[name].load for name in operators])
    cpu = sum(node.cpu for node in system.cluster.nodes)
    if len(operators) and cpu:
        program.row([(z, loads / cpu)], most=1.0)
    return program.solve(seconds)


class AggregateNode:
    """The same node, taking requests as they come: each by the cheapest plan beside what it makes already."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._cpu = sum(node.cpu for node in system.cluster.nodes)
        self._made = {stream.name for stream in system.streams if stream.nodes}
        self.load = 0.0

    def submit(self, request: StreamRequest) -> bool:
        plans = [self._cheapest(stream) for stream in request.streams]
        load = sum(price for price, _ in plans)
        if self.load + load > self._cpu:
            return False
        self.load += load
        self._made.update(stream for _, made in plans for stream in made)
        return True

    def _cheapest(self, stream: str) -> tuple[float, tuple[str, ...]]:
        """The load of making a stream, and what is made on the way. What two inputs have in common counts twice."""
        if stream in self._made:
            return 0.0, ()
        ways = []
        for operator in self._system.makers[stream]:
            below = [self._cheapest(name) for name in operator.inputs]
            made = tuple(name for _, names in below for name in names)
            ways.append((operator.load + sum(price for price, _ in below), (*made, *operator.outputs)))
        return min(ways)
