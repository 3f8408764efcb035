"""A node's place in the latency space, kept up to date by what it measures to others (section 3.1.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.random import Generator

from towpath.placement.vivaldi import PercentileFilter, corrected
from towpath.policies.sbon.messages import Ping, Pong, Position


class LatencyPosition:
    def __init__(
        self,
        position: Position,
        error: float,
        others: Iterable[str],
        neighbours: int,
        make_filter: Callable[[], PercentileFilter],
        rng: Generator,
    ) -> None:
        self.position = position
        self.error = error
        self._others = [str(node) for node in rng.permutation(list(others))]
        self._neighbours = neighbours
        self._make_filter = make_filter
        self._filters: dict[str, PercentileFilter] = {}  # one for each link
        self._rng = rng

    def ping(self, at: float) -> tuple[str, Ping] | None:
        """To a random neighbour: a few nodes, so that each of their filters fills up soon."""
        near = self._others[: self._neighbours]
        return (near[int(self._rng.integers(len(near)))], Ping(at)) if near else None

    def answer(self, ping: Ping) -> Pong:
        return Pong(ping.sent, self.position, self.error)

    def measured(self, node: str, pong: Pong, at: float) -> None:
        """Half of the round trip is one latency."""
        usual = self._filters.setdefault(node, self._make_filter())((at - pong.sent) / 2)
        moved, errors = corrected(
            np.array([self.position]),
            np.array([self.error]),
            np.array([pong.position]),
            np.array([pong.error]),
            np.array([usual]),
        )
        self.position, self.error = tuple(moved[0].tolist()), float(errors[0])

    def lost(self, node: str) -> None:
        if node in self._others:
            self._others.remove(node)
        self._filters.pop(node, None)

    def joined(self, node: str) -> None:
        if node not in self._others:
            self._others.append(node)
