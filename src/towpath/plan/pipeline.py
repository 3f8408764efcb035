"""The normal form of one SELECT: everything a carrier needs to run it, with the constants apart from the shape.

A pipeline is: sources -> shared window join -> match (boxes and residual conditions) -> optional window aggregate -> outputs.
Fragments of a query that sit on one node are fused into one pipeline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from towpath.lang import infer
from towpath.lang.query import WINDOW, Item, Window
from towpath.plan.boxes import Box, ColumnRef, ColumnType, boxes
from towpath.plan.constants import Value, constant
from towpath.plan.operators import (
    Filter,
    Operator,
    Project,
    Scan,
    Union,
    WindowAggregate,
    WindowJoin,
    children,
    scans,
    walk,
)
from towpath.plan.rewrites.canonicalise import normalise, rename
from towpath.schema import Catalog, Type

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.StddevSamp)


@dataclass(frozen=True)
class Slot:
    """An expression's shape: its constants are `@0`, `@1`, ... of the types in `params`."""

    expr: exp.Expression
    type: Type
    params: tuple[Type, ...] = ()
    copy: int = 1  # a shape that one pipeline uses twice has a second copy

    @property
    def columns(self) -> tuple[exp.Column, ...]:
        return tuple(c for c in self.expr.find_all(exp.Column) if c.table != WINDOW)

    @property
    def text(self) -> str:
        return f"{self.expr.sql()} {self.type.value} {[p.value for p in self.params]}"


@dataclass(frozen=True)
class Bound:
    """A slot with its constants."""

    slot: Slot
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Source:
    alias: str
    stream: str
    schema_class: tuple[tuple[str, str], ...]
    time: str
    range_us: int


@dataclass(frozen=True)
class Output:
    """Where an output column comes from: a column of a source, a computed slot, a group, an aggregate, or the window's bounds."""

    kind: str  # column | computed | group | aggregate | window_start | window_end
    column: ColumnRef | None = None
    slot: Slot | None = None
    bound: Bound | None = None


@dataclass(frozen=True)
class Pipeline:
    sources: tuple[Source, ...]
    keys: tuple[tuple[ColumnRef, ColumnRef], ...]
    boxes: tuple[Box, ...]
    residuals: tuple[Bound, ...]
    outputs: tuple[Output, ...]
    window: Window | None = None
    groups: tuple[Slot, ...] = ()
    aggregates: tuple[Slot, ...] = ()
    having: tuple[Bound, ...] = ()

    @property
    def computed(self) -> tuple[Bound, ...]:
        """The distinct computed outputs, in order."""
        return tuple(dict.fromkeys(o.bound for o in self.outputs if o.bound is not None))

    @property
    def signature(self) -> str:
        """Equal signatures produce equal streams. Plain output columns are left out: a reader picks them."""
        parts: list[object] = [
            [(s.alias, s.stream, s.range_us) for s in self.sources],
            sorted(self.keys),
            sorted(map(repr, self.boxes)),
            sorted(_text(b) for b in self.residuals),
            self.window,
            sorted(s.text for s in self.groups),
            sorted(s.text for s in self.aggregates),
            sorted(_text(b) for b in self.having),
            sorted(_text(b) for b in self.computed),
        ]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _text(bound: Bound) -> str:
    return f"{bound.slot.text} {bound.values!r}"


def pipelines(plan: Operator, catalog: Catalog) -> tuple[Pipeline, ...]:
    """One pipeline for every branch of an optimised plan."""
    branches = plan.branches if isinstance(plan, Union) else (plan,)
    return tuple(_pipeline(b, catalog) for b in branches)


def _pipeline(top: Operator, catalog: Catalog) -> Pipeline:
    assert isinstance(top, Project | WindowAggregate), "the top of a branch is a projection or an aggregate"
    chain = scans(top)
    names = {s.alias: f"i{n}" for n, s in enumerate(chain)} | {WINDOW: WINDOW}
    streams = {names[s.alias]: catalog[s.stream] for s in chain}

    def column_type(alias: str, name: str) -> Type:
        if alias == WINDOW:
            return Type.TIMESTAMP
        column = streams[alias].column(name)
        assert column is not None, f"{alias}.{name} was resolved by the checker"
        return column.type

    conjuncts = _conjuncts(top, names)
    keys = tuple(sorted(_key(c) for c in conjuncts if _is_key(c)))
    found, rest = boxes([c for c in conjuncts if not _is_key(c)], column_type)
    read = _Reader(column_type)
    shared = {
        "sources": tuple(_source(s, names[s.alias], catalog) for s in chain),
        "keys": keys,
        "boxes": found,
        "residuals": tuple(read.lift(c) for c in rest),
    }
    if isinstance(top, Project):
        return Pipeline(**shared, outputs=tuple(read.output(i, names) for i in top.items))  # type: ignore[arg-type]
    return _aggregate(top, names, read, shared)


