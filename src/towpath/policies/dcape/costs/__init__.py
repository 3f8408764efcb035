"""Cost models: what load is. One file each.

`amount(known, fragment)` is what one fragment makes of it, `table(known, amounts)` puts the fragments' amounts together
into the costs of processors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from towpath.policies.dcape.known import CostTable, Known


class CostModel(Protocol):
    def amount(self, known: Known, fragment: str) -> float: ...

    def table(self, known: Known, amounts: Mapping[str, float]) -> CostTable: ...


def amounts(model: CostModel, known: Known) -> dict[str, float]:
    """Of what a manager below has, its word counts."""
    return {f: known.reported[f] if f in known.reported else model.amount(known, f) for f in known.table}


def cost(model: CostModel, known: Known) -> CostTable:
    return model.table(known, amounts(model, known))
