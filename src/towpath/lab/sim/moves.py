"""How a fragment gets from node to node while tuples flow. Two protocols, each a process of the kernel.

Every parcel carries the version of the placement by which it was sent, and a place takes in an interval of versions. So
a tuple is processed at exactly one of the two places, and the old one is done when whatever was sent to it by older
versions is: an errand on the heels of that finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from towpath.lab.sim.encode import bytes_in
from towpath.lab.sim.kernel import Kernel, Process, Signal
from towpath.lab.sim.plane import DataPlane
from towpath.lab.sim.tables import FOREVER, NOBODY
from towpath.placement.index import Index, index
from towpath.placement.problem import Problem

Protocol = Literal["pause", "drain", "fence"]

CHUNK = 16 * 1024  # bytes of state that are sent at a time, so that tuples get their turn on the link
RETRY = 0.05  # seconds between two attempts to send state over a link that is cut


@dataclass
class Moving:
    fragment: int
    source: int
    target: int
    began: float
    old: int  # place
    new: int
    state_bytes: float = 0.0  # sent so far


Ended = Callable[[Moving, str | None], None]  # why it failed, if it did


class SimulatedMoves:
    def __init__(self, problem: Problem, plane: DataPlane, kernel: Kernel, protocol: Protocol) -> None:
        self._problem = problem
        self._columns = index(problem)
        self._plane = plane
        self._kernel = kernel
        self._protocol = protocol
        self._signals: dict[int, Signal] = {}  # by errand
        self._running: dict[int, tuple[Moving, Process, Ended]] = {}  # by fragment
        self._upstream, self._downstream = _neighbours(self._columns)

    def refusal(self, fragment: str, source: str, target: str) -> str | None:
        """Why this cannot be moved now."""
        position = self._problem.cluster.position
        unknown = [name for name in (source, target) if name not in position]
        if fragment not in self._columns.fragment:
            return f"there is no fragment {fragment}"
        if unknown:
            return f"there is no node {', '.join(unknown)}"
        f = self._columns.fragment[fragment]
        if f in self._running:
            return "it is already moving"
        if self._plane.place_of(f, position[source]) is None:
            return f"it does not run on {source}"
        if position[target] in self._plane.nodes_of(f):
            return f"it runs on {target} already"
        if fragment in self._problem.pinned:
            return f"it is pinned to {self._problem.pinned[fragment]}"
        if not self._plane.is_alive(position[target]):
            return f"{target} is dead"
        return None

    def start(self, fragment: str, source: str, target: str, ended: Ended) -> None:
        """Only when there is no refusal."""
        f, position = self._columns.fragment[fragment], self._problem.cluster.position
        old = self._plane.place_of(f, position[source])
        assert old is not None
        moving = Moving(f, position[source], position[target], self._kernel.now, old, old ^ 1)
        if not self._plane.is_alive(moving.source):
            protocol = self._restart(moving)
        elif self._protocol == "fence":
            protocol = self._fence(moving)
        else:
            protocol = self._pause(moving)
        process = self._to_its_end(moving, protocol, ended)
        self._running[f] = (moving, process, ended)
        self._kernel.run(process)

    def _to_its_end(self, moving: Moving, protocol: Process, ended: Ended) -> Process:
        yield from protocol
        del self._running[moving.fragment]
        ended(moving, None)

    def lost(self, node: int) -> None:
        """A node died: what was moving away from it begins anew at its target, what was moving to it stays."""
        for moving, process, ended in list(self._running.values()):
            if node not in (moving.source, moving.target):
                continue
            process.close()
            del self._running[moving.fragment]
            if node == moving.source:
                self._begin_anew(moving)
                ended(moving, None)
            else:
                self._plane.close(moving.fragment, moving.new)
                self._plane.t.places[moving.fragment, moving.old].until = FOREVER
                ended(moving, f"{self._problem.cluster.nodes[node].name} died")

    def report(self, errands: Iterable[int]) -> None:
        for errand in errands:
            if (signal := self._signals.pop(errand, None)) is not None:
                signal.down()

    # --- protocols ---------------------------------------------------------------------------------------------------

    def _pause(self, m: Moving) -> Process:
        """Tuples wait at the target until the state has come (D-CAPE, Algorithm 6).

        The old place first processes what was sent to it: in its turn, or, to drain, next, as if operators had queues
        of their own.
        """
        plane = self._plane
        version = plane.next_version()
        plane.open(m.fragment, m.new, m.target, since=version, emits=version, waiting=True)
        plane.t.places[m.fragment, m.old].until = version
        if self._protocol == "drain":
            yield self._arrived(m)
            yield self._all([plane.hasten(m.fragment, m.old, m.source)])
        else:
            yield self._drained(m)
        size = plane.state(m.fragment, m.old)
        work = self._problem.migration_cost * size
        yield self._worked(m.source, work)
        flushed = self._flushed(m)  # the old place's last results go before the new one's first
        yield from self._transfer(m, size)
        yield self._worked(m.target, work)
        yield flushed
        plane.move_state(m.fragment, m.old, m.new)
        plane.close(m.fragment, m.old)
        plane.resume(m.fragment, m.new)

    def _fence(self, m: Moving) -> Process:
        """The target takes tuples in until its windows are as full as the source's, then the source stops."""
        plane = self._plane
        plane.open(m.fragment, m.new, m.target, since=plane.next_version(), emits=FOREVER, waiting=False)
        yield self._window(m.fragment)
        version = plane.next_version()
        plane.t.places[m.fragment, m.new].emits = version
        plane.t.places[m.fragment, m.old].until = version
        yield self._drained(m)
        yield self._flushed(m)
        plane.close(m.fragment, m.old)

    def _restart(self, m: Moving) -> Process:
        """The source is dead."""
        version = self._plane.next_version()
        self._plane.open(m.fragment, m.new, m.target, since=version, emits=version, waiting=False)
        self._begin_anew(m)
        yield 0.0

    def _begin_anew(self, m: Moving) -> None:
        """The source's state died with it, so there is nothing to wait for."""
        new = self._plane.t.places[m.fragment, m.new]
        new.emits = min(int(new.emits), self._plane.next_version())
        self._plane.close(m.fragment, m.old)
        self._plane.resume(m.fragment, m.new)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _drained(self, m: Moving) -> Signal:
        """Whatever was sent to the old place has been processed."""
        return self._all(self._plane.follow(n, m.source) for n in dict.fromkeys([m.source, *self._senders(m)]))

    def _arrived(self, m: Moving) -> Signal:
        """Whatever was sent to the old place is in its node's queue."""
        return self._all(self._plane.flag(n, m.source) for n in dict.fromkeys(self._senders(m)) if n != m.source)

    def _senders(self, m: Moving) -> list[int]:
        senders = [n for f in self._upstream[m.fragment] for n in self._plane.nodes_of(f)]
        return senders + self._columns.stream_node[self._streams_of(m.fragment)].tolist()

    def _flushed(self, m: Moving) -> Signal:
        """Whatever the old place sent has arrived."""
        readers = dict.fromkeys(n for f in self._downstream[m.fragment] for n in self._plane.nodes_of(f))
        return self._all(self._plane.flag(m.source, n) for n in readers if n != m.source)

    def _worked(self, node: int, seconds: float) -> Signal:
        return self._all([self._plane.work(node, seconds)] if seconds > 0 else [])

    def _transfer(self, m: Moving, size: float) -> Process:
        arrives = self._kernel.now
        while m.state_bytes < size:
            if not self._plane.is_up(m.source, m.target):
                yield RETRY
                continue
            chunk = min(CHUNK, size - m.state_bytes)
            free, arrives = self._plane.cross(m.source, m.target, chunk)
            m.state_bytes += chunk
            yield free - self._kernel.now
        yield max(arrives - self._kernel.now, 0.0)

    def _window(self, fragment: int) -> float:
        """Seconds until the windows of a fragment are full, at the rates that its problem states."""
        operators = self._plane.operators_of(fragment)
        rate = bytes_in(self._columns)[operators]
        state = self._columns.state_bytes[operators]
        return float(np.divide(state, rate, out=np.zeros_like(state), where=rate > 0).max(initial=0.0))

    def _all(self, errands: Iterable[int]) -> Signal:
        numbers = list(errands)
        signal = Signal(len(numbers))
        for errand in numbers:
            self._signals[errand] = signal
        return signal

    def _streams_of(self, fragment: int) -> list[int]:
        operators = self._plane.operators_of(fragment)
        columns = self._columns
        inputs = columns.inputs[columns.first_input[operators.start] : columns.first_input[operators.stop]]
        return [int(n) for n in inputs if n < columns.streams]


def _neighbours(columns: Index) -> tuple[list[list[int]], list[list[int]]]:
    """The fragments that each fragment reads, and those that read it."""
    home = np.concatenate([np.full(columns.streams, NOBODY), columns.home])
    sources, readers = home[columns.inputs], columns.home[columns.readers]
    outside = (sources != NOBODY) & (sources != readers)
    upstream: list[list[int]] = [[] for _ in columns.problem.fragments]
    downstream: list[list[int]] = [[] for _ in columns.problem.fragments]
    pairs = np.unique(np.stack([sources[outside], readers[outside]]), axis=1)
    for source, reader in pairs.T.tolist():
        upstream[reader].append(source)
        downstream[source].append(reader)
    return upstream, downstream