def _aggregate(top: WindowAggregate, names: dict[str, str], read: _Reader, shared: dict[str, object]) -> Pipeline:
    groups = tuple(read.slot(normalise(rename(g, names))) for g in top.group_by)
    having = [normalise(rename(h, names)) for h in top.having]
    items = [normalise(rename(i.expr, names)) for i in top.items]
    calls = {c.sql(): c for e in [*items, *having] for c in e.find_all(*AGGREGATES)}
    aggregates = tuple(read.slot(calls[text]) for text in sorted(calls))
    kept = tuple(s.expr for s in (*groups, *aggregates))
    return Pipeline(
        **shared,  # type: ignore[arg-type]
        outputs=tuple(read.aggregate_output(e, groups, aggregates, kept) for e in items),
        window=top.window,
        groups=groups,
        aggregates=aggregates,
        having=tuple(read.lift(h, kept) for h in having),
    )


def _source(scan: Scan, alias: str, catalog: Catalog) -> Source:
    stream = catalog[scan.stream]
    return Source(alias, stream.name, stream.schema_class, stream.time, scan.range_us or 0)


def _conjuncts(top: Operator, names: dict[str, str]) -> list[exp.Expression]:
    below = [o for c in children(top) for o in walk(c)]
    found = [c for o in below if isinstance(o, Filter | WindowJoin) for c in o.conjuncts]
    renamed = {e.sql(): e for e in (normalise(rename(c, names)) for c in found)}
    return [renamed[text] for text in sorted(renamed)]


def _is_key(conjunct: exp.Expression) -> bool:
    left, right = conjunct.this, conjunct.args.get("expression")
    return (
        isinstance(conjunct, exp.EQ)
        and isinstance(left, exp.Column)
        and isinstance(right, exp.Column)
        and left.table != right.table
    )


def _key(conjunct: exp.Expression) -> tuple[ColumnRef, ColumnRef]:
    a, b = (conjunct.this.table, conjunct.this.name), (conjunct.expression.table, conjunct.expression.name)
    return (a, b) if a <= b else (b, a)


class _Reader:
    """Turns expressions into slots, outputs and constants, with the column types of one pipeline."""

    def __init__(self, column_type: ColumnType) -> None:
        self._column_type = column_type

    def slot(self, expr: exp.Expression) -> Slot:
        return Slot(expr, infer(expr, self._column_type))

    def lift(self, expr: exp.Expression, kept: Iterable[exp.Expression] = ()) -> Bound:
        """Takes the constants out of an expression, except inside `kept` subexpressions."""
        result_type = infer(expr, self._column_type)
        whole = frozenset(kept)
        values: list[Value] = []
        types: list[Type] = []

        def visit(node: exp.Expression) -> exp.Expression:
            if node in whole or isinstance(node, exp.DataType | exp.Boolean | exp.Null):
                return node
            found = constant(node)
            if found is not None:
                values.append(found[0])
                types.append(found[1])
                return exp.Parameter(this=exp.Literal.number(len(values) - 1))
            for key, child in list(node.args.items()):
                if isinstance(node, exp.Round) and key == "decimals":
                    continue  # Spark wants to know the number of digits when it plans
                if isinstance(child, exp.Expression):
                    node.set(key, visit(child))
                elif isinstance(child, list):
                    node.set(key, [visit(c) if isinstance(c, exp.Expression) else c for c in child])
            return node

        shape = visit(expr.copy())
        return Bound(Slot(shape, result_type, tuple(types)), tuple(values))

    def output(self, item: Item, names: dict[str, str]) -> Output:
        expr = normalise(rename(item.expr, names))
        if isinstance(expr, exp.Column):
            return Output("column", column=(expr.table, expr.name))
        return Output("computed", bound=self.lift(expr))

    def aggregate_output(
        self,
        expr: exp.Expression,
        groups: tuple[Slot, ...],
        aggregates: tuple[Slot, ...],
        kept: tuple[exp.Expression, ...],
    ) -> Output:
        if isinstance(expr, exp.Column) and expr.table == WINDOW:
            return Output(expr.name)
        for kind, slots in (("group", groups), ("aggregate", aggregates)):
            for slot in slots:
                if slot.expr == expr:
                    return Output(kind, slot=slot)
        return Output("computed", bound=self.lift(expr, kept))
