"""The logical plan: frozen operators. Placement is kept elsewhere.

Expressions are sqlglot trees as `lang.query` describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from towpath.lang.query import WINDOW, Item, Lookup, Top, Window, window_column_type, with_tables
from towpath.schema import Catalog, Stream, Type

ColumnRef = tuple[str, str]  # (alias, column)
ColumnType = Callable[[str, str], Type]


@dataclass(frozen=True)
class Scan:
    """Reads a stream under an alias."""

    alias: str
    stream: str
    range_us: int | None = None  # its window in a join
    lookups: tuple[Lookup, ...] = ()  # the reference tables that its tuples are joined with

    def read(self, catalog: Catalog) -> Stream:
        """The stream, with the columns that tables bring."""
        return with_tables(catalog[self.stream], self.lookups)


@dataclass(frozen=True)
class Filter:
    child: LogicalOperator
    conjuncts: tuple[exp.Expression, ...]


@dataclass(frozen=True)
class WindowJoin:
    """All combinations of left and right that satisfy the conjuncts and lie in each other's windows."""

    left: LogicalOperator
    right: LogicalOperator
    conjuncts: tuple[exp.Expression, ...]


@dataclass(frozen=True)
class Project:
    child: LogicalOperator
    items: tuple[Item, ...]


@dataclass(frozen=True)
class WindowAggregate:
    child: LogicalOperator
    window: Window
    group_by: tuple[exp.Expression, ...]
    having: tuple[exp.Expression, ...]
    items: tuple[Item, ...]
    top: Top | None = None


@dataclass(frozen=True)
class Union:
    branches: tuple[LogicalOperator, ...]


LogicalOperator = Scan | Filter | WindowJoin | Project | WindowAggregate | Union


def branches(plan: LogicalOperator) -> tuple[LogicalOperator, ...]:
    """One for each SELECT of a query."""
    return plan.branches if isinstance(plan, Union) else (plan,)


def children(op: LogicalOperator) -> tuple[LogicalOperator, ...]:
    match op:
        case Scan():
            return ()
        case WindowJoin(left, right):
            return (left, right)
        case Union(branches):
            return branches
        case _:
            return (op.child,)


def with_children(op: LogicalOperator, new: tuple[LogicalOperator, ...]) -> LogicalOperator:
    match op:
        case Scan():
            return op
        case WindowJoin():
            return replace(op, left=new[0], right=new[1])
        case Union():
            return Union(new)
        case _:
            return replace(op, child=new[0])


def walk(op: LogicalOperator) -> Iterator[LogicalOperator]:
    """The operator and everything below it, top down."""
    yield op
    for child in children(op):
        yield from walk(child)


def scans(op: LogicalOperator) -> tuple[Scan, ...]:
    return tuple(o for o in walk(op) if isinstance(o, Scan))


def aliases(op: LogicalOperator) -> frozenset[str]:
    return frozenset(s.alias for s in scans(op))


def expressions(op: LogicalOperator) -> tuple[exp.Expression, ...]:
    """The operator's own, without those below it."""
    match op:
        case Filter(_, conjuncts) | WindowJoin(_, _, conjuncts):
            return conjuncts
        case Project(_, items):
            return tuple(i.expr for i in items)
        case WindowAggregate():
            above = op.top.expressions if op.top else ()
            return (*op.group_by, *op.having, *(i.expr for i in op.items), *above)
        case _:
            return ()


def column_types(op: LogicalOperator, catalog: Catalog) -> ColumnType:
    """The types of the columns that expressions above `op` may use."""
    streams = {s.alias: s.read(catalog) for s in scans(op)}

    def column_type(alias: str, name: str) -> Type:
        if alias == WINDOW:
            return window_column_type(name)
        column = streams[alias].column(name)
        assert column is not None, f"{alias}.{name} was resolved by the checker"
        return column.type

    return column_type
