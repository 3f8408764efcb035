"""Names the inputs of every branch i0, i1, ... in the order of its joins: input n is source n of the carrier."""

from __future__ import annotations

from towpath.lang.query import WINDOW
from towpath.plan.operators import LogicalOperator, Union, scans
from towpath.plan.renaming import with_names
from towpath.schema import Catalog


def number_inputs(plan: LogicalOperator, catalog: Catalog) -> LogicalOperator:
    if isinstance(plan, Union):
        return Union(tuple(number_inputs(b, catalog) for b in plan.branches))
    names = {scan.alias: f"i{n}" for n, scan in enumerate(scans(plan))}
    in_order = all(old == new for old, new in names.items())
    return plan if in_order else with_names(plan, names | {WINDOW: WINDOW})
