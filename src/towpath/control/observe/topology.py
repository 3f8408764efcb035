"""Where streams enter, and how far the nodes of a job are from each other. Remembers what was measured; does no I/O.

A latency is half of a round trip. What a site knows comes first. Else it is what was measured: between the controller
and a node by the sign of life, between two nodes by the links between them. Each settles on the 20th percentile of its
last ten measurements, so that load does not show. What nobody has measured is the distance between Vivaldi's
coordinates, which the rest of the measurements give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from towpath.control.observe.measures import smoothed
from towpath.placement.cluster import Network, NetworkLink
from towpath.placement.index import Floats, Ints
from towpath.placement.vivaldi import PercentileFilter, embed

CONTROLLER = ""  # among the names of nodes
Pair = tuple[str, str]  # in the order of their names: distances are the same both ways
Known = Literal["given", "measured", "estimated"]


def pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


@dataclass
class Topology:
    given: Mapping[Pair, float] = field(default_factory=dict)  # seconds one way
    entries: Mapping[str, str] = field(default_factory=dict)  # by stream, where it enters; others every node reads
    delays: dict[tuple[str, str], float] = field(default_factory=dict)  # of links, by maker and reader
    _measured: dict[Pair, float] = field(default_factory=dict)
    _filters: dict[Pair, PercentileFilter] = field(default_factory=dict)
    _answers: dict[tuple[str, ...], tuple[dict[Pair, float], Network]] = field(default_factory=dict)

    def heard(self, one: str, other: str, seconds: float) -> None:
        """A latency was measured; with CONTROLLER, of the way between it and a node."""
        between = pair(one, other)
        self._measured[between] = self._filters.setdefault(between, PercentileFilter())(seconds)

    def delayed(self, maker: str, reader: str, seconds: float) -> None:
        """A row was on its way over a link for so long, from its commit on."""
        self.delays[maker, reader] = smoothed(self.delays.get((maker, reader)), seconds)

    def how(self, one: str, other: str) -> Known:
        between = pair(one, other)
        return "given" if between in self.given else "measured" if between in self._measured else "estimated"

    def measured(self, one: str, other: str) -> float | None:
        """What was measured, also where something else is given."""
        return self._measured.get(pair(one, other))

    def latency(self, one: str, other: str) -> float | None:
        """Seconds, as given or measured; None if it is neither."""
        if one == other:
            return 0.0
        between = pair(one, other)
        return self.given.get(between, self._measured.get(between))

    def network(self, nodes: Sequence[str]) -> Network:
        """Nodes of which nothing is known are where all others are."""
        key, known = tuple(nodes), self._measured | dict(self.given)
        if key not in self._answers or self._answers[key][0] != known:
            latencies = self._estimated(nodes).tolist()
            ways = ((a, b, latencies[i][j]) for i, a in enumerate(nodes) for j, b in enumerate(nodes) if i != j)
            self._answers[key] = known, Network(links=tuple(NetworkLink(a, b, s) for a, b, s in ways if s > 0))
        return self._answers[key][1]

    def _estimated(self, nodes: Sequence[str]) -> Floats:
        every = [*nodes, CONTROLLER]
        known = np.full((len(every), len(every)), np.nan)
        for a, one in enumerate(every):
            for b, other in enumerate(every):
                if (seconds := self.latency(one, other)) is not None:
                    known[a, b] = seconds
        count = len(nodes)
        if np.isnan(known[:count, :count]).any():
            known = np.where(np.isnan(known), self._predicted(known), known)
        return known[:count, :count]

    @staticmethod
    def _predicted(known: Floats) -> Floats:
        """Of nodes without any measurement nothing is said: they are where everybody is."""
        apart = known.copy()
        np.fill_diagonal(apart, np.nan)
        if np.isnan(apart).all():
            return np.zeros_like(known)

        def sample(nodes: Ints, others: Ints) -> Floats:
            return np.asarray(known[nodes, others])

        points = embed(sample, len(known)).points
        found: Floats = np.linalg.norm(points[:, None] - points[None], axis=-1)
        return found
