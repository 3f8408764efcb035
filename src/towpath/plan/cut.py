"""Cuts a query between its operators: the lower part becomes a stream of its own, which the upper part reads.

Such a *derived* stream is carried by a link, so the two parts may sit on different nodes and move by themselves. What a
query reads as a view is always one. An aggregate is cut off the join below it if that is asked for. Filters and
projections stay where they are: they cost nothing beside a hop.

The name of a derived stream says what it is, so queries that have a lower part in common share it. Those that are made
of derived streams themselves are a level higher, and streams of different levels are not of one class: a carrier that
reads a level and makes the next one would wait for itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from towpath.lang.query import WINDOW, Input, Item, Query, Select
from towpath.plan import WHOLE
from towpath.plan.build import build, optimise
from towpath.plan.estimate import rate
from towpath.plan.fragments import PlanFragment, fragments
from towpath.plan.operators import ColumnRef, LogicalOperator, branches
from towpath.plan.pipeline import Output, Pipeline, pipelines
from towpath.schema import LINK, Catalog, Column, Stream, Type, level, result_time

ALIAS = "derived"


@dataclass(frozen=True)
class Derived:
    """A stream made of others by the lower part of a query."""

    stream: Stream
    pipeline: Pipeline

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that the pipeline puts out; the time of the stream is the time of its results."""
        return tuple(column.name for column in self.stream.columns[:-1])


@dataclass(frozen=True)
class Plan:
    """How a query runs: what it is made of, lower parts first, and the pipelines that answer it."""

    tree: LogicalOperator  # the query in one piece
    fragments: tuple[PlanFragment, ...]  # of the tree
    pipelines: tuple[Pipeline, ...]
    derived: tuple[Derived, ...] = ()
    whole: tuple[Pipeline, ...] = ()  # of a query that is cut, its pipelines if it were not


def fragmented(query: Query, catalog: Catalog, fragmenter: str) -> tuple[LogicalOperator, tuple[PlanFragment, ...]]:
    """The optimised plan of a query, and how it is cut."""
    tree = optimise(build(query), catalog)
    return tree, fragments(tree, catalog, fragmenter)


def plan(query: Query, catalog: Catalog, fragmenter: str = WHOLE) -> Plan:
    """Of those ways to cut, a run has WHOLE and CUT."""
    found: dict[str, Derived] = {}
    if query.views:
        query, catalog = _over_views(query, catalog, found)
    tree, pieces = fragmented(query, catalog, fragmenter)
    whole = pipelines(tree, catalog)
    selects = []
    for select, branch in zip(query.selects, branches(tree), strict=True):
        if _is_cut(branch, pieces):
            derived, select = _cut(query, select, catalog)
            found[derived.stream.name] = derived
        selects.append(select)
    if tuple(selects) == query.selects:
        return Plan(tree, pieces, whole, tuple(found.values()))
    known = {**catalog, **{name: derived.stream for name, derived in found.items()}}
    top = optimise(build(replace(query, selects=tuple(selects))), known)
    return Plan(tree, pieces, pipelines(top, known), tuple(found.values()), () if query.views else whole)


def _over_views(query: Query, catalog: Catalog, found: dict[str, Derived]) -> tuple[Query, Catalog]:
    """The query over derived streams instead of its views, and all that it reads."""
    known = dict(catalog)
    names: dict[str, str] = {}
    for view in query.views:
        select = _reading(view.select, names)
        lower, pipeline = _planned(query, select, known)
        derived = _derived(select, view.stream.time, lower, pipeline, known)
        names[view.name] = derived.stream.name
        known[derived.stream.name] = derived.stream
        found[derived.stream.name] = derived
    return replace(query, selects=tuple(_reading(select, names) for select in query.selects)), known


def _reading(select: Select, names: Mapping[str, str]) -> Select:
    return replace(select, inputs=tuple(replace(i, stream=names.get(i.stream, i.stream)) for i in select.inputs))


def _derived(select: Select, time: str, tree: LogicalOperator, pipeline: Pipeline, catalog: Catalog) -> Derived:
    """The stream that a SELECT with the columns v0, v1, ... makes."""
    text = f"{pipeline.signature} {[o.column if o.kind == 'column' else _text(o) for o in pipeline.outputs]}"
    name = f"{LINK}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    columns = tuple(item.column for item in select.items)
    made = Stream(name, (*columns, Column(time, Type.TIMESTAMP)), time, rate=rate(tree, catalog), origin=LINK)
    return Derived(made, pipeline)


def _text(output: Output) -> str:
    bound = output.bound
    values = "" if bound is None else f"{bound.slot.text} {bound.values}"
    return f"{output.kind} {'' if output.slot is None else output.slot.text} {values}"


def _is_cut(branch: LogicalOperator, pieces: tuple[PlanFragment, ...]) -> bool:
    return any(piece.upstream for piece in pieces if piece.operators[-1] is branch)


def _cut(query: Query, select: Select, catalog: Catalog) -> tuple[Derived, Select]:
    needed = list(dict.fromkeys(c for e in select.above for c in _columns(e))) or [_some_column(select, catalog)]
    lower = replace(select, items=_items(needed, select, catalog), window=None, group_by=(), having=(), top=None)
    plan, pipeline = _planned(query, lower, catalog)
    # In an order that does not depend on how the query was written.
    order = sorted(range(len(needed)), key=lambda n: pipeline.outputs[n].column or ("", ""))
    lower = replace(lower, items=_items([needed[n] for n in order], select, catalog))
    plan, pipeline = _planned(query, lower, catalog)
    time = result_time(1 + max(level(catalog[i.stream]) for i in lower.inputs))
    derived = _derived(lower, time, plan, pipeline, catalog)
    renamed = {needed[n]: item.name for n, item in zip(order, lower.items, strict=True)}
    return derived, _upper(select, derived.stream, renamed)


def _planned(query: Query, select: Select, catalog: Catalog) -> tuple[LogicalOperator, Pipeline]:
    plan = optimise(build(replace(query, selects=(select,))), catalog)
    return plan, pipelines(plan, catalog)[0]


def _items(columns: list[ColumnRef], select: Select, catalog: Catalog) -> tuple[Item, ...]:
    streams = {i.alias: i.read(catalog) for i in select.inputs}
    items = []
    for n, (alias, name) in enumerate(columns):
        column = streams[alias].column(name)
        assert column is not None, f"{alias}.{name} was resolved by the checker"
        items.append(Item(f"v{n}", exp.column(name, table=alias), column.type))
    return tuple(items)


def _some_column(select: Select, catalog: Catalog) -> ColumnRef:
    """Of a query that counts rows and looks at none of their values."""
    first = select.inputs[0]
    return first.alias, catalog[first.stream].time


def _columns(expr: exp.Expression) -> list[ColumnRef]:
    return [(c.table, c.name) for c in expr.find_all(exp.Column) if c.table != WINDOW]


def _upper(select: Select, stream: Stream, names: Mapping[ColumnRef, str]) -> Select:
    def rename(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and node.table != WINDOW:
            return exp.column(names[node.table, node.name], table=ALIAS)
        return node

    upper = replace(select, inputs=(Input(ALIAS, stream.name),), where=())
    return upper.mapped(lambda expr: expr.transform(rename))
