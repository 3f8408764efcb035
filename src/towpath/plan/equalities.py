"""Columns that are equal because the query says so, directly or through others."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from towpath.plan.operators import ColumnRef, ColumnType


class Equalities:
    def __init__(self) -> None:
        self._group: dict[ColumnRef, set[ColumnRef]] = {}

    def add(self, left: ColumnRef, right: ColumnRef) -> bool:
        """False when the two were known to be equal."""
        ours, theirs = self._group.get(left, {left}), self._group.get(right, {right})
        if right in ours:
            return False
        merged = ours | theirs
        self._group |= dict.fromkeys(merged, merged)
        return True

    @property
    def groups(self) -> Iterable[set[ColumnRef]]:
        return {id(group): group for group in self._group.values()}.values()


def tie(conjunct: exp.Expression, column_type: ColumnType) -> tuple[ColumnRef, ColumnRef] | None:
    """The columns of two inputs that a conjunct says are equal. Of like types only: else = is not transitive."""
    columns = joined_columns(conjunct)
    if columns is None:
        return None
    left, right = (column_type(*column) for column in columns)
    return columns if left is right or (left.integral and right.integral) else None


def joined_columns(conjunct: exp.Expression) -> tuple[ColumnRef, ColumnRef] | None:
    """The sides of an equality between columns of two inputs, in order."""
    left, right = conjunct.this, conjunct.args.get("expression")
    if not (isinstance(conjunct, exp.EQ) and isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    sides = sorted([(left.table, left.name), (right.table, right.name)])
    return None if left.table == right.table else (sides[0], sides[1])
