"""How large a query may be once all its names are replaced by what they stand for.

A name in HAVING, or a column of a derived table, stands for a whole expression, and the subject of a CASE is compared
once for each WHEN. So a short text can stand for a tree of any size. Parts are paid for before they are made: a query
that is too large costs no more than the largest that is not.
"""

from __future__ import annotations

from sqlglot import exp

from towpath.lang.underline import TextSpan, span

MOST_PARTS = 5_000  # columns, literals, operators and calls
MOST_SELECTS = 100  # each runs by itself
MOST_WIDE = 200  # computed columns, keys of GROUP BY, and aggregates of a SELECT: a carrier computes them all
LONGEST_NAME = 200
MOST_FIRST = 10_000  # rows of a window: all of them are in memory when it closes
DEEPEST = 150  # levels of nesting; every later walk over the tree recurses


class TooLarge(Exception):
    def __init__(self, place: TextSpan | None) -> None:
        super().__init__("the query is too large")
        self.place = place or (0, 1)


class Budget:
    """The parts that one query may still have."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def spend(self, at: exp.Expr, parts: int = 1) -> None:
        self._left -= parts
        if self._left < 0:
            raise TooLarge(span(at))

    def copied(self, expr: exp.Expression, at: exp.Expr) -> exp.Expression:
        # The name itself is paid for by who reads it.
        self.spend(at, sum(not isinstance(node, exp.Identifier) for node in expr.walk()) - 1)
        return expr.copy()


def levels(expr: exp.Expr) -> int:
    """How deeply an expression is nested."""
    deepest, waiting = 0, [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(child, depth + 1) for child in node.iter_expressions()]
    return deepest
