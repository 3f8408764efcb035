"""Joins bounded by event time, `b.at BETWEEN a.at - INTERVAL '10' SECOND AND a.at`, as inputs with their RANGEs.

A RANGE says how much later than a tuple any other of its combination may be. So the RANGE of an input is the largest of
the bounds on `(time of another) - (its time)`, which follow from each other along a chain of inputs: a shortest path.
A bound that is narrower than the RANGE, or excludes its end, stays as a condition beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from sqlglot import exp

from towpath.lang.dialect import Windowed
from towpath.lang.durations import NoDuration, duration_us
from towpath.lang.event_times import EventTimes
from towpath.lang.fields import is_one_of
from towpath.lang.query import MILLISECOND
from towpath.lang.scope import conjuncts
from towpath.lang.underline import Problems, mark, span
from towpath.lang.window_joins import set_condition

_UNBOUNDED = "joins over all time, which keep every tuple for ever, are missing"
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}


@dataclass(frozen=True)
class _Bound:
    """(time of `later`) - (time of `earlier`) <= `us`, or < if `strict`."""

    earlier: str
    later: str
    us: int
    strict: bool
    condition: exp.Expr | None


def bound_joins(select: exp.Select, sources: list[exp.Expr], times: EventTimes, problems: Problems) -> bool:
    """Gives the inputs their RANGEs, if conditions of the join bound its times; whether it did, or noted why not."""
    within = [source for source in sources if source.meta.get("within")]
    if any(isinstance(source, Windowed) for source in sources):
        for source in within:
            problems.add(source.meta["within"][2], "WITHIN stands beside a RANGE", "leave one of them out")
        return bool(within)
    found = _BoundReader(sources, times, problems)
    kept = {holder: list(found.conditions(holder)) for holder in _holders(select)}
    bounds = [bound for conditions in kept.values() for bound in conditions if isinstance(bound, _Bound)]
    bounds += found.within(within)
    if not bounds or len(problems):
        return bool(bounds)
    ranges = _ranges(bounds, {alias.lower(): source for alias, source in found.named}, problems)
    if ranges is None:
        return True
    for (holder, key), conditions in kept.items():
        stays = [_condition(c, ranges) for c in conditions]
        set_condition(select, holder, key, [c for c in stays if c is not None])
    for alias, source in found.named:
        windowed = Windowed(this=source.copy(), range_us=ranges[alias.lower()])
        mark(windowed, span(source) or (0, 1))
        windowed.meta["range_us"] = span(source) or (0, 1)
        source.replace(windowed)
    return True


def _holders(select: exp.Select) -> Iterator[tuple[exp.Expr, str]]:
    where = select.args.get("where")
    yield from [(where, "this")] if where else []
    yield from ((join, "on") for join in select.args.get("joins") or [] if join.args.get("on"))


class _BoundReader:
    def __init__(self, sources: list[exp.Expr], times: EventTimes, problems: Problems) -> None:
        self.named = [(source.alias_or_name, source) for source in sources]
        self._times = {alias.lower(): times.of(source) or frozenset() for alias, source in self.named}
        self._problems = problems

    def conditions(self, holder: tuple[exp.Expr, str]) -> Iterator[_Bound | exp.Expr]:
        for condition in conjuncts(holder[0].args[holder[1]]):
            for part in _comparisons(condition):
                try:
                    bounds = self._bounds(part)
                except NoDuration as error:
                    self._problems.add(part, str(error))
                    continue
                yield from bounds
                if not bounds:
                    yield part

    def _bounds(self, node: exp.Expr) -> list[_Bound]:
        if not isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ):
            return []
        left, right = self._side(node.this), self._side(node.args["expression"])
        if left is None or right is None or left[0] == right[0]:
            return []
        if type(node) in _FLIPPED:
            left, right = right, left
        # left + its offset <= right + its offset
        strict = isinstance(node, exp.LT | exp.GT)
        bounds = [_Bound(right[0], left[0], right[1] - left[1], strict, node)]
        if isinstance(node, exp.EQ):
            bounds.append(_Bound(left[0], right[0], left[1] - right[1], False, None))
        return bounds

    def _side(self, node: exp.Expr) -> tuple[str, int] | None:
        """An input and how far from its event time; None for everything else."""
        if isinstance(node, exp.Paren):
            return self._side(node.this)
        if isinstance(node, exp.Column):
            return self._input(node)
        if not isinstance(node, exp.Add | exp.Sub):
            return None
        left, right = node.this, node.args["expression"]
        if isinstance(node, exp.Add) and isinstance(left, exp.Interval):
            left, right = right, left
        inner = self._side(left)
        if inner is None or not isinstance(right, exp.Interval):
            return None
        length = duration_us(right)
        return inner[0], inner[1] + (length if isinstance(node, exp.Add) else -length)

    def _input(self, column: exp.Column) -> tuple[str, int] | None:
        found = [alias for alias, times in self._times.items() if is_one_of(column, times, {alias}, self._times)]
        return (found[0], 0) if len(found) == 1 else None

    def within(self, sources: list[exp.Expr]) -> Iterator[_Bound]:
        """ksqlDB: the input with WITHIN may be so much before and after the other."""
        for source in sources:
            before, after, place = source.meta["within"]
            if len(self.named) != 2 or source is not self.named[1][1]:
                self._problems.add(
                    place, "WITHIN is supported between two inputs", "write the bounds of times in WHERE"
                )
            elif not (before and after):
                self._problems.add(place, "WITHIN of nothing is not supported", "write the bounds of times in WHERE")
            else:
                left, right = (alias.lower() for alias, _ in self.named)
                yield _Bound(left, right, after, False, None)
                yield _Bound(right, left, before, False, None)


def _comparisons(node: exp.Expr) -> list[exp.Expr]:
    """BETWEEN as two comparisons."""
    if not isinstance(node, exp.Between) or node.args.get("symmetric"):
        return [node]
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    for half in (low, high):
        mark(half, span(node) or (0, 1))
    return [low, high]


def _ranges(bounds: list[_Bound], sources: Mapping[str, exp.Expr], problems: Problems) -> dict[str, int] | None:
    """The RANGE of each input, in whole milliseconds: the longest way to another one."""
    reach: dict[tuple[str, str], float] = {(a, b): 0 if a == b else math.inf for a in sources for b in sources}
    for bound in bounds:
        pair = bound.earlier, bound.later
        reach[pair] = min(reach[pair], bound.us)
    for by, start, end in product(sources, repeat=3):
        reach[start, end] = min(reach[start, end], reach[start, by] + reach[by, end])
    if any(reach[a, a] < 0 for a in sources):
        node = next(bound.condition for bound in bounds if bound.condition)
        problems.add(node, "the bounds of the times exclude each other", "no pair can fulfil them all")
        return None
    for (alias, other), longest in reach.items():
        if longest == math.inf:
            message = f"nothing bounds how much later than {alias} a tuple of {other} may be"
            problems.add(sources[alias], message, f"{_UNBOUNDED}; {alias}'s event time plus an INTERVAL is a bound")
    if len(problems):
        return None
    furthest = {a: max(reach[a, b] for b in sources if b != a) for a in sources}
    return {a: max(MILLISECOND, math.ceil(us / MILLISECOND) * MILLISECOND) for a, us in furthest.items()}


def _condition(part: _Bound | exp.Expr, ranges: Mapping[str, int]) -> exp.Expr | None:
    """What stays of a condition beside the RANGEs: nothing of a bound that they imply."""
    if not isinstance(part, _Bound):
        return part
    implied = part.us > ranges[part.earlier] or (part.us == ranges[part.earlier] and not part.strict)
    equal = isinstance(part.condition, exp.EQ)
    return part.condition if equal or not implied else None
