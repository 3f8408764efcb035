"""A run of the simulator: the data plane, with a clock, a network and moves for the actors of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf

import pandas as pd

from towpath.errors import UnknownNameError
from towpath.lab.sim.encode import NO_JOINS, Joins, Services
from towpath.lab.sim.faults import Crash, Cut, Drift, Fault
from towpath.lab.sim.kernel import FAULTS, WINDOWS, Kernel
from towpath.lab.sim.measure import Measurements
from towpath.lab.sim.moves import Moving, Protocol, SimulatedMoves
from towpath.lab.sim.outcome import SimulationOutcome
from towpath.lab.sim.plane import DataPlane
from towpath.lab.sim.record import Recorder
from towpath.lab.sim.sources import STEADY, Profiles, entering
from towpath.placement.problem import Placement, Problem
from towpath.runtime import actors as seam
from towpath.runtime.actors import Actors, Address
from towpath.runtime.driver import Action, Driver

Progress = Callable[[float], None]  # hears how many seconds are simulated


class Simulation:
    """A run that can be stopped before its end. All arguments are those of `simulate`."""

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        seconds: float,
        *,
        actors: Actors | None = None,
        seed: int = 0,
        profile: Profiles = STEADY,
        service: Services = "fixed",
        faults: Iterable[Fault] = (),
        move: Protocol = "pause",
        joins: Joins = NO_JOINS,
        record: float = 1.0,
    ) -> None:
        self._problem = problem = entering(problem)
        self._placement = placement
        self._seconds = seconds
        self._seed = seed
        self._actors = actors or Actors(())
        self._progress: Progress | None = None
        self._kernel = Kernel()
        self._plane = DataPlane(problem, placement, profile, service, seed, joins, seconds)
        self._moves = SimulatedMoves(problem, self._plane, self._kernel, move)
        self._measurements = Measurements(problem, self._plane)
        self._recorder = Recorder(problem, self._plane)
        self._move_rows: list[dict[str, object]] = []
        self._note_rows: list[dict[str, object]] = []
        self._unanswered = 0
        self._arrivals: dict[tuple[Address, Address], float] = {}  # of the last message from one to the other
        self._driver = Driver(self._actors, self._kernel, self, self._move, self._note)
        self._stopped = False
        for fault in _of_known_nodes(problem, faults):
            self._plan_fault(fault)
        self._every(record, self._record, WINDOWS)
        if self._actors.measures:
            self._every(self._actors.window, self._measure, WINDOWS)
        self._kernel.at(0.0, self._driver.start)

    # --- time --------------------------------------------------------------------------------------------------------

    def run(self, progress: Progress | None = None) -> None:
        self._progress = progress
        kernel, plane = self._kernel, self._plane
        while plane.now < self._seconds and not self._stopped:
            ended = plane.advance(min(kernel.next, self._seconds))
            if ended:
                kernel.now = plane.now
                self._moves.report(ended)
            elif kernel.next <= self._seconds:
                kernel.step()
        while kernel.next <= self._seconds and not self._stopped:  # windows that end with the run
            kernel.step()

    def stop(self) -> None:
        """Ends a run after what it is doing now; the outcome is that of the time until then."""
        self._stopped = True

    def _every(self, seconds: float, action: Callable[[], None], urgency: int) -> None:
        """Multiples of `seconds`, so that no rounding adds up."""

        def again(number: int) -> None:
            action()
            self._kernel.at((number + 1) * seconds, partial(again, number + 1), urgency)

        self._kernel.at(seconds, partial(again, 1), urgency)

    def _record(self) -> None:
        self._recorder.take()
        if self._progress is not None:
            self._progress(self._kernel.now)

    # --- actors ------------------------------------------------------------------------------------------------------

    def send(self, sender: Address, to: Address, size: int, arrive: Action) -> None:
        """Between nodes a message takes the link; a manager has no node and is as far away as the network's latency."""
        position, now = self._problem.cluster.position, self._kernel.now
        mail = self._recorder.mail(sender)
        mail.sent += 1
        mail.sent_bytes += size
        arrives = now + self._problem.cluster.network.latency
        if sender in position and to in position and sender != to:
            if not self._plane.is_up(position[sender], position[to]):
                self._unanswered += 1
                return
            _, arrives = self._plane.cross(position[sender], position[to], float(size))
        if arrives < inf:
            # None overtakes another, though latencies may fall while messages are on their way.
            arrives = self._arrivals[sender, to] = max(arrives, self._arrivals.get((sender, to), arrives))
            self._kernel.at(arrives, partial(self._arrive, to, size, arrive))

    def _arrive(self, to: Address, size: int, arrive: Action) -> None:
        if not self._driver.reaches(to):
            self._unanswered += 1
            return
        mail = self._recorder.mail(to)
        mail.received += 1
        mail.received_bytes += size
        arrive()

    def _note(self, address: Address, text: str) -> None:
        self._note_rows.append({"at": self._kernel.now, "actor": address, "text": text})

    def _measure(self) -> None:
        position = self._problem.cluster.position
        heard = {position[node]: address for node, address in self._actors.measures.items()}
        alive = [n for n in sorted(heard) if self._plane.is_alive(n)]
        taken = zip(alive, list(self._measurements.take(alive)), strict=True)
        self._driver.deliver_at_once([(heard[n], seam.Measured(self._kernel.now, seen)) for n, seen in taken])

    # --- moves -------------------------------------------------------------------------------------------------------

    def _move(self, address: str, move: seam.Move) -> None:
        asked = self._kernel.now
        row = {"asked": asked, "fragment": move.fragment, "source": move.source, "target": move.target}
        refusal = self._moves.refusal(move.fragment, move.source, move.target)
        if refusal is not None:
            self._end_move(address, move, {**row, "reason": move.reason}, 0.0, refusal)
            return

        def ended(moving: Moving, failure: str | None) -> None:
            self._recorder.state_bytes += moving.state_bytes
            self._end_move(address, move, {**row, "reason": move.reason}, moving.state_bytes, failure)

        self._moves.start(move.fragment, move.source, move.target, ended)

    def _end_move(
        self, address: str, move: seam.Move, row: dict[str, object], state_bytes: float, failure: str | None
    ) -> None:
        now = self._kernel.now
        asked = row["asked"]
        assert isinstance(asked, float)
        self._move_rows.append(
            {**row, "ended": now, "seconds": now - asked, "state_bytes": state_bytes, "failed": failure or ""}
        )
        where = (move.fragment, move.source, move.target)
        event = seam.MoveDone(now, *where, now - asked) if failure is None else seam.MoveFailed(now, *where, failure)
        self._kernel.at(now, partial(self._driver.deliver, address, event))

    # --- faults ------------------------------------------------------------------------------------------------------

    def _plan_fault(self, fault: Fault) -> None:
        position = self._problem.cluster.position
        match fault:
            case Crash(at, node, until):
                self._kernel.at(at, partial(self._crash, node), FAULTS)
                if until is not None:
                    self._kernel.at(until, partial(self._recover, node), FAULTS)
            case Cut(at, source, target, until):
                link = position[source], position[target]
                self._kernel.at(at, partial(self._plane.set_link, *link, False), FAULTS)
                if until is not None:
                    self._kernel.at(until, partial(self._plane.set_link, *link, True), FAULTS)
            case Drift(at, latencies):
                self._kernel.at(at, partial(self._plane.set_latencies, latencies), FAULTS)

    def _crash(self, node: str) -> None:
        n = self._problem.cluster.position[node]
        if not self._plane.is_alive(n):
            return
        ended = self._plane.crash(n)
        self._moves.lost(n)
        self._moves.report(ended)
        self._driver.lose(node)

    def _recover(self, node: str) -> None:
        n = self._problem.cluster.position[node]
        if not self._plane.is_alive(n):
            self._plane.recover(n)
            self._driver.join(self._problem.cluster.nodes[n])

    # --- the outcome -------------------------------------------------------------------------------------------------

    def outcome(self) -> SimulationOutcome:
        """What happened so far."""
        recorder = self._recorder
        recorder.take()
        return SimulationOutcome(
            seconds=self._plane.now,
            seed=self._seed,
            windows=pd.DataFrame(recorder.windows),
            nodes=recorder.nodes(),
            links=recorder.links(),
            queries=recorder.queries(),
            operators=recorder.operators(),
            actors=recorder.actors(),
            streams=recorder.streams(),
            paths=recorder.paths(),
            moves=pd.DataFrame(self._move_rows, columns=MOVE_COLUMNS),
            notes=pd.DataFrame(self._note_rows, columns=["at", "actor", "text"]),
            lost={
                **recorder.lost(),
                "to_sinks": int(self._plane.t.queries.undelivered.sum()),
                "to_actors": self._unanswered,
            },
            placement=recorder.placement(self._placement),
            executed=int(self._plane.t.clock[0].executed),
        )


def _of_known_nodes(problem: Problem, faults: Iterable[Fault]) -> list[Fault]:
    found = list(faults)
    named = [name for f in found for name in (getattr(f, part, None) for part in ("node", "source", "target"))]
    known = problem.cluster.position
    unknown = list(dict.fromkeys(name for name in named if name is not None and name not in known))
    if unknown:
        raise UnknownNameError(f"faults name nodes that the problem does not have: {', '.join(unknown)}")
    return found


MOVE_COLUMNS = ["asked", "ended", "fragment", "source", "target", "seconds", "state_bytes", "reason", "failed"]
