"""D-CAPE's test bed (section 4.3.1): sources, processors and a listener, each a machine of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from towpath import planners
from towpath.lab.sim import Profile, SimulationOutcome, simulate
from towpath.placement.flows import fragment_loads, operator_rates, results
from towpath.placement.problem import Problem
from towpath.problems.generate.dcape import PLANS, Dcape, dcape
from towpath.runtime.actors import Actors

RUN = 1800.0  # seconds: half an hour, as in the thesis
TRANSFER_COST = 100e-6
GAIN_OF_PLAN_2 = 1.25  # section 5.1.6: what several processors bring over one

ASSUMED = (
    "Streams come from machines that run no operators, results go to others, and tuples arrive as a Poisson process.",
    "Single-stream operators sit at the streams, below the joins: plans are optimised by rewriting (section 4.1).",
    f"A tuple that crosses the network costs the processor {TRANSFER_COST * 1e6:.0f} us of work at either end: the "
    "thesis measures that connections take CPU time (Figs. 4.5, 4.6) and gives no figure.",
    "Processors are as fast as makes plan 2 need 25% more than one of them has, the gain that section 5.1.6 reports "
    "for it; the proportions of the operators' costs are those of the workload generator.",
)


def plan(
    name: str, processors: int, transfer_cost: float = TRANSFER_COST, speed: float = 1.0, **changes: Any
) -> Problem:
    """A query plan of section 5.1.4 over so many processors, `speed` times as fast as assumed."""
    parameters = PLANS[name].model_copy(update={"processors": processors, "singles": "streams", **changes})
    return _with_processors(parameters, transfer_cost, speed * _cpu(transfer_cost, parameters.singles))


def _with_processors(parameters: Dcape, transfer_cost: float, cpu: float) -> Problem:
    problem = dcape(parameters)
    nodes = tuple(
        replace(node, cpu=cpu, transfer_cost=transfer_cost) if node.cpu > 0 else node for node in problem.cluster.nodes
    )
    return replace(problem, cluster=replace(problem.cluster, nodes=nodes))


@cache
def _cpu(transfer_cost: float, singles: str) -> float:
    """The speed at which one processor can do 1 / 1.25 of plan 2."""
    problem = _with_processors(PLANS["2"].model_copy(update={"processors": 1, "singles": singles}), transfer_cost, 1.0)
    rates = operator_rates(problem)
    out = sum(rates[root].rate_out for roots in results(problem).values() for root in roots)
    crossing = sum(stream.rate for stream in problem.streams) + out
    return (sum(fragment_loads(problem).values()) + crossing * transfer_cost) / GAIN_OF_PLAN_2


def run(problem: Problem, planner: str, seconds: float, seed: int, actors: Actors | None = None) -> SimulationOutcome:
    placement = planners.run(planner, problem)
    return simulate(
        problem,
        placement,
        seconds,
        seed=seed,
        profile=Profile("poisson"),
        actors=actors,
        record=min(60.0, seconds / 5),
    )


def tuples_out(outcome: SimulationOutcome) -> float:
    """The number of tuples put out over the run: the thesis' measure (section 5.1.6)."""
    return float(outcome.queries["results"].sum())
