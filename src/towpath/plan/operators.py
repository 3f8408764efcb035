"""The logical plan: frozen operators. Placement is kept elsewhere; expressions are sqlglot trees as `lang.query` describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from towpath.lang.query import Item, Window


@dataclass(frozen=True)
class Scan:
    """Reads a stream under an alias; `range_us` is its window in a join, `columns` what is needed of it (None: not pruned yet)."""

    alias: str
    stream: str
    range_us: int | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Filter:
    child: Operator
    conjuncts: tuple[exp.Expression, ...]


@dataclass(frozen=True)
class WindowJoin:
    """All combinations of left and right that satisfy the conjuncts and lie in each other's windows."""

    left: Operator
    right: Operator
    conjuncts: tuple[exp.Expression, ...]


@dataclass(frozen=True)
class Project:
    child: Operator
    items: tuple[Item, ...]


@dataclass(frozen=True)
class WindowAggregate:
    child: Operator
    window: Window
    group_by: tuple[exp.Expression, ...]
    having: tuple[exp.Expression, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Union:
    branches: tuple[Operator, ...]


Operator = Scan | Filter | WindowJoin | Project | WindowAggregate | Union


def children(op: Operator) -> tuple[Operator, ...]:
    match op:
        case Scan():
            return ()
        case WindowJoin(left, right):
            return (left, right)
        case Union(branches):
            return branches
        case _:
            return (op.child,)


def with_children(op: Operator, new: tuple[Operator, ...]) -> Operator:
    match op:
        case Scan():
            return op
        case WindowJoin():
            return replace(op, left=new[0], right=new[1])
        case Union():
            return Union(new)
        case _:
            return replace(op, child=new[0])


def walk(op: Operator) -> Iterator[Operator]:
    """The operator and everything below it, top down."""
    yield op
    for child in children(op):
        yield from walk(child)


def scans(op: Operator) -> tuple[Scan, ...]:
    return tuple(o for o in walk(op) if isinstance(o, Scan))


def aliases(op: Operator) -> frozenset[str]:
    return frozenset(s.alias for s in scans(op))


def aliases_in(expr: exp.Expression) -> frozenset[str]:
    return frozenset(c.table for c in expr.find_all(exp.Column))
