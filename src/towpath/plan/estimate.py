"""Estimated rates (tuples per second) of operators, before anything was measured."""

from __future__ import annotations

from math import prod

from sqlglot import exp

from towpath.plan.equalities import joined_columns
from towpath.plan.operators import Filter, LogicalOperator, Project, Scan, Union, WindowAggregate, WindowJoin, scans
from towpath.schema import Catalog

# Textbook selectivities, as in System R: an equality keeps a tenth, a comparison a third, anything else a half.
EQUALITY, COMPARISON, OTHER = 0.1, 1 / 3, 0.5
# Share of the pairs inside a window that agree on a key.
JOIN_MATCH = 0.001


def selectivity(conjunct: exp.Expression) -> float:
    if isinstance(conjunct, exp.EQ):
        return EQUALITY
    if isinstance(conjunct, exp.In):
        return min(1.0, EQUALITY * len(conjunct.expressions))
    if isinstance(conjunct, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return COMPARISON
    return OTHER


def rate(op: LogicalOperator, catalog: Catalog) -> float:
    match op:
        case Scan(stream=stream):
            return catalog[stream].rate
        case Filter(child, conjuncts):
            return rate(child, catalog) * prod(selectivity(c) for c in conjuncts)
        case WindowJoin(left, right):
            # Every arrival on one side meets the other side's window.
            reach = max(s.range_us or 0 for s in scans(op)) / 1e6
            pairs = 2 * rate(left, catalog) * rate(right, catalog) * reach * JOIN_MATCH
            return pairs * prod(selectivity(c) for c in op.conjuncts if joined_columns(c) is None)
        case Project(child):
            return rate(child, catalog)
        case WindowAggregate(child, window):
            groups = 10.0 if op.group_by else 1.0
            if op.top is not None:
                groups = float(op.top.most) if op.top.of_tuples else min(groups, op.top.most)
            every_us = window.slide_us or window.range_us
            return min(groups / (every_us / 1e6), rate(child, catalog) * window.range_us / every_us)
        case Union(branches):
            return sum(rate(b, catalog) for b in branches)
