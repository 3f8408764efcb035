"""Checked query -> logical plan, and the plan after all rewrites."""

from __future__ import annotations

from towpath.lang.query import Query, Select
from towpath.plan.lookups import in_canonical_form
from towpath.plan.operators import Filter, LogicalOperator, Project, Scan, Union, WindowAggregate, WindowJoin
from towpath.plan.rewrites import REWRITES
from towpath.schema import Catalog


def build(query: Query) -> LogicalOperator:
    """The plan as written: joins in FROM's order, one filter above them."""
    branches = tuple(_select(s) for s in query.selects)
    return branches[0] if len(branches) == 1 else Union(branches)


def optimise(plan: LogicalOperator, catalog: Catalog) -> LogicalOperator:
    for rewrite in REWRITES:
        plan = rewrite(plan, catalog)
    return plan


def _select(select: Select) -> LogicalOperator:
    plan: LogicalOperator | None = None
    for i in select.inputs:
        scan = Scan(i.alias, i.stream, i.range_us, tuple(map(in_canonical_form, i.lookups)))
        plan = scan if plan is None else WindowJoin(plan, scan, ())
    assert plan is not None, "a checked query reads at least one stream"
    if select.where:
        plan = Filter(plan, select.where)
    if select.window is None:
        return Project(plan, select.items)
    return WindowAggregate(plan, select.window, select.group_by, select.having, select.items)
