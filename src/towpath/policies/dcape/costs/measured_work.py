"""Seconds of work per second, as measured: rate times cost of every operator."""

from __future__ import annotations

from towpath.policies.dcape.costs.operator_costs import table
from towpath.policies.dcape.known import Known

__all__ = ["amount", "table"]


def amount(known: Known, fragment: str) -> float:
    seen = known.descriptions
    names = [operator.name for operator in known.problem.fragment[fragment].operators]
    return sum(seen.operator(name, "rate") * seen.operator(name, "cost") for name in names)
