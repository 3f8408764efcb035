"""The data plane as the control plane sees it: time goes on, fragments are placed, nodes and links fail."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.lab.sim import parcels
from towpath.lab.sim.encode import Joins, Services, encode, grown
from towpath.lab.sim.loop import FULL, advance, hasten, start
from towpath.lab.sim.sources import Profiles
from towpath.lab.sim.tables import FOREVER, NOBODY
from towpath.placement.index import index
from towpath.placement.problem import Placement, Problem


class DataPlane:
    """Nodes, fragments and operators are numbers here: their positions in the problem."""

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        profile: Profiles,
        service: Services,
        seed: int,
        joins: Joins,
        seconds: float,
    ) -> None:
        self.t = encode(problem, placement, profile, service, seed, joins, seconds)
        self._first = index(problem).first
        self._errands = 0
        self._open_errands = 0
        with _as_compiled():
            start(self.t)
        self.advance(0.0)  # compiles what is not compiled yet, so that this is not mistaken for simulated time

    @property
    def now(self) -> float:
        return float(self.t.clock[0].now)

    def advance(self, until: float) -> list[int]:
        """Goes on until then, or until errands end: their numbers."""
        clock = self.t.clock[0]
        with _as_compiled():
            while advance(self.t, until) == FULL:
                self.t = grown(self.t, len(self.t.parcels))
                clock = self.t.clock[0]
        ended = self.t.reports[: clock.reports].tolist()
        clock.reports = 0
        self._open_errands -= len(ended)
        return ended

    # --- fragments ---------------------------------------------------------------------------------------------------

    def place_of(self, fragment: int, node: int) -> int | None:
        """Where a fragment runs on a node and will go on doing so."""
        for s, place in enumerate(self.t.places[fragment]):
            if place.node == node and place.until == FOREVER:
                return s
        return None

    def nodes_of(self, fragment: int) -> list[int]:
        return [int(place.node) for place in self.t.places[fragment] if place.node != NOBODY]

    def next_version(self) -> int:
        self.t.clock[0].version += 1
        return int(self.t.clock[0].version)

    def open(self, fragment: int, place: int, node: int, since: int, emits: int, waiting: bool) -> None:
        row = self.t.places[fragment, place]
        row.node, row.since, row.until, row.emits, row.waiting = node, since, FOREVER, emits, waiting
        row.first = row.last = NOBODY

    def close(self, fragment: int, place: int) -> None:
        """Forgets a place; what it held is lost."""
        self._forget(fragment, place)
        self.t.places[fragment, place].node = NOBODY

    def _forget(self, fragment: int, place: int) -> None:
        row = self.t.places[fragment, place]
        for p in self._chain(int(row.first)):
            self.t.clock[0].lost_at_nodes += self.t.parcels[p].tuples
            parcels.drop_parcel(self.t, p)
        row.first = row.last = NOBODY
        row.waiting = 0
        self.t.counts.state[self.operators_of(fragment), place] = 0.0
        self.t.sides[self._joins_of(fragment), place] = np.zeros((), self.t.sides.dtype)
        self.t.buckets[self._joins_of(fragment), place] = 0

    def resume(self, fragment: int, place: int) -> None:
        """What was held goes on, as soon as the node is between two services: what it makes now is held behind it."""
        row = self.t.places[fragment, place]
        p = self._parcel(parcels.RESUMES)
        self.t.parcels[p].point, self.t.parcels[p].place = fragment, place
        parcels.prepend(self.t, int(row.node), p, p)
        self._call(int(row.node))

    def _call(self, node: int) -> None:
        """A node that is idle looks at its queue again."""
        parcels.schedule(self.t, self.now, parcels.CALLED, node, 0)

    def operators_of(self, fragment: int) -> slice:
        return slice(int(self._first[fragment]), int(self._first[fragment + 1]))

    def state(self, fragment: int, place: int) -> float:
        return float(self.t.counts.state[self.operators_of(fragment), place].sum())

    def move_state(self, fragment: int, source: int, target: int) -> None:
        operators = self.operators_of(fragment)
        self.t.counts.state[operators, target] = self.t.counts.state[operators, source]
        joins = self._joins_of(fragment)
        self.t.sides[joins, target] = self.t.sides[joins, source]
        self.t.buckets[joins, target] = self.t.buckets[joins, source]

    def _joins_of(self, fragment: int) -> NDArray[np.int64]:
        joins = self.t.operators.join[self.operators_of(fragment)]
        return np.asarray(joins[joins != NOBODY])

    # --- errands -----------------------------------------------------------------------------------------------------

    def cross(self, source: int, target: int, size: float) -> tuple[float, float]:
        """Sends bytes that are no tuples; when the link is free again, and when they arrive."""
        with _as_compiled():
            arrives = parcels.cross(self.t, source, target, size, self.now)
        return float(self.t.links[source, target].free), float(arrives)

    def is_up(self, source: int, target: int) -> bool:
        return bool(self.t.links[source, target].up)

    def work(self, node: int, seconds: float) -> int:
        """A node works for itself when everything before it in the queue is done; the number of the errand."""
        p = self._errand(parcels.ERRAND, seconds)  # before self.t is asked for: the tables may grow with it
        parcels.append(self.t, node, p)
        self._call(node)
        return self._errands

    def hasten(self, fragment: int, place: int, node: int) -> int:
        """What waits on a node for a fragment is next in turn; the number of the errand that is done after it."""
        p = self._errand(parcels.ERRAND, 0.0)
        parts = 2 * int(self.t.nodes[node].queued)  # a parcel may have to be divided in three
        while self.t.clock[0].unused < parts + self.t.clock[0].room:
            self.t = grown(self.t, len(self.t.parcels))
        hasten(self.t, fragment, place, node, p)
        self._call(node)
        return self._errands

    def follow(self, source: int, target: int) -> int:
        """An errand on the heels of all that was sent from node to node: done when that is processed."""
        if source == target:
            return self.work(target, 0.0)
        p = self._errand(parcels.ERRAND, 0.0)
        with _as_compiled():
            parcels.send(self.t, p, source, target, 0.0, self.now)
        return self._errands

    def flag(self, source: int, target: int) -> int:
        """An errand on the heels of all that was sent from node to node: done when that has arrived."""
        p = self._errand(parcels.FLAG, 0.0)
        with _as_compiled():
            parcels.send(self.t, p, source, target, 0.0, self.now)
        return self._errands

    def _errand(self, kind: int, seconds: float) -> int:
        self._errands += 1
        self._open_errands += 1
        if self._open_errands > len(self.t.reports):
            self.t = self.t._replace(reports=np.zeros(2 * len(self.t.reports), np.int64))
        p = self._parcel(kind)
        self.t.parcels[p].errand, self.t.parcels[p].work = self._errands, seconds
        return p

    def _parcel(self, kind: int) -> int:
        """A parcel that is no tuple."""
        clock = self.t.clock[0]
        if clock.unused < clock.room or len(self.t.events) - clock.events < clock.room:
            self.t = grown(self.t, len(self.t.parcels))
        p = int(parcels.new_parcel(self.t))
        self.t.parcels[p].kind, self.t.parcels[p].tuples = kind, 0
        return p

    # --- faults ------------------------------------------------------------------------------------------------------

    def crash(self, n: int) -> list[int]:
        """A node dies with all that waits at it and all its state; the errands that die with it."""
        clock, node = self.t.clock[0], self.t.nodes[n]
        ended = [] if node.errand == NOBODY else [int(node.errand)]
        for p in [*self._chain(int(node.first)), *self._chain(int(node.made_first))]:
            if self.t.parcels[p].kind == parcels.ERRAND:
                ended.append(int(self.t.parcels[p].errand))
            parcels.drop_parcel(self.t, p)
        clock.lost_at_nodes += node.queued
        if node.serving:
            node.busy -= node.free - self.now
        parcels.count(self.t, n, -int(node.queued), 0.0)
        node.alive = node.serving = 0
        node.queued_bytes = node.transfers = 0.0
        node.free = self.now
        node.lives += 1
        node.first = node.last = node.made_first = node.made_last = node.errand = NOBODY
        fragments, places = np.nonzero(self.t.places.node == n)
        for fragment, place in zip(fragments.tolist(), places.tolist(), strict=True):
            self._forget(fragment, place)
        self._open_errands -= len(ended)
        return ended

    def recover(self, n: int) -> None:
        self.t.nodes[n].alive = 1

    def is_alive(self, n: int) -> bool:
        return bool(self.t.nodes[n].alive)

    def set_link(self, source: int, target: int, up: bool) -> None:
        self.t.links[source, target].up = up

    def set_latencies(self, latencies: NDArray[np.floating[Any]]) -> None:
        """Seconds, by source and target; what is not known (NaN) stays."""
        known = ~np.isnan(latencies)
        self.t.links.latency[known] = latencies[known]

    def _chain(self, first: int) -> list[int]:
        found = []
        while first != NOBODY:
            found.append(first)
            first = int(self.t.parcels[first].next)
        return found


def _as_compiled() -> AbstractContextManager[object]:
    """Compiled arithmetic overflows and divides by zero silently; without compilation NumPy would warn."""
    return np.errstate(over="ignore", divide="ignore", invalid="ignore")
