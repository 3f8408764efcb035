"""Cuts a plan into fragments, the units of placement.

A UNION ALL belongs to no fragment: nothing is calculated there, whoever reads the results collects them. Each of its
branches is cut by itself and ends in one fragment that has nothing downstream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from towpath.plan import CUT, WHOLE
from towpath.plan.estimate import rate
from towpath.plan.operators import LogicalOperator, Scan, Union, WindowAggregate, WindowJoin, children, walk
from towpath.schema import Catalog


@dataclass(frozen=True)
class PlanFragment:
    """A connected set of operators that always sits on one node."""

    number: int  # 1, 2, ... from the leaves up, left to right
    stream: str  # the node this stream is delegated to is the fragment's native node
    operators: tuple[LogicalOperator, ...]  # from the leaf up; the last one's output leaves the fragment
    positions: tuple[int, ...]  # of the operators in `walk(plan)`
    upstream: tuple[int, ...] = ()  # the fragments whose output it reads


Rule = Callable[[LogicalOperator, Catalog], tuple[int, ...]]
"""Which of its children, by their numbers, an operator shares its fragment with."""


def with_heavier(op: LogicalOperator, catalog: Catalog) -> tuple[int, ...]:
    """Zhou et al., section 3.1, steps 2 to 4: one fragment for each stream.

    A unary operator stays with its child. A join goes to the input of the higher estimated rate, so that the lower rate
    is what may have to cross the network; the other input becomes its upstream.
    """
    match op:
        case Scan():
            return ()
        case WindowJoin(left, right):
            return (0,) if rate(left, catalog) >= rate(right, catalog) else (1,)
        case _:
            return (0,)


def with_all(op: LogicalOperator, catalog: Catalog) -> tuple[int, ...]:
    return tuple(range(len(children(op))))


def cut_off(op: LogicalOperator, catalog: Catalog) -> tuple[int, ...]:
    """An aggregate off the join below it: what cut.py makes two pipelines of."""
    joins = any(isinstance(below, WindowJoin) for below in walk(op))
    return () if isinstance(op, WindowAggregate) and joins else with_all(op, catalog)


DEFAULT = "one_per_stream"
FRAGMENTERS: dict[str, Rule] = {DEFAULT: with_heavier, CUT: cut_off, WHOLE: with_all}


def fragments(plan: LogicalOperator, catalog: Catalog, fragmenter: str = DEFAULT) -> tuple[PlanFragment, ...]:
    cutter = _Cutter(FRAGMENTERS[fragmenter], catalog)
    cutter.cut(plan)
    return cutter.fragments()


@dataclass(eq=False)
class _Draft:
    operators: list[LogicalOperator] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    upstream: list[_Draft] = field(default_factory=list)


class _Cutter:
    def __init__(self, rule: Rule, catalog: Catalog) -> None:
        self._rule = rule
        self._catalog = catalog
        self._positions = count()  # top down, as `walk` goes
        self._drafts: list[_Draft] = []

    def cut(self, plan: LogicalOperator) -> None:
        if not isinstance(plan, Union):
            self._draft(plan)
            return
        next(self._positions)
        for branch in plan.branches:
            self.cut(branch)

    def fragments(self) -> tuple[PlanFragment, ...]:
        numbers = {draft: number for number, draft in enumerate(self._drafts, start=1)}
        return tuple(
            PlanFragment(
                number,
                _native(draft.operators[-1], self._catalog),
                tuple(draft.operators),
                tuple(draft.positions),
                tuple(numbers[u] for u in draft.upstream),
            )
            for draft, number in numbers.items()
        )

    def _draft(self, op: LogicalOperator) -> _Draft:
        position = next(self._positions)
        below = [self._draft(child) for child in children(op)]
        shared = [below[n] for n in self._rule(op, self._catalog)]
        draft = self._merged(shared)
        draft.operators.append(op)
        draft.positions.append(position)
        draft.upstream += [b for b in below if b not in shared]
        return draft

    def _merged(self, drafts: list[_Draft]) -> _Draft:
        if not drafts:
            self._drafts.append(_Draft())
            return self._drafts[-1]
        first, *others = drafts
        for other in others:
            self._drafts.remove(other)
            first.operators += other.operators
            first.positions += other.positions
            first.upstream += other.upstream
        return first


def _native(op: LogicalOperator, catalog: Catalog) -> str:
    """The stream that brings most of an operator's input."""
    while not isinstance(op, Scan):
        heavier = with_heavier(op, catalog)[0]
        op = children(op)[heavier]
    return op.stream
