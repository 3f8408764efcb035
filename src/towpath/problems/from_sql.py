"""Fragments of a query that is given as SQL: parsed, planned and cut as for a run, its rates and costs estimated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from towpath.errors import Mistake, QueryError
from towpath.lang import WINDOW, parse
from towpath.placement.problem import Fragment, Operator, OperatorKind, PlacementStream
from towpath.plan import operators as plans
from towpath.plan.cut import fragmented
from towpath.plan.estimate import rate
from towpath.plan.operators import Filter, Project, Scan, Union, WindowAggregate, WindowJoin, children, scans, walk
from towpath.plan.renaming import with_names
from towpath.problems.entries import CostsEntry, StreamEntry
from towpath.schema import Catalog, column_of
from towpath.schema import Stream as SchemaStream

_KINDS: Mapping[type, OperatorKind] = {
    Filter: "filter",
    Project: "project",
    WindowJoin: "join",
    WindowAggregate: "aggregate",
}


def catalog(streams: Mapping[str, StreamEntry]) -> Catalog:
    """The streams that SQL can be written over: those with a schema."""
    return {
        name: SchemaStream(name, tuple(column_of(*c) for c in entry.columns.items()), entry.time, rate=entry.rate)
        for name, entry in streams.items()
        if entry.columns and entry.time
    }


def fragments(
    query: str, sql: str, fragmenter: str, known: Catalog, streams: Mapping[str, PlacementStream], costs: CostsEntry
) -> list[Fragment]:
    """Raises QueryError with everything wrong in the SQL."""
    checked = parse(sql, known, query)
    if checked.views:
        hint = "give each view a query of its own in the problem"
        raise QueryError(f"{query} has a problem", [Mistake("", "a problem's SQL cannot read views", hint)])
    plan, pieces = fragmented(checked, known, fragmenter)
    numbering = {id(op): n for n, op in enumerate(walk(plan))}
    writer = _Writer(query, numbering, known, streams, costs)
    made = []
    for fragment in pieces:
        operators = tuple(writer.operator(op) for op in fragment.operators if not isinstance(op, Scan))
        if operators:  # a stream that is only read has nothing to place
            made.append(Fragment(f"{query}.{fragment.number}", query, operators, fragment.stream))
    return made


class _Writer:
    """Turns operators of one plan into operators of a problem."""

    def __init__(
        self,
        query: str,
        numbering: Mapping[int, int],
        known: Catalog,
        streams: Mapping[str, PlacementStream],
        costs: CostsEntry,
    ) -> None:
        self._query = query
        self._numbering = numbering
        self._known = known
        self._streams = streams
        self._costs = costs

    def operator(self, op: plans.LogicalOperator) -> Operator:
        kind = _KINDS[type(op)]
        below = children(op)
        arriving = sum(rate(child, self._known) for child in below)
        return Operator(
            self._name(op),
            tuple(self._name(child) for child in below),
            kind,
            getattr(self._costs, kind),
            rate(op, self._known) / arriving if arriving else 0.0,
            self._state_bytes(op),
            self._tuple_bytes(op),
            _signature(op),
        )

    def _name(self, op: plans.LogicalOperator) -> str:
        return op.stream if isinstance(op, Scan) else f"{self._query}.{_KINDS[type(op)]}{self._numbering[id(op)]}"

    def _tuple_bytes(self, op: plans.LogicalOperator) -> float:
        match op:
            case Scan(stream=stream):
                return self._streams[stream].tuple_bytes
            case Project(_, items) | WindowAggregate(items=items):
                return float(sum(item.type.width for item in items))
            case _:
                return sum(self._tuple_bytes(child) for child in children(op))

    def _state_bytes(self, op: plans.LogicalOperator) -> float:
        match op:
            case WindowJoin(left, right):
                reach = max(s.range_us or 0 for s in scans(op)) / 1e6
                sides = (left, right)
                return sum(rate(side, self._known) * reach * self._tuple_bytes(side) for side in sides)
            case WindowAggregate(window=window):
                # A row for every group of every window that is still open.
                return rate(op, self._known) * window.range_us / 1e6 * self._tuple_bytes(op)
            case _:
                return 0.0


def _signature(op: plans.LogicalOperator) -> str:
    """Equal for what emits equal tuples, whatever is done with them above it."""
    names = {scan.alias: f"i{n}" for n, scan in enumerate(scans(op))}
    joins = any(isinstance(below, WindowJoin) for below in walk(op))
    text = repr(_bare(with_names(op, names | {WINDOW: WINDOW}), joins))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _bare(op: plans.LogicalOperator, joins: bool) -> plans.LogicalOperator:
    """Without windows that only a join above uses."""
    if isinstance(op, Scan):
        return replace(op, range_us=op.range_us if joins else None)
    assert not isinstance(op, Union), "a union is in no fragment"
    return plans.with_children(op, tuple(_bare(child, joins) for child in children(op)))
