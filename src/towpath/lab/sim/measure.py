"""What the data plane counted between two moments, as Statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from towpath.lab.sim.encode import bytes_in
from towpath.lab.sim.plane import DataPlane
from towpath.placement.index import Floats, Ints, index, ranges
from towpath.placement.problem import Problem
from towpath.placement.statistics import NodeStatistics, OperatorStatistics, Statistics


def busy_so_far(plane: DataPlane) -> Floats:
    """Seconds, by node: without what is left of the service under way."""
    nodes = plane.t.nodes
    left = np.where(nodes.serving == 1, nodes.free - plane.now, 0.0)
    return np.asarray(nodes.busy - left)


def waited_so_far(plane: DataPlane) -> Floats:
    """Seconds that tuples spent at each node, summed: over a time, the mean number of them times that time."""
    nodes = plane.t.nodes
    return np.asarray(nodes.waited + nodes.queued * (plane.now - nodes.queued_since))


class _Counted:
    """Everything that is counted, at one moment."""

    def __init__(self, plane: DataPlane) -> None:
        t = plane.t
        self.at = plane.now
        self.busy, self.waited = busy_so_far(plane), waited_so_far(plane)
        self.tuples = t.streams.tuples.copy()
        self.bytes_in, self.bytes_out = t.nodes.bytes_in.copy(), t.nodes.bytes_out.copy()
        self.taken, self.given, self.work = t.counts.taken.copy(), t.counts.given.copy(), t.counts.work.copy()


class Measurements:
    def __init__(self, problem: Problem, plane: DataPlane) -> None:
        self._problem = problem
        self._columns = index(problem)
        self._plane = plane
        rate = self._columns.rate_in
        self._tuple_bytes = np.divide(bytes_in(self._columns), rate, out=np.ones_like(rate), where=rate > 0)
        self._before = _Counted(plane)

    def take(self, nodes: Iterable[int]) -> Iterator[Statistics]:
        """What was measured on each of these nodes since the last time."""
        before, now = self._before, _Counted(self._plane)
        self._before = now
        seconds = now.at - before.at
        load, queued = (now.busy - before.busy) / seconds, (now.waited - before.waited) / seconds
        bytes_in, bytes_out = (now.bytes_in - before.bytes_in) / seconds, (now.bytes_out - before.bytes_out) / seconds
        rates = (now.tuples - before.tuples) / seconds
        for n in nodes:
            node = self._plane.t.nodes[n]
            operators, places = self._running(n)
            memory = float(node.queued_bytes) + self._state(operators, places)
            measured = NodeStatistics(float(load[n]), float(queued[n]), memory, float(bytes_in[n]), float(bytes_out[n]))
            entering = np.flatnonzero(self._columns.stream_node == n)
            yield Statistics(
                at=now.at,
                seconds=seconds,
                streams={self._columns.points[s]: float(rates[s]) for s in entering},
                operators=self._operators(before, now, operators, places),
                nodes={self._problem.cluster.nodes[n].name: measured},
            )

    def _running(self, n: int) -> tuple[Ints, Ints]:
        """The operators that run on a node, and the place of each."""
        table = self._plane.t.places
        fragments, places = np.nonzero((table.node == n) & (table.waiting == 0))
        operators, owner = ranges(self._columns.first, fragments)
        return operators, places[owner]

    def _state(self, operators: Ints, places: Ints) -> float:
        """Operators of equal signature have one state."""
        _, once = np.unique(self._columns.identity[operators + self._columns.streams], return_index=True)
        return float(self._plane.t.counts.state[operators[once], places[once]].sum())

    def _operators(
        self, before: _Counted, now: _Counted, operators: Ints, places: Ints
    ) -> dict[str, OperatorStatistics]:
        """One that took nothing in cannot be measured: the problem's own values stand."""
        at = operators, places
        taken = now.taken[at] - before.taken[at]
        divisor = np.maximum(taken, 1)
        selectivity = np.where(
            taken > 0, (now.given[at] - before.given[at]) / divisor, self._columns.selectivity[operators]
        )
        cost = np.where(taken > 0, (now.work[at] - before.work[at]) / divisor, self._columns.cost[operators])
        state = self._plane.t.counts.state[at]
        columns = (taken / (now.at - before.at), selectivity, cost, state, state / self._tuple_bytes[operators])
        names = (self._columns.points[point] for point in operators + self._columns.streams)
        return dict(zip(names, map(OperatorStatistics, *(column.tolist() for column in columns)), strict=True))
