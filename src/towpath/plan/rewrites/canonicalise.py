"""Gives equal queries equal plans: order of AND, OR, + and *, direction of comparisons, and aliases do not matter.

Aliases become i0, i1, ... in the order of what the inputs are (stream, window, own conditions), not of how they were written.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from towpath.lang.query import WINDOW, Item
from towpath.plan.operators import (
    Filter,
    Operator,
    Project,
    Scan,
    WindowAggregate,
    aliases_in,
    children,
    scans,
    walk,
    with_children,
)
from towpath.schema import Catalog

FLIPPED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
COMMUTATIVE = (exp.And, exp.Or, exp.Add, exp.Mul)


def canonicalise(plan: Operator, catalog: Catalog) -> Operator:
    if not isinstance(plan, Project | WindowAggregate):
        return with_children(plan, tuple(canonicalise(c, catalog) for c in children(plan)))
    names = _new_aliases(plan, catalog)
    return _apply(plan, names)


def normalise(expr: exp.Expression) -> exp.Expression:
    """Bottom up: comparisons get the column (or the textually smaller side) left, commutative chains are sorted."""
    return _normal_node(expr.copy())


def _normal_node(node: exp.Expression) -> exp.Expression:
    for child_key, child in list(node.args.items()):
        if isinstance(child, exp.Expression):
            node.set(child_key, _normal_node(child))
        elif isinstance(child, list):
            node.set(child_key, [_normal_node(c) if isinstance(c, exp.Expression) else c for c in child])
    if type(node) in FLIPPED and _side(node.expression) < _side(node.this):
        return FLIPPED[type(node)](this=node.expression, expression=node.this)
    if isinstance(node, COMMUTATIVE):
        return _sorted_chain(node)
    return node


def _side(expr: exp.Expression) -> tuple[int, str]:
    return (isinstance(expr, exp.Literal), expr.sql())


def _sorted_chain(node: exp.Expression) -> exp.Expression:
    kind = type(node)
    if kind in (exp.Add, exp.Mul) and any(n.is_string for n in node.find_all(exp.Literal)):
        return node
    operands = sorted(_operands(node, kind), key=lambda e: e.sql())
    chain = operands[0]
    for operand in operands[1:]:
        chain = kind(this=chain, expression=operand)
    return chain


def _operands(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    if type(node) is kind:
        return _operands(node.this, kind) + _operands(node.expression, kind)
    return [node]


def _new_aliases(plan: Operator, catalog: Catalog) -> dict[str, str]:
    conditions = [c for op in walk(plan) if isinstance(op, Filter) for c in op.conjuncts]

    def key(scan: Scan) -> tuple[object, ...]:
        own = sorted(_local(c, scan.alias) for c in conditions if aliases_in(c) == {scan.alias})
        links = sorted(_local(c, scan.alias) for c in conditions if scan.alias in aliases_in(c) and len(aliases_in(c)) > 1)
        return (str(catalog[scan.stream].schema_class), links, scan.stream, scan.range_us or 0, own)

    # Shape before names: the class and the join columns come first, so that queries of one shape get one template.
    ordered = sorted(scans(plan), key=key)
    return {scan.alias: f"i{n}" for n, scan in enumerate(ordered)} | {WINDOW: WINDOW}


def _local(expr: exp.Expression, alias: str) -> str:
    """The condition as seen from one input: its own alias is `own`, all others `other`."""
    renamed = rename(expr, {a: "own" if a == alias else "other" for a in aliases_in(expr)})
    return normalise(renamed).sql()


def rename(expr: exp.Expression, names: dict[str, str]) -> exp.Expression:
    copy = expr.copy()
    for column in copy.find_all(exp.Column):
        column.set("table", exp.to_identifier(names[column.table]))
    return copy


def _expression(expr: exp.Expression, names: dict[str, str]) -> exp.Expression:
    return normalise(rename(expr, names))


def _conjuncts(conjuncts: tuple[exp.Expression, ...], names: dict[str, str]) -> tuple[exp.Expression, ...]:
    unique = {e.sql(): e for e in (_expression(c, names) for c in conjuncts)}
    return tuple(unique[text] for text in sorted(unique))


def _items(items: tuple[Item, ...], names: dict[str, str]) -> tuple[Item, ...]:
    return tuple(replace(i, expr=_expression(i.expr, names)) for i in items)


def _apply(op: Operator, names: dict[str, str]) -> Operator:
    op = with_children(op, tuple(_apply(c, names) for c in children(op)))
    match op:
        case Scan():
            return replace(op, alias=names[op.alias])
        case Filter():
            return replace(op, conjuncts=_conjuncts(op.conjuncts, names))
        case Project():
            return replace(op, items=_items(op.items, names))
        case WindowAggregate():
            group_by = {e.sql(): e for e in (_expression(g, names) for g in op.group_by)}
            return replace(
                op,
                items=_items(op.items, names),
                group_by=tuple(group_by[text] for text in sorted(group_by)),
                having=_conjuncts(op.having, names),
            )
        case _:
            return op
