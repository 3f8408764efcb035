"""Adds the equalities that follow from others: a = b and b = c give a = c.

Joins may then be taken in any order, and it no longer matters which of the equalities a query spelled out.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from sqlglot import exp

from towpath.lang import column
from towpath.plan.equalities import Equalities, tie
from towpath.plan.operators import ColumnRef, Filter, LogicalOperator, children, column_types, with_children
from towpath.schema import Catalog

MOST_COLUMNS = 20  # that are all equal: there are half as many equalities as their square


def imply_equalities(plan: LogicalOperator, catalog: Catalog) -> LogicalOperator:
    if not isinstance(plan, Filter):
        return with_children(plan, tuple(imply_equalities(c, catalog) for c in children(plan)))
    types = column_types(plan, catalog)
    known = Equalities()
    ties = {t for c in plan.conjuncts if (t := tie(c, types)) is not None}
    for left, right in ties:
        known.add(left, right)
    implied = {
        (left, right)
        for group in known.groups
        for left, right in combinations(_members(group), 2)
        if left[0] != right[0]
    }
    added = tuple(exp.EQ(this=column(*a), expression=column(*b)) for a, b in sorted(implied - ties))
    return replace(plan, conjuncts=plan.conjuncts + added)


def _members(group: set[ColumnRef]) -> list[ColumnRef]:
    """The columns to be tied to each other; of too many the first of each input, which is enough for any order."""
    columns = sorted(group)
    if len(columns) <= MOST_COLUMNS:
        return columns
    return list({alias: (alias, name) for alias, name in reversed(columns)}.values())[::-1]
