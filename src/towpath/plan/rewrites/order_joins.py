"""Joins the inputs with the lowest estimated rate first, so that intermediate results stay small.

The tree stays left-deep and every step has an equality with what is already joined.
"""

from __future__ import annotations

from sqlglot import exp

from towpath.plan.estimate import rate
from towpath.plan.operators import Operator, WindowJoin, aliases, aliases_in, children, with_children
from towpath.schema import Catalog


def order_joins(plan: Operator, catalog: Catalog) -> Operator:
    if not isinstance(plan, WindowJoin):
        return with_children(plan, tuple(order_joins(c, catalog) for c in children(plan)))
    leaves, conjuncts = _flatten(plan)
    # The alias breaks ties; canonicalise has made it independent of how the query was written.
    remaining = sorted(leaves, key=lambda leaf: (rate(leaf, catalog), sorted(aliases(leaf))))
    joined = remaining.pop(0)
    while remaining:
        following = next(leaf for leaf in remaining if _linked(joined, leaf, conjuncts))
        remaining.remove(following)
        known = aliases(joined) | aliases(following)
        here = tuple(c for c in conjuncts if aliases_in(c) <= known)
        conjuncts = [c for c in conjuncts if c not in here]
        joined = WindowJoin(joined, following, here)
    return joined


def _flatten(op: Operator) -> tuple[list[Operator], list[exp.Expression]]:
    if not isinstance(op, WindowJoin):
        return [op], []
    left, above_left = _flatten(op.left)
    right, above_right = _flatten(op.right)
    return left + right, [*above_left, *above_right, *op.conjuncts]


def _linked(joined: Operator, leaf: Operator, conjuncts: list[exp.Expression]) -> bool:
    have, new = aliases(joined), aliases(leaf)
    return any(
        isinstance(c, exp.EQ)
        and isinstance(c.this, exp.Column)
        and isinstance(c.expression, exp.Column)
        and aliases_in(c) & have
        and aliases_in(c) & new
        for c in conjuncts
    )
