"""Moves every condition down to the lowest operator that has all its columns."""

from __future__ import annotations

from sqlglot import exp

from towpath.plan.expressions import aliases_in
from towpath.plan.operators import Filter, LogicalOperator, WindowJoin, aliases, children, with_children
from towpath.schema import Catalog


def push_filters(plan: LogicalOperator, catalog: Catalog) -> LogicalOperator:
    if isinstance(plan, Filter):
        return _push(push_filters(plan.child, catalog), plan.conjuncts)
    return with_children(plan, tuple(push_filters(c, catalog) for c in children(plan)))


def _push(op: LogicalOperator, conjuncts: tuple[exp.Expression, ...]) -> LogicalOperator:
    if not conjuncts:
        return op
    if isinstance(op, Filter):
        return _push(op.child, op.conjuncts + conjuncts)
    if not isinstance(op, WindowJoin):
        return Filter(op, conjuncts)
    left, right = aliases(op.left), aliases(op.right)
    below_left = tuple(c for c in conjuncts if aliases_in(c) <= left)
    below_right = tuple(c for c in conjuncts if aliases_in(c) <= right and c not in below_left)
    here = tuple(c for c in conjuncts if c not in below_left and c not in below_right)
    return WindowJoin(_push(op.left, below_left), _push(op.right, below_right), op.conjuncts + here)
