"""Checked query -> logical plan, and the plan after all rewrites."""

from __future__ import annotations

from sqlglot import exp

from towpath.lang.query import WINDOW, Query, Select
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
    groups = _columns(select) if select.top and select.top.of_tuples else select.group_by
    return WindowAggregate(plan, select.window, groups, select.having, select.items, select.top)


def _columns(select: Select) -> tuple[exp.Expression, ...]:
    """Tuples are ranked as groups of equal ones, each with the number of them."""
    found = (column for expr in select.above for column in expr.find_all(exp.Column) if column.table != WINDOW)
    return tuple(dict.fromkeys(found))
