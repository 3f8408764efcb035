"""A world without time between things: messages arrive at once, moves are done at once unless tests want otherwise."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from itertools import count

from towpath.placement.problem import Placement, Problem
from towpath.placement.statistics import NodeStatistics, OperatorStatistics, Statistics
from towpath.policies import dcape
from towpath.policies.dcape.agent import Agent
from towpath.policies.dcape.connections import Wiring, requests_for
from towpath.policies.dcape.manager import Manager
from towpath.runtime.actors import (
    Actor,
    Arrived,
    Measured,
    Move,
    MoveDone,
    MoveFailed,
    NodeLost,
    Note,
    PolicyEvent,
    PolicyInstruction,
    Send,
    Started,
    Wake,
    Woken,
)


class World:
    def __init__(
        self, problem: Problem, placement: Placement, options: dcape.Options, mute: Iterable[str] = ()
    ) -> None:
        made = dcape.actors(problem, placement, options)
        self.problem = problem
        self.actors: dict[str, Actor] = {actor.address: actor for actor in made.actors}
        self.where = {fragment: nodes[0] for fragment, nodes in placement.nodes.items()}
        self.now = 0.0
        self.sent: list[tuple[str, Send]] = []
        self.moves: list[tuple[str, Move]] = []  # who asked, and what
        self.notes: list[str] = []
        self.mute = set(mute)  # addresses that nothing reaches
        self.refuse: dict[str, str] = {}  # fragment -> why the world does not move it
        self._alarms: list[tuple[float, int, str, str]] = []
        self._order = count()
        self._waiting: deque[tuple[str, PolicyEvent]] = deque((a, Started(0.0)) for a in self.actors)
        self.settle()

    def manager(self, address: str = dcape.ROOT) -> Manager:
        found = self.actors[address]
        assert isinstance(found, Manager)
        return found

    def agent(self, node: str) -> Agent:
        found = self.actors[node]
        assert isinstance(found, Agent)
        return found

    def connections_are_as_needed(self) -> bool:
        """Every pair of neighbours on two nodes is connected, and nobody else is."""
        wiring = Wiring(self.problem)
        for node, agent in ((a, agent) for a, agent in self.actors.items() if isinstance(agent, Agent)):
            requests = requests_for(wiring, self.where, node)
            needed = {(r.verb, r.fragment, r.peer, r.host) for r in requests if r.verb != "activate"}
            if node not in self.mute and agent.connections != needed:
                return False
        return True

    def deliver(self, address: str, event: PolicyEvent) -> None:
        self._waiting.append((address, event))
        self.settle()

    def settle(self) -> None:
        while self._waiting:
            address, event = self._waiting.popleft()
            if address not in self.mute:
                self._do(address, self.actors[address].handle(event))

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self._alarms and self._alarms[0][0] <= until:
            self.now, _, address, name = heapq.heappop(self._alarms)
            self.deliver(address, Woken(self.now, name))
        self.now = until

    def lose(self, node: str) -> None:
        self.mute.add(node)
        for address in self.actors:
            self.deliver(address, NodeLost(self.now, node))

    def measure(self, node: str, *, queued: float = 0.0, load: float = 0.5, **rates: float) -> None:
        """The rates of the fragments on a node; all of them select everything and keep ten tuples a rate."""
        operators = {name: OperatorStatistics(rate, 1.0, 1e-3, 100 * rate, 10 * rate) for name, rate in rates.items()}
        statistics = Statistics(self.now, 1.0, {}, operators, {node: NodeStatistics(load, queued)})
        self.deliver(node, Measured(self.now, statistics))

    def _do(self, address: str, instructions: Iterable[PolicyInstruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Wake(at, name):
                    heapq.heappush(self._alarms, (at, next(self._order), address, name))
                case Send(to, message, _):
                    self.sent.append((address, instruction))
                    self._waiting.append((to, Arrived(self.now, address, message)))
                case Move():
                    self.moves.append((address, instruction))
                    self._waiting.append((address, self._moved(instruction)))
                case Note(text):
                    self.notes.append(text)

    def _moved(self, move: Move) -> PolicyEvent:
        end = (self.now, move.fragment, move.source, move.target)
        if move.fragment in self.refuse:
            return MoveFailed(*end, self.refuse[move.fragment])
        assert self.where[move.fragment] == move.source
        self.where[move.fragment] = move.target
        return MoveDone(*end, 0.0)
