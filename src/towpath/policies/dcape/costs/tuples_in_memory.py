"""The share of a processor's memory that tuples fill, in queues and in states (Figure 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from towpath.policies.dcape.known import CostTable, Known


def amount(known: Known, fragment: str) -> float:
    operators = known.problem.fragment[fragment].operators
    return sum(known.descriptions.operator(o.name, "state_tuples") for o in operators)


def table(known: Known, amounts: Mapping[str, float]) -> CostTable:
    held = {i: known.descriptions.processor(i, "queued") + kept for i, kept in known.sums(amounts).items()}
    room = _capacity(known) or sum(held.values()) or 1.0
    return CostTable({i: n / room for i, n in held.items()}, {k: n / room for k, n in amounts.items()})


def _capacity(known: Known) -> float:
    """Tuples that fit into the smallest memory; 0 if none has a limit: costs are then shares of all tuples."""
    bytes_ = min((known.descriptions.processor(i, "capacity") for i in known.alive), default=0.0)
    sizes = [o.tuple_bytes for k in known.table for o in known.problem.fragment[k].operators]
    return bytes_ * len(sizes) / sum(sizes) if isfinite(bytes_) and sizes else 0.0
