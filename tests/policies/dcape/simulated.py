"""Four groups of four nodes on the simulator, all load in the first of them."""

from __future__ import annotations

from collections.abc import Sequence

from lab.sim.cases import digest
from towpath.lab.sim import Fault, Profile, SimulationOutcome, simulate
from towpath.placement.problem import Placement, Problem
from towpath.policies import dcape
from towpath.policies.dcape.manager import Manager
from towpath.problems.generate.dcape import Dcape
from towpath.problems.generate.dcape import dcape as generated
from towpath.runtime.actors import Actors

SECONDS, ENDS = 61.0, 55.0  # streams end before the run does, so that nothing is on its way in the end
OPTIONS = dcape.Options(
    cost="operator_costs",
    redistribution="balance",
    percent_difference=0.25,
    every=10.0,
    window=2.0,
    at_once=8,
    fan_out=4,
)


def problem() -> Problem:
    return generated(Dcape(processors=16, operators=4, streams=2, depth=3, queries=12, window=2.0, latency=0.001))


def in_one_group(of: Problem) -> Placement:
    return Placement.single({f.name: f"n{1 + n % 4}" for n, f in enumerate(of.fragments)})


def group(node: str) -> int:
    return (int(node.removeprefix("n")) - 1) // 4


def managers(actors: Actors) -> list[Manager]:
    return [actor for actor in actors.actors if isinstance(actor, Manager)]


def run(actors: Actors | None, faults: Sequence[Fault] = ()) -> SimulationOutcome:
    made = problem()
    profile = Profile("poisson", ((ENDS, 0.0),))
    return simulate(
        made, in_one_group(made), SECONDS, actors=actors, seed=3, profile=profile, faults=faults, record=5.0
    )


def tiered() -> Actors:
    made = problem()
    return dcape.actors(made, in_one_group(made), OPTIONS)


if __name__ == "__main__":
    print(digest(run(tiered())))
