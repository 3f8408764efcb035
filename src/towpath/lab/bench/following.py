"""Somebody who follows a query's results and notes when they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow.compute as pc

from towpath.results import Part, batches, end


@dataclass(frozen=True)
class Arrival:
    """Rows that came together: when, and the earliest and the latest of their result times, all by the clock."""

    at_s: float
    oldest_s: float
    newest_s: float

    @property
    def delay_s(self) -> float:
        return self.at_s - self.oldest_s


class Follower:
    """Begins behind everything there is now."""

    def __init__(self, parts: Callable[[str], Sequence[Part]], query: str) -> None:
        self._parts = lambda: list(parts(query))
        self._position = end(self._parts())
        self.arrivals: list[Arrival] = []

    def look(self) -> None:
        now = self._parts()
        for chunk in batches(now, self._position, lambda: self._parts() == now, with_time=True):
            self._position = chunk.position
            if chunk.table.num_rows:
                bounds = pc.min_max(chunk.table["_time"]).as_py()
                self.arrivals.append(Arrival(time.time(), bounds["min"].timestamp(), bounds["max"].timestamp()))

    @property
    def longest_s(self) -> float:
        """The longest delay from a result's time to its arrival."""
        return max((arrival.delay_s for arrival in self.arrivals), default=0.0)

    def pauses_s(self, from_s: float, until_s: float) -> list[float]:
        """Between arrivals that follow each other; of pauses that reach into the span of time."""
        return [b.at_s - a.at_s for a, b in pairwise(self.arrivals) if b.at_s > from_s and a.at_s < until_s]

    def first_since(self, result_s: float) -> float | None:
        """When the first result of that time or a later one came."""
        return next((arrival.at_s for arrival in self.arrivals if arrival.newest_s >= result_s), None)
