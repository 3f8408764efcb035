"""Drives the actors of a policy in this process, as the simulator does in its own time. Pure: it is told the time."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count

from towpath.runtime import moves as seam
from towpath.runtime.moves import Actors, Address, Event, Instruction

Asked = Callable[[Address, seam.Move], None]
Noted = Callable[[Address, str], None]


class Driver:
    def __init__(self, actors: Actors, at: float, asked: Asked, noted: Noted) -> None:
        """`asked` hears of moves that an actor wants, `noted` what it has to say."""
        self.actors = actors
        self.now = at
        self._asked = asked
        self._noted = noted
        self._by_address = {actor.address: actor for actor in actors.actors}
        self._alarms: list[tuple[float, int, Address, str]] = []
        self._numbers = count()
        self._waiting: deque[tuple[Address, Event]] = deque()
        self._handling = False
        self.tell_all(seam.Started(at))

    def tell(self, address: Address, event: Event) -> None:
        """Events are handled one after the other, those that come while one is handled after it."""
        self._waiting.append((address, event))
        if self._handling:
            return
        self._handling = True
        try:
            while self._waiting:
                receiver, next_event = self._waiting.popleft()
                actor = self._by_address.get(receiver)
                for instruction in actor.handle(next_event) if actor else ():
                    self._do(receiver, instruction)
        finally:
            self._handling = False

    def tell_all(self, event: Event) -> None:
        for actor in self.actors.actors:
            self.tell(actor.address, event)

    def advance(self, now: float) -> None:
        """Wakes the actors whose time has come, each at the time it asked for."""
        while self._alarms and self._alarms[0][0] <= now:
            at, _, address, name = heapq.heappop(self._alarms)
            self.now = max(self.now, at)
            self.tell(address, seam.Woken(self.now, name))
        self.now = max(self.now, now)

    def _do(self, address: Address, instruction: Instruction) -> None:
        match instruction:
            case seam.Wake(at, name):
                heapq.heappush(self._alarms, (at, next(self._numbers), address, name))
            case seam.Send(to, message, _):
                self._waiting.append((to, seam.Arrived(self.now, address, message)))
            case seam.Move():
                self._asked(address, instruction)
            case seam.Note(text):
                self._noted(address, text)
