"""D-CAPE's test bed (section 4.3.1): sources, processors and a listener, each a machine of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from towpath import planners
from towpath.lab.reproduce.dcape.plan2 import level_by_level, plan_2
from towpath.lab.sim import Profile, SimulationOutcome, StatefulJoin, simulate
from towpath.placement.flows import fragment_loads, operator_rates, results
from towpath.placement.problem import Problem
from towpath.problems.generate.dcape import PLANS, Dcape, dcape, drawn
from towpath.runtime.actors import Actors

RUN = 1800.0  # seconds: half an hour, as in the thesis
TRANSFER_COST = 100e-6
# What plan 2 asks for, in processors. Figure 5.7: several processors dealt round robin bring 25% over one. Figure 6.4:
# redistribution then brings 100% more. Both can only come about if there is work for 1.25 x 2 processors at least.
DEMAND_OF_PLAN_2 = 1.25 * 2

ASSUMED = (
    "Streams come from machines that run no operators, results go to others, and tuples arrive as a Poisson process.",
    "Single-stream operators sit at the streams, below the joins: plans are optimised by rewriting (section 4.1).",
    f"A tuple that crosses the network costs the processor {TRANSFER_COST * 1e6:.0f} us of work at either end: the "
    "thesis measures that connections take CPU time (Figs. 4.5, 4.6) and gives no figure.",
    f"Processors are as fast as makes plan 2 need {DEMAND_OF_PLAN_2:g} of them: the 25% of Fig. 5.7 and the 100% of "
    "Fig. 6.4, one after the other; the proportions of the operators' costs are those of the workload generator.",
    "Plan 2 is the first random plan that fits its description and the connections of Figs. 5.2 and 5.3.",
    "A join's work for a tuple follows from its state by eq. 3.3; what is too old for the other input is dropped when "
    "that comes forward in time, so the state grows while one input lags behind the other.",
    "A move waits until what is queued for the operator itself is processed, which is served next, not for all else "
    "that its processor has: operators have input queues of their own that have to dry up (sections 3.3, 6.3).",
)


def plan(
    name: str, processors: int, transfer_cost: float = TRANSFER_COST, speed: float = 1.0, **changes: Any
) -> Problem:
    """A query plan of section 5.1.4 over so many processors, `speed` times as fast as assumed."""
    parameters = PLANS[name].model_copy(update={"processors": processors, "singles": "streams", **changes})
    return _with_processors(name, parameters, transfer_cost, speed * _cpu(transfer_cost))


def _with_processors(name: str, parameters: Dcape, transfer_cost: float, cpu: float) -> Problem:
    problem = level_by_level(drawn(parameters, plan_2()[0])) if name == "2" else dcape(parameters)
    nodes = tuple(
        replace(node, cpu=cpu, transfer_cost=transfer_cost) if node.cpu > 0 else node for node in problem.cluster.nodes
    )
    return replace(problem, cluster=replace(problem.cluster, nodes=nodes))


@cache
def _cpu(transfer_cost: float) -> float:
    """The speed at which plan 2 on one processor, transfers included, asks for as many processors as it should."""
    problem = _with_processors("2", PLANS["2"].model_copy(update={"processors": 1}), transfer_cost, 1.0)
    rates = operator_rates(problem)
    out = sum(rates[root].rate_out for roots in results(problem).values() for root in roots)
    crossing = sum(stream.rate for stream in problem.streams) + out
    return (sum(fragment_loads(problem).values()) + crossing * transfer_cost) / DEMAND_OF_PLAN_2


def window_joins(problem: Problem, window: float) -> dict[str, StatefulJoin]:
    """Joins as eq. 3.3 has them: with their windows full their cost is what the problem states."""
    rates, p = operator_rates(problem), Dcape()
    return {
        o.name: StatefulJoin(
            window, p.queue_cost * (1 + o.selectivity), p.pair_cost, p.purge_cost / rates[o.name].rate_in
        )
        for o in problem.operators()
        if o.kind == "join" and window > 0
    }


def run(
    problem: Problem, planner: str, seconds: float, seed: int, window: float, actors: Actors | None = None
) -> SimulationOutcome:
    placement = planners.run(planner, problem)
    return simulate(
        problem,
        placement,
        seconds,
        seed=seed,
        profile=Profile("poisson"),
        actors=actors,
        record=min(60.0, seconds / 5),
        move="drain",
        joins=window_joins(problem, window),
    )


def tuples_out(outcome: SimulationOutcome) -> float:
    """The number of tuples put out over the run: the thesis' measure (section 5.1.6)."""
    return float(outcome.queries["results"].sum())
