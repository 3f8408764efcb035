"""The normal form of one SELECT: everything a carrier needs to run it, with the constants apart from the shape.

A pipeline is: sources -> shared window join -> match (boxes and residual conditions) -> window aggregate, if any ->
outputs. Fragments of a query that sit on one node are fused into one pipeline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from sqlglot import exp

from towpath.lang import infer
from towpath.lang.functions import AGGREGATE_NODES, combined
from towpath.lang.json_paths import JsonValue
from towpath.lang.query import WINDOW, Item, RankFunction, Top, Window
from towpath.lang.show import is_rank
from towpath.lang.texts import SplitIndex
from towpath.plan.boxes import Box, boxes
from towpath.plan.constants import Value, constant, node_of
from towpath.plan.equalities import joined_columns
from towpath.plan.expressions import distinct, form
from towpath.plan.lookups import joined_class
from towpath.plan.operators import (
    ColumnRef,
    ColumnType,
    Filter,
    LogicalOperator,
    Project,
    Scan,
    WindowAggregate,
    WindowJoin,
    branches,
    children,
    column_types,
    scans,
    walk,
)
from towpath.plan.trees import Grouped
from towpath.schema import Catalog, Type, tables_of

# More conditions than this cost less as one: each has its own switch in every carrier that holds it.
MOST_CONDITIONS = 16
# More constants than this are left in the shape: each would be a column of the table, for all queries of the carrier.
MOST_CONSTANTS = 64
# Of the type of their operands, so it matters which type a constant among those has.
OF_OPERANDS_TYPE = (exp.If, exp.Case, exp.Coalesce, exp.Least, exp.Greatest, exp.Nullif, exp.Abs, exp.Round, exp.Sign)

# Spark or Polars wants to know these when it plans.
IN_SHAPE = {
    (exp.Round, "decimals"),
    *((exp.Pad, key) for key in ("expression", "fill_pattern")),
    *((kind, key) for kind in (exp.SplitPart, SplitIndex) for key in ("delimiter", "part_index")),
    (exp.Repeat, "times"),
    (exp.TimeToStr, "format"),
    (JsonValue, "path"),
    (exp.RegexpLike, "expression"),
    *((exp.RegexpExtract, key) for key in ("expression", "group")),
    *((exp.RegexpReplace, key) for key in ("expression", "replacement")),
    *((exp.Replace, key) for key in ("expression", "replacement")),
}


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
    def plain(self) -> exp.Expression:
        """The expression as it was written, apart from its constants."""
        return self.expr.transform(lambda node: node.this if isinstance(node, Grouped) else node)

    @cached_property
    def matches_patterns(self) -> bool:
        return self.expr.find(exp.Like) is not None

    @cached_property
    def text(self) -> str:
        """Equal for equal slots only."""
        return f"{form(self.expr)} {self.type.value} {[p.value for p in self.params]}"


@dataclass(frozen=True)
class Bound:
    """A slot with its constants."""

    slot: Slot
    values: tuple[Value, ...] = ()

    @property
    def expr(self) -> exp.Expression:
        """With the constants in their places."""
        return self.slot.expr.transform(
            lambda node: node_of(self.values[int(node.name)]) if isinstance(node, exp.Parameter) else node
        )


@dataclass(frozen=True)
class PipelineSource:
    alias: str
    stream: str
    schema_class: tuple[tuple[str, str], ...]
    time: str
    range_us: int


OutputKind = Literal["column", "computed", "group", "aggregate", "window_start", "window_end", "rank"]


@dataclass(frozen=True)
class Output:
    """Where an output column comes from."""

    kind: OutputKind
    column: ColumnRef | None = None
    slot: Slot | None = None
    bound: Bound | None = None


@dataclass(frozen=True)
class RankKey:
    value: Output
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Ranking:
    """Which results of a window are put out: the first ones, of each partition by itself."""

    most: int
    function: RankFunction
    partition: tuple[Output, ...]
    order: tuple[RankKey, ...]
    ties: tuple[Output, ...] = ()  # what decides where the order does not
    counted: Slot | None = None  # how many equal tuples a result stands for, if tuples are ranked

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (*self.partition, *(key.value for key in self.order), *self.ties)

    @property
    def text(self) -> str:
        """Equal for equal rankings only."""
        keys = [(_name(key.value), key.descending, key.nulls_first) for key in self.order]
        partition = sorted(map(_name, self.partition))
        return repr((self.most, self.function, partition, keys, list(map(_name, self.ties)), self.counted is None))


def _name(output: Output) -> str:
    text = _text(output.bound) if output.bound is not None else output.slot.text if output.slot is not None else ""
    return f"{output.kind} {text}"


@dataclass(frozen=True)
class Pipeline:
    sources: tuple[PipelineSource, ...]
    keys: tuple[tuple[ColumnRef, ColumnRef], ...]
    boxes: tuple[Box, ...]
    residuals: tuple[Bound, ...]
    outputs: tuple[Output, ...]
    window: Window | None = None
    groups: tuple[Slot, ...] = ()
    aggregates: tuple[Slot, ...] = ()
    having: tuple[Bound, ...] = ()
    ranking: Ranking | None = None

    @cached_property
    def computed(self) -> tuple[Bound, ...]:
        """The distinct computed outputs, in an order that does not depend on that of the outputs.

        Pipelines of equal signatures share a fragment, so the places of their constants must be the same.
        """
        outputs = (*self.outputs, *(self.ranking.outputs if self.ranking else ()))
        return tuple(sorted({o.bound for o in outputs if o.bound is not None}, key=_text))

    @cached_property
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
            *((s.alias, s.schema_class[-1]) for s in self.sources if tables_of(s.schema_class)),
            *([self.ranking.text] if self.ranking else []),
        ]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _text(bound: Bound) -> str:
    return f"{bound.slot.text} {bound.values!r}"


def pipelines(plan: LogicalOperator, catalog: Catalog) -> tuple[Pipeline, ...]:
    """One pipeline for every branch of an optimised plan."""
    return tuple(_pipeline(branch, catalog) for branch in branches(plan))


def _pipeline(top: LogicalOperator, catalog: Catalog) -> Pipeline:
    assert isinstance(top, Project | WindowAggregate), "the top of a branch is a projection or an aggregate"
    read = _Reader(column_types(top, catalog))
    conjuncts = distinct(c for o in _below(top) if isinstance(o, Filter | WindowJoin) for c in o.conjuncts)
    keys = [k for c in conjuncts if (k := joined_columns(c)) is not None]
    found, rest = boxes([c for c in conjuncts if joined_columns(c) is None], read.column_type)
    shared = Pipeline(
        sources=tuple(_source(s, catalog) for s in scans(top)),
        keys=tuple(sorted(keys)),
        boxes=found,
        residuals=read.conditions(rest),
        outputs=(),
    )
    return _projected(top, read, shared) if isinstance(top, Project) else _aggregated(top, read, shared)


def _below(top: LogicalOperator) -> Iterable[LogicalOperator]:
    return (o for c in children(top) for o in walk(c))


def _source(scan: Scan, catalog: Catalog) -> PipelineSource:
    stream = catalog[scan.stream]
    schema_class = joined_class(stream, scan.lookups)
    return PipelineSource(scan.alias, stream.name, schema_class, stream.time, scan.range_us or 0)


def _projected(top: Project, read: _Reader, shared: Pipeline) -> Pipeline:
    return replace(shared, outputs=tuple(read.output(i) for i in top.items))


def _aggregated(top: WindowAggregate, read: _Reader, shared: Pipeline) -> Pipeline:
    groups = tuple(read.slot(g) for g in top.group_by)
    items = [i.expr for i in top.items]
    ranked = top.top.expressions if top.top else ()
    found = (c for e in [*items, *top.having, *ranked] for c in e.find_all(*AGGREGATE_NODES))
    calls = {form(c): c for c in found if isinstance(c, exp.Expression)}
    counted = read.slot(exp.Count(this=exp.Star())) if top.top and top.top.of_tuples else None
    if counted is not None:
        calls[form(counted.expr)] = counted.expr
    aggregates = tuple(read.slot(calls[text]) for text in sorted(calls))
    outputs = tuple(read.aggregate_outputs(items, groups, aggregates))
    ranking = None if top.top is None else read.ranking(top.top, outputs, groups, aggregates, counted)
    return replace(
        shared,
        outputs=outputs,
        window=top.window,
        groups=groups,
        aggregates=aggregates,
        having=read.conditions(top.having, groups),
        ranking=ranking,
    )


class _Reader:
    """Turns expressions of the plan into slots, outputs and constants of one pipeline."""

    def __init__(self, column_type: ColumnType) -> None:
        self.column_type = column_type

    def slot(self, expr: exp.Expression) -> Slot:
        return Slot(expr, infer(expr, self.column_type))

    def conditions(self, conjuncts: tuple[exp.Expression, ...], groups: tuple[Slot, ...] = ()) -> tuple[Bound, ...]:
        if len(conjuncts) > MOST_CONDITIONS:
            conjuncts = (combined(exp.And, [c.copy() for c in conjuncts]),)
        return tuple(self.lift(c, groups) for c in conjuncts)

    def lift(self, expr: exp.Expression, groups: tuple[Slot, ...] = ()) -> Bound:
        """Takes the constants out of an expression, except inside of groups and aggregates."""
        grouped = frozenset(g.expr for g in groups)
        lifter = _Lifter(grouped)
        shape = lifter.visit(expr.copy())
        if len(lifter.values) > MOST_CONSTANTS:
            lifter = _Lifter(grouped, lifts=False)
            shape = lifter.visit(expr.copy())
        return Bound(Slot(shape, infer(expr, self.column_type), tuple(lifter.types)), tuple(lifter.values))

    def output(self, item: Item) -> Output:
        expr = item.expr
        if isinstance(expr, exp.Column):
            return Output("column", column=(expr.table, expr.name))
        return Output("computed", bound=self.lift(expr))

    def aggregate_outputs(
        self, exprs: Iterable[exp.Expression], groups: tuple[Slot, ...], aggregates: tuple[Slot, ...]
    ) -> Iterator[Output]:
        grouped, aggregated = ({slot.expr: slot for slot in slots} for slots in (groups, aggregates))
        for expr in exprs:
            if is_rank(expr):
                yield Output("rank")
            elif isinstance(expr, exp.Column) and expr.table == WINDOW:
                yield Output("window_start" if expr.name == "window_start" else "window_end")
            elif expr in grouped:
                yield Output("group", slot=grouped[expr])
            elif expr in aggregated:
                yield Output("aggregate", slot=aggregated[expr])
            else:
                yield Output("computed", bound=self.lift(expr, groups))

    def ranking(
        self,
        top: Top,
        outputs: tuple[Output, ...],
        groups: tuple[Slot, ...],
        aggregates: tuple[Slot, ...],
        counted: Slot | None,
    ) -> Ranking:
        partition = dict.fromkeys(self.aggregate_outputs(top.partition_by, groups, aggregates))
        values = self.aggregate_outputs((key.expr for key in top.order_by), groups, aggregates)
        order: dict[Output, RankKey] = {}
        for value, key in zip(values, top.order_by, strict=True):
            order.setdefault(value, RankKey(value, key.descending, key.nulls_first))
        # Rows of one rank stay or go together; else what is put out decides, so that a replay gives the same.
        shown = (o for o in outputs if o.bound is not None or o.slot is not None)
        ties = () if top.function != "row_number" else tuple(o for o in dict.fromkeys(shown) if o not in order)
        return Ranking(top.most, top.function, tuple(partition), tuple(order.values()), ties, counted)


class _Lifter:
    """Replaces the constants of an expression by parameters and keeps them, and marks what is grouped."""

    def __init__(self, groups: frozenset[exp.Expression], *, lifts: bool = True) -> None:
        self._groups = groups
        self._lifts = lifts
        self.values: list[Value] = []
        self.types: list[Type] = []

    def visit(self, node: exp.Expression) -> exp.Expression:
        if node in self._groups:
            return Grouped(this=node)
        if isinstance(node, (exp.DataType, exp.Boolean, exp.Null, *AGGREGATE_NODES)):
            return node
        found = constant(node)
        if found is not None and not self._lifts:
            return node
        if found is not None:
            self.values.append(found[0])
            self.types.append(found[1])
            return self._parameter(node)
        for key, child in list(node.args.items()):
            if (type(node), key) in IN_SHAPE:
                continue
            if isinstance(child, exp.Expression):
                node.set(key, self.visit(child))
            elif isinstance(child, list):
                node.set(key, [self.visit(c) if isinstance(c, exp.Expression) else c for c in child])
        return node

    def _parameter(self, node: exp.Expression) -> exp.Expression:
        """Integers are lifted as BIGINT, so that 5 and 5,000,000,000 make one shape, unless their type matters."""
        made = exp.Parameter(this=exp.Literal.number(len(self.values) - 1))
        parent = node.parent
        while isinstance(parent, exp.Paren):
            parent = parent.parent
        matters = isinstance(parent, OF_OPERANDS_TYPE) and self.types[-1] is Type.BIGINT
        return exp.cast(made, "INT") if matters and infer(node, _no_column) is Type.INT else made


def _no_column(alias: str, column: str) -> Type:
    raise AssertionError(f"{alias}.{column} is no constant")
