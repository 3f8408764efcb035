"""What an actor takes: CPU, memory and messages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from towpath.policies.dcape.messages import Message, size
from towpath.runtime.actors import Actor, Arrived, PolicyEvent, PolicyInstruction, Send

CONFIGURING = 6.0  # seconds at the start, in which plans and configuration are sent


@dataclass
class Meter:
    cpu: float = 0.0  # seconds
    memory: int = 0  # bytes, at the end
    received: Counter[int] = field(default_factory=Counter)  # bytes by second
    sent: Counter[int] = field(default_factory=Counter)
    messages: Counter[int] = field(default_factory=Counter)  # number of both by second


class Metered:
    """An actor with a meter on it."""

    def __init__(self, actor: Actor, meter: Meter) -> None:
        self.address = actor.address
        self._actor = actor
        self._meter = meter

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        meter, second = self._meter, int(event.at)
        if isinstance(event, Arrived):
            meter.received[second] += _size(event.message)
            meter.messages[second] += 1
        begin = time.process_time()
        instructions = self._actor.handle(event)
        meter.cpu += time.process_time() - begin
        sizes = [i.size for i in instructions if isinstance(i, Send)]
        meter.sent[second] += sum(sizes)
        meter.messages[second] += len(sizes)
        return instructions


def _size(message: object) -> int:
    assert isinstance(message, Message)
    return size(message)


def rate(counted: Counter[int], seconds: float) -> float:
    """Per second, after the configuration."""
    return sum(n for second, n in counted.items() if second >= CONFIGURING) / (seconds - CONFIGURING)


def most(counted: Counter[int]) -> float:
    return max((n for second, n in counted.items() if second >= CONFIGURING), default=0)


def at_first(counted: Counter[int]) -> float:
    return sum(n for second, n in counted.items() if second < CONFIGURING)
