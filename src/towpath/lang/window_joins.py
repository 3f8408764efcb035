"""Joins of windowed inputs whose windows are equal: `a.window_start = b.window_start AND a.window_end = b.window_end`.

Two tuples are in one window of length d if they are at most d apart and the numbers of their windows are equal, counted
within a minute, an hour or a day: windows of one number are further apart than d, unless they are one.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from towpath.lang.event_times import EventTimes
from towpath.lang.query import UNITS, duration
from towpath.lang.scope import conjuncts
from towpath.lang.table_windows import TableWindow
from towpath.lang.underline import Problems, mark, span

_PARTS = (("second", UNITS["SECOND"], 60), ("minute", UNITS["MINUTE"], 60), ("hour", UNITS["HOUR"], 24))
_NAMES = ("window_start", "window_end")


def join_windows(select: exp.Select, sources: list[exp.Expr], times: EventTimes, problems: Problems) -> bool:
    """Rewrites the equalities of windows; notes what is missing, and answers whether nothing was."""
    others = [source for source in sources if not isinstance(source, TableWindow)]
    if others:
        hint = "joins of a window with what has none are missing"
        problems.add(others[0], "a join has a window on every input, or on none", hint)
        return False
    windows = {s.this.alias_or_name.lower(): s for s in sources if isinstance(s, TableWindow)}
    sizes = {window.args["range_us"] for window in windows.values()}
    if len(sizes) > 1 or any(window.args.get("slide_us") or window.args.get("session") for window in windows.values()):
        hint = "joins of equal windows are supported for TUMBLE of one size; others are missing"
        problems.add(sources[-1], "these windows cannot be joined", hint)
        return False
    size = sizes.pop()
    numbers = {alias: _number(alias, window, size, times) for alias, window in windows.items()}
    if None in numbers.values():
        hint = "the size has to divide a minute, an hour or a day"
        problems.add(sources[-1], f"joins of equal windows of {duration(size)} are missing", hint)
        return False
    tied = _rewrite_equalities(select, numbers)
    first = next(iter(windows))
    for alias in windows:
        if alias not in tied.get(first, {first}):
            hint = "joins of different windows are missing: add window_start = window_start to ON"
            problems.add(windows[alias], f"the window of {alias} is not equal to that of {first}", hint)
    return len(problems) == 0


def _number(alias: str, window: TableWindow, size: int, times: EventTimes) -> exp.Expr | None:
    """The number of a tuple's window, as an expression; None if there is none."""
    known = times.of(window)
    time = exp.column(next(iter(known)) if known else window.args["time"].name, table=window.this.alias_or_name)
    if size == UNITS["DAY"]:
        return exp.Cast(this=time, to=exp.DataType(this=exp.DType.DATE))
    for name, unit, most in _PARTS:
        count, rest = divmod(size, unit)
        if not rest and most % count == 0 and 2 * count <= most:
            part = exp.Anonymous(this=name, expressions=[time])
            if count == 1:
                return part
            return exp.Anonymous(this="floor", expressions=[exp.Div(this=part, expression=exp.Literal.number(count))])
    return None


def _rewrite_equalities(select: exp.Select, numbers: dict[str, exp.Expr | None]) -> dict[str, set[str]]:
    """Which inputs are tied to which. The first equality of two windows becomes one of their numbers, others go."""
    tied: dict[str, set[str]] = {alias: {alias} for alias in numbers}
    for holder, key in [(select.args.get("where"), "this"), *((j, "on") for j in select.args.get("joins") or [])]:
        if holder is None or holder.args.get(key) is None:
            continue
        kept: list[exp.Expr] = []
        for condition in conjuncts(holder.args[key]):
            pair = _pair(condition, numbers)
            if pair is None:
                kept.append(condition)
                continue
            left, right = pair
            if right in tied[left]:
                continue
            both = tied[left] | tied[right]
            tied |= dict.fromkeys(both, both)
            equal = exp.EQ(this=numbers[left].copy(), expression=numbers[right].copy())  # type: ignore[union-attr]
            for node in equal.walk():
                mark(node, span(condition) or (0, 1))
            kept.append(equal)
        set_condition(select, holder, key, kept)
    return tied


def set_condition(select: exp.Select, holder: exp.Expr, key: str, kept: list[exp.Expr]) -> None:
    if kept:
        holder.set(key, reduce(lambda a, b: exp.And(this=a, expression=b), [c.copy() for c in kept]))
    elif isinstance(holder, exp.Where):
        select.set("where", None)
    else:
        holder.set(key, None)


def _pair(condition: exp.Expr, numbers: dict[str, exp.Expr | None]) -> tuple[str, str] | None:
    if not isinstance(condition, exp.EQ):
        return None
    left, right = condition.this, condition.args["expression"]
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    if left.name.lower() not in _NAMES or left.name.lower() != right.name.lower():
        return None
    aliases = left.table.lower(), right.table.lower()
    return aliases if set(aliases) <= set(numbers) and aliases[0] != aliases[1] else None
