"""The first rows of each window: `QUALIFY row_number() OVER (...) <= n`, and `ORDER BY ... LIMIT n`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from towpath.lang.budget import MOST_FIRST
from towpath.lang.decimals import units_of
from towpath.lang.functions import AGGREGATE_NODES
from towpath.lang.literals import whole_number
from towpath.lang.outputs import OutputColumn, of_window, position
from towpath.lang.query import SortKey, Top
from towpath.lang.refusals import refuse_clauses
from towpath.lang.scope import Scope, conjuncts
from towpath.lang.show import is_rank
from towpath.lang.typing import Unknown
from towpath.lang.underline import Problems

FUNCTIONS = ("row_number", "rank", "dense_rank")
_EXAMPLE = "QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC) <= 3"
_ANY_ROWS = "any rows would do, and when the input is replayed they could be others; ORDER BY says which come first"
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}


class _First(NamedTuple):
    window: exp.Window
    most: exp.Expr
    less: int  # than what is written: 1 of `< n`


def is_ranking(node: exp.Expr) -> bool:
    """Whether it is row_number() OVER (...) or one of its kind."""
    return isinstance(node, exp.Window) and node.this.name.lower() in FUNCTIONS


def read_top(raw: exp.Select, outputs: Sequence[OutputColumn], scope: Scope, problems: Problems) -> Top | None:
    """Of a SELECT that has QUALIFY or LIMIT; None also after noting a mistake."""
    if raw.args.get("qualify"):
        return _TopReader(outputs, scope, problems).qualified(raw)
    return _TopReader(outputs, scope, problems).limited(raw) if raw.args.get("limit") else None


class _TopReader:
    def __init__(self, outputs: Sequence[OutputColumn], scope: Scope, problems: Problems) -> None:
        self._outputs = outputs
        self._scope = scope
        self._problems = problems
        self._names = {o.name.lower(): o.expr for o in outputs if not is_rank(o.expr)}

    def qualified(self, raw: exp.Select) -> Top | None:
        for clause in filter(None, map(raw.args.get, ("order", "limit"))):
            name = "ORDER BY" if isinstance(clause, exp.Order) else "LIMIT"
            self._problems.add(clause, f"{name} beside QUALIFY is not supported", "leave one of them out")
        conditions = conjuncts(raw.args["qualify"].this)
        first = self._first(conditions[0])
        if first is None or len(conditions) > 1:
            wrong = conditions[1] if first else conditions[0]
            self._problems.add(wrong, "QUALIFY takes one condition: that a row is among the first", f"as in {_EXAMPLE}")
            return None
        for output in self._outputs:
            if is_rank(output.expr) and output.node.unalias() != first.window:
                self._problems.add(
                    output.node, "its OVER is another one than that of QUALIFY", "a SELECT has one order"
                )
        return self._over(first)

    def limited(self, raw: exp.Select) -> Top | None:
        limit, order = raw.args["limit"], raw.args.get("order")
        if isinstance(limit, exp.Fetch):
            refuse_clauses(limit, "direction count limit_options", self._problems)
            most = limit.args.get("count") or exp.Literal.number(1)
        else:
            refuse_clauses(limit, "expression limit_options", self._problems)
            most = limit.expression
        options = limit.args.get("limit_options")
        if options is not None and options.args.get("with_ties"):
            hint = "QUALIFY rank() OVER (ORDER BY x) <= 3 keeps all rows that are alike"
            self._problems.add(limit, "WITH TIES is not supported", hint)
        if options is not None and options.args.get("percent"):
            self._problems.add(limit, "PERCENT is not supported", "a share of the rows of a window is missing")
        if order is None:
            self._problems.add(limit, "LIMIT without ORDER BY is not supported", _ANY_ROWS)
            return None
        keys = self._keys(order, self._names, last=False)
        number = self._most(most, 0, "LIMIT")
        return Top(number, "row_number", (), keys) if number else None

    def _first(self, condition: exp.Expr) -> _First | None:
        """`row_number() OVER (...) <= n`, in any of the ways to say it."""
        if isinstance(condition, exp.Between):
            window, low = self._ranking(condition.this), whole_number(condition.args["low"])
            return _First(window, condition.args["high"], 0) if window and low == 1 else None
        if not isinstance(condition, exp.LTE | exp.LT | exp.GTE | exp.GT | exp.EQ):
            return None
        kind: type[exp.Expr] = type(condition)
        left, right = condition.this, condition.expression
        window = self._ranking(left)
        if window is None:
            kind, window, right = _FLIPPED.get(kind, exp.Expression), self._ranking(right), left
        if window is None or not issubclass(kind, exp.LTE | exp.LT | exp.EQ):
            return None
        if kind is exp.EQ and whole_number(right) != 1:
            self._problems.add(right, "only the first rows can be chosen", "write = 1, or <= and a number")
        return _First(window, right, int(kind is exp.LT))

    def _ranking(self, node: exp.Expr) -> exp.Window | None:
        """What it says, by itself or by the name that SELECT gives it."""
        node = node.unnest()
        if isinstance(node, exp.Column) and not node.table:
            named = (o.node for o in self._outputs if is_rank(o.expr) and o.name.lower() == node.name.lower())
            node = next((output.unalias() for output in named), node)
        return node if isinstance(node, exp.Window) and is_ranking(node) else None

    def _over(self, first: _First) -> Top | None:
        window, function = first.window, first.window.this
        refuse_clauses(window, "this partition_by order over", self._problems)
        if function.expressions:
            self._problems.add(function, f"{function.name} takes no arguments")
        order = window.args.get("order")
        if order is None:
            self._problems.add(window, f"{function.name}() without ORDER BY is not supported", _ANY_ROWS)
            return None
        partition = [
            units_of(self._read(node, self._names, last=True)) for node in window.args.get("partition_by") or []
        ]
        keys = self._keys(order, self._names, last=True)
        most = self._most(first.most, first.less, f"the number behind {function.name}()")
        if most is None:
            return None
        return Top(most, function.name.lower(), tuple(p for p in partition if not of_window(p)), keys)

    def _keys(self, order: exp.Expr, names: Mapping[str, exp.Expression], last: bool) -> tuple[SortKey, ...]:
        keys = []
        for node in order.expressions:
            refuse_clauses(node, "this desc nulls_first", self._problems)
            at = None if last else position(node.this, list(self._outputs), self._scope, self._problems)
            expr = units_of(at or self._read(node.this, names, last))
            keys.append(SortKey(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))))
        return tuple(key for key in keys if not of_window(key.expr))

    def _read(self, node: exp.Expr, names: Mapping[str, exp.Expression], last: bool) -> exp.Expression:
        expr = self._scope.expression(node, names, last=last)
        if not expr.find(exp.Column, Unknown, *AGGREGATE_NODES):
            self._problems.add(node, "a constant puts nothing in order", "leave it out")
        return expr

    def _most(self, node: exp.Expr, less: int, what: str) -> int | None:
        number = whole_number(node)
        if number is None or not 1 <= number - less <= MOST_FIRST:
            self._problems.add(node, f"{what} has to be a whole number from {1 + less} to {MOST_FIRST + less:,}")
            return None
        return number - less
