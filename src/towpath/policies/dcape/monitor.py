"""Statistics as changes: what is sent, and the runtime monitor that puts it back together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from towpath.placement.cluster import Property
from towpath.placement.statistics import Statistics
from towpath.policies.dcape.properties import Descriptions, PropertyChange

Row = tuple[float, str, str, str, Property]  # when it was reported, and the change


class Increments:
    """Lets through only what differs from what was last let through by more than a share of it."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._sent: dict[tuple[str, str, str], Property] = {}

    def of(self, changes: Iterable[PropertyChange]) -> tuple[PropertyChange, ...]:
        return tuple(change for change in changes if self._passes(change))

    def forget(self) -> None:
        """Everything is new again."""
        self._sent.clear()

    def _passes(self, change: PropertyChange) -> bool:
        key = (change.kind, change.subject, change.property)
        if key in self._sent and _alike(self._sent[key], change.value, self._tolerance):
            return False
        self._sent[key] = change.value
        return True


def _alike(before: Property, now: Property, tolerance: float) -> bool:
    if before == now:
        return True
    if isinstance(before, str) or isinstance(now, str):
        return False
    return abs(now - before) <= tolerance * max(abs(before), abs(now))


def changes_of(statistics: Statistics) -> Iterator[PropertyChange]:
    for node, measured in statistics.nodes.items():
        for name, value in asdict(measured).items():
            yield PropertyChange("processor", node, name, value)
    for operator, seen in statistics.operators.items():
        for name, value in asdict(seen).items():
            yield PropertyChange("operator", operator, name, value)


class LoadMonitor:
    """The statistics table of a manager."""

    def __init__(self, descriptions: Descriptions, history: int) -> None:
        self.descriptions = descriptions
        self.history: deque[Row] = deque(maxlen=history)

    def take(self, at: float, changes: Iterable[PropertyChange]) -> None:
        for change in changes:
            self.descriptions.apply(change)
            self.history.append((at, change.kind, change.subject, change.property, change.value))
