"""Simulated time for the control plane: what is due first comes first; of what is due at once, the more urgent, then
the older. A process is a generator that yields what it waits for: seconds, or a Signal.

What an action raises ends the simulation: it is never swallowed, and says when it happened.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from math import inf

Action = Callable[[], None]

FAULTS, ACTS, WINDOWS = 0, 1, 2  # urgency: what breaks comes before what is done, and that before what is measured


@dataclass
class Signal:
    """Goes off when it was counted down to nothing."""

    count: int = 1
    waiting: list[Action] = field(default_factory=list)

    def down(self) -> None:
        self.count -= 1
        if self.count == 0:
            waiting, self.waiting = self.waiting, []
            for action in waiting:
                action()

    def then(self, action: Action) -> None:
        if self.count <= 0:
            action()
        else:
            self.waiting.append(action)


Process = Generator[float | Signal, None, None]


class Kernel:
    def __init__(self) -> None:
        self.now = 0.0
        self._sequence = 0
        self._due: list[tuple[float, int, int, Action]] = []

    @property
    def next(self) -> float:
        return self._due[0][0] if self._due else inf

    def at(self, time: float, action: Action, urgency: int = ACTS) -> None:
        if not time >= self.now:
            raise ValueError(f"asked at {self.now} for something at {time}, which is past")
        heapq.heappush(self._due, (time, urgency, self._sequence, action))
        self._sequence += 1

    def step(self) -> None:
        self.now, _, _, action = heapq.heappop(self._due)
        try:
            action()
        except Exception as error:
            error.add_note(f"at {self.now:.6f} simulated seconds")
            raise

    def run(self, process: Process) -> None:
        """Goes on with a process until it waits for something."""
        for waits_for in process:
            if isinstance(waits_for, Signal):
                if waits_for.count > 0:
                    waits_for.then(lambda: self.run(process))
                    return
            else:
                self.at(self.now + waits_for, lambda: self.run(process))
                return
