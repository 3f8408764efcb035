"""Seconds of work per second, from D-CAPE's equations and the measured rates and states (section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.placement.costs.dcape import join_cost, stateless_cost
from towpath.placement.problem import Operator
from towpath.policies.dcape.known import CostTable, Known

# Seconds on a processor of cpu 1. The thesis names these and gives no values; only their proportions matter here.
OMEGA = 20e-6  # to read a tuple from a queue or to write it to one
RHO_SINGLE = 100e-6  # to test a tuple
RHO_PAIR = 0.1e-6  # to compare two
PSI = 0.01e-6  # to look at a tuple of the state


def amount(known: Known, fragment: str) -> float:
    return sum(_cost(known, operator) for operator in known.problem.fragment[fragment].operators)


def table(known: Known, amounts: Mapping[str, float]) -> CostTable:
    cpu = {i: known.descriptions.processor(i, "cpu") or 1.0 for i in (*known.alive, *known.table.values())}
    return CostTable(
        {i: work / cpu[i] for i, work in known.sums(amounts).items()},
        {k: work / cpu[known.table[k]] for k, work in amounts.items()},
    )


def _cost(known: Known, operator: Operator) -> float:
    seen = known.descriptions
    n, s = seen.operator(operator.name, "rate"), seen.operator(operator.name, "state_tuples")
    sigma = seen.operator(operator.name, "selectivity")
    if operator.kind != "join":
        return stateless_cost(n, OMEGA, RHO_SINGLE, sigma)  # eq. 3.2
    # Rates and states are measured over both inputs; each side has its share of what its producer sends.
    left = _share(known, operator)
    n1, s1 = n * left, s * left
    return join_cost((n1, n - n1), (s1, s - s1), OMEGA, PSI, RHO_PAIR, sigma)  # eq. 3.3


def _share(known: Known, join: Operator) -> float:
    """Of the left input in what a join reads."""
    rates = [_output_rate(known, name) for name in join.inputs]
    return rates[0] / sum(rates) if sum(rates) else 0.5


def _output_rate(known: Known, name: str) -> float:
    if name in known.problem.stream:
        return known.problem.stream[name].rate
    return known.descriptions.operator(name, "rate") * known.descriptions.operator(name, "selectivity")
