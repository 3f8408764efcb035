"""How far event time may go in one micro-batch, so that catching up comes in portions.

What is released goes by event time, and all streams together: so a portion puts nothing out of order that is in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MOST_ROWS = 2_000_000  # about, in one micro-batch of one input


class Pending(NamedTuple):
    """Rows of a file that wait: those after a time, spread over the file's span as evenly as anybody knows."""

    oldest_us: int
    newest_us: int
    rows: int
    after_us: int


def until_us(pending: Sequence[Pending], released_us: int, frontier_us: int, most: int = MOST_ROWS) -> int:
    """The event time up to which at most so many rows wait, by estimate; beyond `released_us` in any case."""
    if frontier_us <= released_us or sum(p.rows for p in pending) <= most:
        return frontier_us
    begin = np.array([max(p.after_us, p.oldest_us - 1) for p in pending], dtype=np.int64)
    end = np.array([p.newest_us for p in pending], dtype=np.int64)
    density = np.array([p.rows / (p.newest_us - p.oldest_us + 1) for p in pending])

    def rows(until: int) -> float:
        return float((np.clip(until - begin, 0, np.maximum(end - begin, 0)) * density).sum())

    low, high = min(max(released_us, int(begin.min())) + 1, frontier_us), frontier_us
    while low < high:
        middle = low + (high - low + 1) // 2
        low, high = (middle, high) if rows(middle) <= most else (low, middle - 1)
    return low
