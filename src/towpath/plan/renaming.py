"""The same plan under other aliases."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from towpath.lang.query import Item
from towpath.plan.expressions import canonical, distinct
from towpath.plan.operators import (
    Filter,
    LogicalOperator,
    Project,
    Scan,
    WindowAggregate,
    WindowJoin,
    children,
    with_children,
)

Names = dict[str, str]  # old alias -> new alias


def with_names(op: LogicalOperator, names: Names) -> LogicalOperator:
    """Every expression is in canonical form after it, since aliases count in its order."""
    op = with_children(op, tuple(with_names(c, names) for c in children(op)))
    match op:
        case Scan():
            return replace(op, alias=names[op.alias])
        case Filter() | WindowJoin():
            return replace(op, conjuncts=_conjunction(op.conjuncts, names))
        case Project():
            return replace(op, items=_items(op.items, names))
        case WindowAggregate():
            return replace(
                op,
                items=_items(op.items, names),
                group_by=_conjunction(op.group_by, names),
                having=_conjunction(op.having, names),
                top=op.top.mapped(lambda expr: canonical(expr, names)) if op.top else None,
            )
        case _:
            return op


def _conjunction(conjuncts: tuple[exp.Expression, ...], names: Names) -> tuple[exp.Expression, ...]:
    return tuple(distinct(canonical(c, names) for c in conjuncts))


def _items(items: tuple[Item, ...], names: Names) -> tuple[Item, ...]:
    return tuple(replace(i, expr=canonical(i.expr, names)) for i in items)
