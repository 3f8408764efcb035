"""Drives the actors of a policy: the simulator in its own time, the control loop in that of its polls.

What an actor can rely on, whoever runs it (tests/policies/test_contract.py):

- `Started` is the first that it hears, once.
- It hears one event after the other, and times never go back. What is sent or asked while an event is handled comes
  after it, and after everything that happened at the same time: all nodes are measured before anybody acts on it.
- Messages from one address to another arrive in the order in which they were sent, or not at all.
- `Measured` comes to whom `Actors.measures` names, at most once in a window for each node.
- Whoever asks for a move hears once how it ended: `MoveDone` or `MoveFailed`.
- The actor of a node that is lost hears nothing from then on, and its alarms are forgotten. All others hear `NodeLost`.
  If the node comes back, all hear `NodeJoined`, the node's own actor as the first thing again.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Protocol

from towpath.placement.cluster import Node
from towpath.runtime import actors as seam
from towpath.runtime.actors import Actors, Address, PolicyEvent, PolicyInstruction

Action = Callable[[], None]
Asked = Callable[[Address, seam.Move], None]
Noted = Callable[[Address, str], None]
Scaled = Callable[[Address, seam.ScalingWish], None]


class Clock(Protocol):
    now: float

    def at(self, time: float, action: Action) -> None:
        """Does something at a time that is not past; what is due at once, in the order in which it was asked for."""


class MessageNetwork(Protocol):
    def send(self, sender: Address, to: Address, size: int, arrive: Action) -> None:
        """Calls `arrive` when a message of so many bytes is there: in the order sent for each pair of addresses."""


class Driver:
    def __init__(
        self,
        actors: Actors,
        clock: Clock,
        network: MessageNetwork,
        asked: Asked,
        noted: Noted,
        scaled: Scaled | None = None,
    ) -> None:
        """`asked` hears of moves that an actor wants, `noted` what it has to say, `scaled` of nodes to add or give up.

        Without `scaled` nodes neither come nor go, and that an actor wants it is noted.
        """
        self.actors = actors
        self._clock = clock
        self._network = network
        self._asked = asked
        self._noted = noted
        self._scaled = scaled
        self._by_address = {actor.address: actor for actor in actors.actors}
        self._started: set[Address] = set()
        self._lost: set[Address] = set()
        self._losses: Counter[Address] = Counter()  # how often the node of an actor was lost
        self._waiting: deque[tuple[Address, PolicyEvent]] = deque()
        self._handling = False

    def start(self) -> None:
        self._notify_all(seam.Started(self._clock.now))

    def reaches(self, address: Address) -> bool:
        return address in self._by_address and address not in self._lost

    def deliver(self, address: Address, event: PolicyEvent) -> None:
        """Events are handled one after the other, those that come while one is handled after it."""
        self.deliver_at_once([(address, event)])

    def deliver_at_once(self, events: Iterable[tuple[Address, PolicyEvent]]) -> None:
        """What happened at the same time: all of it is heard before anything that follows from it."""
        self._waiting.extend(events)
        self._handle()

    def lose(self, node: str) -> None:
        self._lost.add(node)
        self._losses[node] += 1
        self._notify_all(seam.NodeLost(self._clock.now, node))

    def join(self, node: Node) -> None:
        self._lost.discard(node.name)
        self._notify_all(seam.NodeJoined(self._clock.now, node))

    def _notify_all(self, event: PolicyEvent) -> None:
        self.deliver_at_once((actor.address, event) for actor in self.actors.actors)

    def _handle(self) -> None:
        if self._handling:
            return
        self._handling = True
        try:
            while self._waiting:
                self._notify(*self._waiting.popleft())
        finally:
            self._handling = False

    def _notify(self, address: Address, event: PolicyEvent) -> None:
        if not self.reaches(address):
            return
        if address not in self._started:
            self._started.add(address)
            self._hand(address, seam.Started(self._clock.now))
        if not isinstance(event, seam.Started):
            self._hand(address, event)

    def _hand(self, address: Address, event: PolicyEvent) -> None:
        for instruction in self._by_address[address].handle(event):
            self._do(address, instruction)

    def _do(self, address: Address, instruction: PolicyInstruction) -> None:
        match instruction:
            case seam.Wake(at, name):
                alarm = partial(self._wake, address, name, self._losses[address])
                self._clock.at(max(at, self._clock.now), alarm)
            case seam.Send(to, message, size):
                self._network.send(address, to, size, partial(self._arrive, address, to, message))
            case seam.Move():
                self._asked(address, instruction)
            case seam.Note(text):
                self._noted(address, text)
            case seam.NeedNode() | seam.ReleaseNode() if self._scaled is not None:
                self._scaled(address, instruction)
            case seam.NeedNode(reason):
                self._noted(address, f"another node is wanted, and there is none to give: {reason}")
            case seam.ReleaseNode(nodes, reason):
                self._noted(address, f"one of {', '.join(nodes)} could go, and nodes stay: {reason}")

    def _wake(self, address: Address, name: str, losses: int) -> None:
        if losses == self._losses[address]:
            self.deliver(address, seam.Woken(self._clock.now, name))

    def _arrive(self, sender: Address, to: Address, message: object) -> None:
        self.deliver(to, seam.Arrived(self._clock.now, sender, message))


class PolledClock:
    """Is set to the time every now and then; what was due meanwhile is done as if at the time it was due."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._due: list[tuple[float, int, Action]] = []
        self._numbers = count()

    def at(self, time: float, action: Action) -> None:
        heapq.heappush(self._due, (time, next(self._numbers), action))

    def advance(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            time, _, action = heapq.heappop(self._due)
            self.now = max(self.now, time)
            action()
        self.now = max(self.now, now)


class InProcess:
    """All actors are in this process: a message takes as long as their nodes are apart, without `latency` no time."""

    def __init__(self, clock: Clock, latency: Callable[[Address, Address], float] = lambda one, other: 0.0) -> None:
        self._clock = clock
        self._latency = latency
        self._arrivals: dict[tuple[Address, Address], float] = {}  # of the last message from one to the other

    def send(self, sender: Address, to: Address, size: int, arrive: Action) -> None:
        # Distances change, and messages do not overtake each other.
        due = max(self._clock.now + self._latency(sender, to), self._arrivals.get((sender, to), 0.0))
        self._arrivals[sender, to] = due
        self._clock.at(due, arrive)
