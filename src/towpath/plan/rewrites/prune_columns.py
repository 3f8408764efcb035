"""Notes at every scan which columns the query needs of its stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from towpath.plan.operators import (
    Filter,
    Operator,
    Project,
    Scan,
    Union,
    WindowAggregate,
    WindowJoin,
    children,
    with_children,
)
from towpath.schema import Catalog


def prune_columns(plan: Operator, catalog: Catalog) -> Operator:
    if isinstance(plan, Union):
        return Union(tuple(prune_columns(b, catalog) for b in plan.branches))
    return _prune(plan, frozenset(), catalog)


def _prune(op: Operator, needed: frozenset[tuple[str, str]], catalog: Catalog) -> Operator:
    if isinstance(op, Scan):
        stream = catalog[op.stream]
        wanted = {name for alias, name in needed if alias == op.alias} | {stream.time}
        return replace(op, columns=tuple(c.name for c in stream.columns if c.name in wanted))
    below = needed | _columns(_expressions(op))
    return with_children(op, tuple(_prune(c, below, catalog) for c in children(op)))


def _expressions(op: Operator) -> Iterable[exp.Expression]:
    match op:
        case Filter(_, conjuncts) | WindowJoin(_, _, conjuncts):
            return conjuncts
        case Project(_, items):
            return [i.expr for i in items]
        case WindowAggregate():
            return [*op.group_by, *op.having, *(i.expr for i in op.items)]
        case _:
            return ()


def _columns(expressions: Iterable[exp.Expression]) -> frozenset[tuple[str, str]]:
    return frozenset((c.table, c.name) for e in expressions for c in e.find_all(exp.Column))
