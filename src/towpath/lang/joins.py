"""The rule of joins: plain column equalities tie all inputs together."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from towpath.lang.scope import ScopedInput
from towpath.lang.typing import ColumnType
from towpath.lang.underline import Problems


def check_tied(
    sources: list[ScopedInput], where: Iterable[exp.Expression], column_type: ColumnType, problems: Problems
) -> None:
    tied = [{s.alias} for s in sources]
    for condition in where:
        sides = _tie(condition, column_type)
        if sides:
            touched = [group for group in tied if group & sides]
            tied = [group for group in tied if not group & sides] + [set().union(*touched)]
    if len(tied) == 1:
        return
    first = next(group for group in tied if sources[0].alias in group)
    for source in sources:
        if source.alias not in first:
            message = f"{source.alias} is not tied to {sources[0].alias} by an equality of two columns"
            hint = f"joins without one are missing; {_example(sources[0], source)} gives only pairs of equal values"
            problems.add(source.node, message, hint)


def _tie(condition: exp.Expression, column_type: ColumnType) -> set[str] | None:
    """The two inputs that an equality of columns ties."""
    if not isinstance(condition, exp.EQ):
        return None
    left, right = condition.this, condition.args["expression"]
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)) or left.table == right.table:
        return None
    types = [column_type(side.text("table"), side.name) for side in (left, right)]
    alike = types[0] is types[1] or all(t.integral for t in types)
    return {left.table, right.table} if alike else None


def _example(left: ScopedInput, right: ScopedInput) -> str:
    shared = [name for name in left.columns or () if name in (right.columns or ())]
    names = (
        (shared[0], shared[0]) if shared else (next(iter(left.columns or ("x",))), next(iter(right.columns or ("y",))))
    )
    return f"{left.alias}.{names[0]} = {right.alias}.{names[1]}"
