"""Joins the inputs with the lowest estimated rate first, so that intermediate results stay small.

The tree stays left-deep, every step has an equality with what is already joined, and none that follows from others.
"""

from __future__ import annotations

from sqlglot import exp

from towpath.plan.equalities import Equalities, joined_columns, tie
from towpath.plan.estimate import rate
from towpath.plan.expressions import aliases_in
from towpath.plan.operators import (
    ColumnType,
    LogicalOperator,
    WindowJoin,
    aliases,
    children,
    column_types,
    with_children,
)
from towpath.schema import Catalog


def order_joins(plan: LogicalOperator, catalog: Catalog) -> LogicalOperator:
    if not isinstance(plan, WindowJoin):
        return with_children(plan, tuple(order_joins(c, catalog) for c in children(plan)))
    leaves, conjuncts = _flatten(plan)
    ordered = _ordered(leaves, conjuncts, catalog)
    needed = _needed(conjuncts, [min(aliases(leaf)) for leaf in ordered], column_types(plan, catalog))
    joined = ordered[0]
    for leaf in ordered[1:]:
        known = aliases(joined) | aliases(leaf)
        here = tuple(c for c in needed if aliases_in(c) <= known)
        needed = [c for c in needed if c not in here]
        joined = WindowJoin(joined, leaf, here)
    return joined


def _flatten(op: LogicalOperator) -> tuple[list[LogicalOperator], list[exp.Expression]]:
    if not isinstance(op, WindowJoin):
        return [op], []
    left, above_left = _flatten(op.left)
    right, above_right = _flatten(op.right)
    return left + right, [*above_left, *above_right, *op.conjuncts]


def _ordered(leaves: list[LogicalOperator], conjuncts: list[exp.Expression], catalog: Catalog) -> list[LogicalOperator]:
    # The alias breaks ties; canonicalise has made it independent of how the query was written.
    remaining = sorted(leaves, key=lambda leaf: (rate(leaf, catalog), min(aliases(leaf))))
    ordered = [remaining.pop(0)]
    links = [aliases_in(c) for c in conjuncts if joined_columns(c) is not None]
    known = set(aliases(ordered[0]))
    while remaining:
        following = next(leaf for leaf in remaining if any(k & known and k & aliases(leaf) for k in links))
        remaining.remove(following)
        ordered.append(following)
        known |= aliases(following)
    return ordered


def _needed(conjuncts: list[exp.Expression], order: list[str], types: ColumnType) -> list[exp.Expression]:
    """The conjuncts without the equalities that follow from those of earlier steps."""

    def step(conjunct: exp.Expression) -> list[int]:
        return sorted((order.index(alias) for alias in aliases_in(conjunct)), reverse=True)

    known = Equalities()
    needed = []
    for conjunct in sorted(conjuncts, key=step):
        columns = tie(conjunct, types)
        if columns is None or known.add(*columns):
            needed.append(conjunct)
    return needed
