"""Limits against restlessness: how much a policy may move, whatever it asks for."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

MINUTE_S = 60.0


@dataclass(frozen=True)
class Limits:
    rest_s: float = 60.0  # for so long a fragment stays where a move has brought it
    per_node: int = 20  # moves under way from or to a node
    per_minute: int = 100


class Restraint:
    """Counts moves. Times are seconds since the start of the job."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rests_until: dict[str, float] = {}
        self._under_way: Counter[str] = Counter()  # by node
        self._begun: deque[float] = deque()  # within the last minute

    def refusal(self, at: float, fragment: str, source: str, target: str) -> str | None:
        """Why a move may not begin now."""
        while self._begun and self._begun[0] <= at - MINUTE_S:
            self._begun.popleft()
        left = self._rests_until.get(fragment, at) - at
        if left > 0:
            return f"it has moved already and rests for another {left:.0f} s (control.limits.rest)"
        if len(self._begun) >= self._limits.per_minute:
            return f"{len(self._begun)} moves began within a minute (control.limits.per_minute)"
        for node in (source, target):
            if self._under_way[node] >= self._limits.per_node:
                return f"{self._under_way[node]} moves of {node} are under way (control.limits.per_node)"
        return None

    def begin(self, at: float, source: str, target: str) -> None:
        self._begun.append(at)
        self._under_way.update((source, target))

    def end(self, at: float, fragment: str, source: str, target: str) -> None:
        self._under_way.subtract((source, target))
        self._rests_until[fragment] = at + self._limits.rest_s
