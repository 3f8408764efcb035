"""A simulator of fragments over many nodes: deterministic by seed, tuple by tuple. docs/design/simulator.md"""

from __future__ import annotations

from collections.abc import Iterable

from towpath.lab.sim.encode import NO_JOINS, Joins, Service, Services, StatefulJoin
from towpath.lab.sim.faults import Crash, Cut, Drift, Fault, drift, random_walk
from towpath.lab.sim.moves import Protocol
from towpath.lab.sim.outcome import SimulationOutcome
from towpath.lab.sim.runtime import Progress, Simulation
from towpath.lab.sim.sources import STEADY, Profile, Profiles, bursts
from towpath.placement.problem import Placement, Problem
from towpath.runtime.actors import Actors

__all__ = [
    "Crash",
    "Cut",
    "Drift",
    "Fault",
    "Profile",
    "Profiles",
    "Progress",
    "Protocol",
    "Service",
    "Services",
    "Simulation",
    "SimulationOutcome",
    "StatefulJoin",
    "bursts",
    "drift",
    "random_walk",
    "simulate",
]


def simulate(
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
    progress: Progress | None = None,
) -> SimulationOutcome:
    """Runs a placement for so many simulated seconds, while `actors` decide what moves.

    `profile` says how streams vary, `service` how the work of operators does, `joins` whose follows from their state;
    `record` is the length of the windows of
    the outcome's tables.
    """
    simulation = Simulation(
        problem,
        placement,
        seconds,
        actors=actors,
        seed=seed,
        profile=profile,
        service=service,
        faults=faults,
        move=move,
        joins=joins,
        record=record,
    )
    simulation.run(progress)
    return simulation.outcome()
