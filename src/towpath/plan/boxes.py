"""Conditions as data: what a carrier can look up in its assignment table instead of compiling it.

A conjunction becomes *boxes*, each a set of `column = value` and `lo <= column < hi`. The boxes of one fragment are
disjoint (`IN` and `<>` make several), so a tuple matches at most one. What fits no box stays a residual expression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from towpath.plan.constants import Value, constant, successor
from towpath.plan.operators import ColumnRef, ColumnType
from towpath.schema import Type

# From here on a double stands for several integers, and so does a comparison with it.
EXACT = 2**53
# More boxes than this cost more as table rows than as a residual condition.
MOST_BOXES = 64


@dataclass(frozen=True)
class Interval:
    """lo <= x < hi; None is unbounded. Half open, so that every comparison operator is a pair of bounds."""

    lo: Value | None = None
    hi: Value | None = None

    def meet(self, other: Interval) -> Interval:
        lows = [v for v in (self.lo, other.lo) if v is not None]
        highs = [v for v in (self.hi, other.hi) if v is not None]
        return Interval(max(lows, default=None), min(highs, default=None))

    def holds(self, value: Value) -> bool:
        return not ((self.lo is not None and value < self.lo) or (self.hi is not None and value >= self.hi))  # type: ignore[operator]

    @property
    def empty(self) -> bool:
        return self.lo is not None and self.hi is not None and self.lo >= self.hi  # type: ignore[operator]


@dataclass(frozen=True)
class Box:
    equals: tuple[tuple[ColumnRef, Value], ...] = ()
    ranges: tuple[tuple[ColumnRef, Interval], ...] = ()

    @property
    def empty(self) -> bool:
        return any(interval.empty for _, interval in self.ranges)


Test = Value | Interval  # what one conjunct asks of one column


def boxes(
    conjuncts: Sequence[exp.Expression], column_type: ColumnType
) -> tuple[tuple[Box, ...], tuple[exp.Expression, ...]]:
    """The boxes of a conjunction and the conjuncts that fit none."""
    found: list[Box] = [Box()]
    residual: list[exp.Expression] = []
    for conjunct in conjuncts:
        read = _read(conjunct, column_type)
        if read is None or len(found) * len(read[1]) > MOST_BOXES:
            residual.append(conjunct)
            continue
        column, tests = read
        narrowed = [_narrow(box, column, test) for box in found for test in tests]
        # One box stays when none can match, so that the conjunction is still a row of the table.
        found = [box for box in narrowed if not box.empty] or narrowed[:1]
    return tuple(found), tuple(residual)


def _narrow(box: Box, column: ColumnRef, test: Test) -> Box:
    equals, ranges = dict(box.equals), dict(box.ranges)
    if isinstance(test, Interval):
        ranges[column] = ranges.get(column, Interval()).meet(test)
    elif equals.setdefault(column, test) != test:
        ranges[column] = Interval(test, test)
    if column in equals and column in ranges:
        # The value decides: it lies in the range, or no tuple can match, which an empty range says.
        value = equals[column]
        if ranges[column].holds(value):
            del ranges[column]
        else:
            ranges[column] = Interval(value, value)
    return Box(tuple(sorted(equals.items())), tuple(sorted(ranges.items(), key=lambda kv: kv[0])))


def _read(conjunct: exp.Expression, column_type: ColumnType) -> tuple[ColumnRef, list[Test]] | None:
    """The column and the disjoint tests of a conjunct on one column and constants."""
    if isinstance(conjunct, exp.Column):
        return _ref(conjunct), [True]
    if isinstance(conjunct, exp.Not) and isinstance(conjunct.this, exp.Column):
        return _ref(conjunct.this), [False]
    if isinstance(conjunct, exp.In) and isinstance(conjunct.this, exp.Column):
        return _read_in(conjunct, column_type)
    if not isinstance(conjunct, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    left, right = conjunct.this, conjunct.expression
    value = constant(right)
    if not isinstance(left, exp.Column) or value is None:
        return None
    tests = _comparison(type(conjunct), value[0], column_type(left.table, left.name))
    return None if tests is None else (_ref(left), tests)


def _ref(column: exp.Column) -> ColumnRef:
    return column.table, column.name


def _read_in(conjunct: exp.In, column_type: ColumnType) -> tuple[ColumnRef, list[Test]] | None:
    column = conjunct.this
    tests: dict[Test, None] = {}
    for member in conjunct.expressions:
        value = constant(member)
        test = None if value is None else _comparison(exp.EQ, value[0], column_type(column.table, column.name))
        if test is None:
            return None
        tests |= dict.fromkeys(test)
    return _ref(column), list(tests)


def _comparison(kind: type[exp.Expression], value: Value, column: Type) -> list[Test] | None:
    if column is Type.BOOLEAN:
        return [value] if kind is exp.EQ else [not value] if kind is exp.NEQ else None
    if column.integral and isinstance(value, float):
        return _integral(kind, value)
    if column is Type.DOUBLE:
        value = float(value)  # type: ignore[arg-type]
        if math.isnan(value):
            return None
    return _tests(kind, value, column)


def _tests(kind: type[exp.Expression], value: Value, column: Type) -> list[Test] | None:
    above = successor(value)
    if above is None:
        return None
    if kind is exp.EQ:
        # A double is looked up as a range, not by its hash: 0.0 and -0.0 are equal but have different bits.
        return [Interval(value, above)] if column is Type.DOUBLE else [value]
    if kind is exp.NEQ:
        return [Interval(None, value), Interval(above, None)]
    bounds: dict[type[exp.Expression], Interval] = {
        exp.LT: Interval(None, value),
        exp.LTE: Interval(None, above),
        exp.GT: Interval(above, None),
        exp.GTE: Interval(value, None),
    }
    return [bounds[kind]]


def _integral(kind: type[exp.Expression], value: float) -> list[Test] | None:
    """An integer column compared with a fraction: the same question asked with whole numbers."""
    if abs(value) >= EXACT:
        return None
    whole = math.floor(value)
    if whole == value:
        return _tests(kind, whole, Type.BIGINT)
    if kind in (exp.LT, exp.LTE):
        return [Interval(None, whole + 1)]
    if kind in (exp.GT, exp.GTE):
        return [Interval(whole + 1, None)]
    return None
