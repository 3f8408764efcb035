"""Tuples per second that a processor sends over the network; a processor that sends fewer than before is overloaded."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.placement.problem import Operator
from towpath.policies.dcape.known import CostTable, Known


def amount(known: Known, fragment: str) -> float:
    operators = known.problem.fragment[fragment].operators
    return sum(_rate(known, operator) for operator in operators if _leaves(known, operator, known.table[fragment]))


def table(known: Known, amounts: Mapping[str, float]) -> CostTable:
    # eq. 6.1: NetworkOutputRate_i = sum of OutputRate_j over the operators j of processor i that send over the network
    return CostTable(known.sums(amounts), amounts, worse="falling")


def shares(known: Known, costs: CostTable, processor: str) -> dict[str, float]:
    """The cost of each fragment relative to its processor's."""
    whole = costs.processors[processor]
    # eq. 6.2: OperatorCost_k = OutputRate_k / NetworkOutputRate_i
    return {k: costs.fragments[k] / whole if whole else 0.0 for k in known.on(processor)}


def _rate(known: Known, operator: Operator) -> float:
    seen = known.descriptions
    return seen.operator(operator.name, "rate") * seen.operator(operator.name, "selectivity")


def _leaves(known: Known, operator: Operator, processor: str) -> bool:
    """Whether its output goes over the network: to another processor, or to the user."""
    if operator.name in known.wiring.roots:
        return True
    return any(known.table.get(reader) != processor for reader in known.wiring.readers.get(operator.name, ()))
