"""What all generators share: noise by position, arrival times, and the interface their readers see.

A generator is imported by Spark's Python workers, so nothing here needs more than numpy and pyarrow.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Positions = npt.NDArray[np.uint64]
UTC_US = pa.timestamp("us", tz="UTC")


class Generator(Protocol):
    """A stream whose row k is a pure function of its parameters and k."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rate(self) -> float:
        """Rows per second of this stream."""

    @property
    def start_us(self) -> int:
        """Event time of row 0, before disorder."""

    @property
    def disorder_us(self) -> int:
        """How far behind its place in the arrival order an event time may lie."""

    @property
    def rows(self) -> int | None:
        """Where the stream ends; None: never."""

    def batch(self, first: int, last: int) -> pa.RecordBatch:
        """Rows first to last - 1."""

    def count_until(self, elapsed_us: int) -> int:
        """How many rows have arrived this long after the start."""


@dataclass(frozen=True)
class Arrivals:
    """Rows that arrive evenly, with event times late by up to `disorder_us`."""

    key: str  # names the stream's noise: seed and stream
    rate: float
    start_us: int
    disorder_us: int
    rows: int | None

    def count_until(self, elapsed_us: int) -> int:
        # A rate such as 5000/96 is rounded; without the slack the row due exactly now would be missed.
        arrived = max(0, math.floor(elapsed_us * self.rate / 1e6 + 1e-6))
        return arrived if self.rows is None else min(arrived, self.rows)

    def event_times(self, k: Positions) -> npt.NDArray[np.int64]:
        due = np.floor(k * (1e6 / self.rate)).astype(np.int64)
        late = (self.noise("late", k) % np.uint64(self.disorder_us + 1)).astype(np.int64)
        return self.start_us + due - late

    def noise(self, name: str, k: Positions) -> Positions:
        return noise(f"{self.key}/{name}", k)

    def uniform(self, name: str, k: Positions) -> npt.NDArray[np.float64]:
        return uniform(f"{self.key}/{name}", k)


def positions(first: int, last: int) -> Positions:
    return np.arange(first, last, dtype=np.uint64)


def noise(key: str, k: Positions) -> Positions:
    """64 random bits per position: splitmix64, counter based, so that any batch costs its own rows only."""
    offset = np.uint64(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little"))
    z = k * np.uint64(0x9E3779B97F4A7C15) + offset
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(key: str, k: Positions) -> npt.NDArray[np.float64]:
    """Random numbers in [0, 1)."""
    return (noise(key, k) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def choose(words: Sequence[str], weights: Sequence[float], u: npt.NDArray[np.float64]) -> pa.Array:
    """One word per number in [0, 1), as often as its weight says."""
    bounds = np.cumsum(weights) / sum(weights)
    return pa.array(words, pa.string()).take(pa.array(np.searchsorted(bounds[:-1], u, side="right")))
