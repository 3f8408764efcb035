"""Expressions in canonical form: equal meaning, as far as order goes, is equal trees and equal text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from towpath.lang.functions import combined
from towpath.plan.constants import constant

FLIPPED: dict[type[exp.Expr], type[exp.Expression]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.NullSafeEQ: exp.NullSafeEQ,
}


def form(expr: exp.Expr, *, shape: bool = False) -> str:
    """A text that only equal trees share, which SQL without parentheses is not. The `shape` has no constants in it."""
    if isinstance(expr, exp.Column):
        return f"{expr.text('table')}.{expr.name!r}"
    if shape and constant(expr) is not None:
        return "?"
    parts = [f"{key}={_form_of(value, shape)}" for key, value in expr.args.items() if value is not None]
    return f"{type(expr).__name__}({','.join(parts)})"


def _form_of(value: Any, shape: bool) -> str:
    if isinstance(value, exp.Expr):
        return form(value, shape=shape)
    if isinstance(value, list):
        return f"[{','.join(_form_of(v, shape) for v in value)}]"
    return repr(value)


def canonical(expr: exp.Expression, names: dict[str, str]) -> exp.Expression:
    """A copy under other aliases: comparisons have their constant on the right, commutative operands are in order."""
    copy = expr.copy()
    for column in copy.find_all(exp.Column):
        column.set("table", exp.to_identifier(names[column.table]))
    return _normal(copy)


def _normal(node: exp.Expression) -> exp.Expression:
    for key, child in list(node.args.items()):
        if isinstance(child, exp.Expression):
            node.set(key, _normal(child))
        elif isinstance(child, list):
            node.set(key, [_normal(c) if isinstance(c, exp.Expression) else c for c in child])
    match node:
        case exp.And() | exp.Or():
            return _chain(node)
        case exp.Add() | exp.Mul() if _precedes(node.expression, node.this):
            # Swapped but never regrouped: (a + b) + c and a + (b + c) round and overflow differently.
            return type(node)(this=node.expression, expression=node.this)
        case exp.In():
            members = distinct(node.expressions)
            if len(members) == 1:
                return exp.EQ(this=node.this, expression=members[0])
            node.set("expressions", members)
        case _ if type(node) in FLIPPED and _precedes(node.expression, node.this):
            return FLIPPED[type(node)](this=node.expression, expression=node.this)
    return node


def _order(expr: exp.Expression) -> tuple[bool, str, str]:
    """Shape before constants, so that queries that differ in constants alone keep one shape."""
    return constant(expr) is not None, form(expr, shape=True), form(expr)


def _precedes(one: exp.Expression, other: exp.Expression) -> bool:
    """Mostly one of them is a constant, and then nothing has to be written down."""
    of_one, of_other = constant(one) is not None, constant(other) is not None
    return of_other if of_one != of_other else _order(one) < _order(other)


def _chain(node: exp.And | exp.Or) -> exp.Expression:
    kind = type(node)
    return combined(kind, distinct(_operands(node, kind)))


def _operands(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if type(part) is kind:
            waiting += [part.args["expression"], part.this]
        else:
            found.append(part)
    return found


def distinct(expressions: Iterable[exp.Expression]) -> list[exp.Expression]:
    """Each once, in canonical order."""
    found = list({form(e): e for e in expressions}.values())
    return sorted(found, key=_order) if len(found) > 1 else found


def aliases_in(expr: exp.Expression) -> frozenset[str]:
    return frozenset(c.table for c in expr.find_all(exp.Column))
