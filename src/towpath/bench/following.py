"""Somebody who follows a query's results and notes how late they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pyarrow.compute as pc

from towpath.results import Part, batches, end


class Follower:
    """Begins behind everything there is now."""

    def __init__(self, parts: Callable[[str], Sequence[Part]], query: str) -> None:
        self._parts = lambda: list(parts(query))
        self._position = end(self._parts())
        self.longest_s = 0.0  # from a result's time to now, over all results so far
        self.rows = 0

    def look(self) -> None:
        now = self._parts()
        for chunk in batches(now, self._position, lambda: self._parts() == now, with_time=True):
            self._position = chunk.position
            if chunk.table.num_rows:
                self.rows += chunk.table.num_rows
                oldest = pc.min(chunk.table["_time"]).as_py()
                self.longest_s = max(self.longest_s, time.time() - oldest.timestamp())
