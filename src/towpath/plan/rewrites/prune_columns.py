"""Notes at every scan which columns the query needs of its stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from towpath.plan.operators import ColumnRef, Operator, Scan, Union, children, expressions, with_children
from towpath.schema import Catalog


def prune_columns(plan: Operator, catalog: Catalog) -> Operator:
    if isinstance(plan, Union):
        return Union(tuple(prune_columns(b, catalog) for b in plan.branches))
    return _prune(plan, frozenset(), catalog)


def _prune(op: Operator, needed: frozenset[ColumnRef], catalog: Catalog) -> Operator:
    if isinstance(op, Scan):
        stream = catalog[op.stream]
        wanted = {name for alias, name in needed if alias == op.alias} | {stream.time}
        return replace(op, columns=tuple(c.name for c in stream.columns if c.name in wanted))
    below = needed | _columns(expressions(op))
    return with_children(op, tuple(_prune(c, below, catalog) for c in children(op)))


def _columns(used: Iterable[exp.Expression]) -> frozenset[ColumnRef]:
    return frozenset((c.table, c.name) for e in used for c in e.find_all(exp.Column))
