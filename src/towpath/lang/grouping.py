"""The rules of aggregates: where they may stand, and what may stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Set

from sqlglot import exp

from towpath.lang.functions import AGGREGATE_NODES
from towpath.lang.query import WINDOW
from towpath.lang.show import expression_text, is_rank
from towpath.lang.typing import spelling
from towpath.lang.underline import Problems


def is_aggregate(expressions: Iterable[exp.Expression]) -> bool:
    return any(e.find(*AGGREGATE_NODES) for e in expressions)


def refuse_aggregates(expressions: Iterable[exp.Expression], clause: str, problems: Problems) -> None:
    hint = "put the condition into HAVING" if clause == "WHERE" else "group by columns and expressions of columns"
    for expr in expressions:
        for call in expr.find_all(*AGGREGATE_NODES):
            problems.add(call, f"{spelling(call)} is an aggregate and cannot stand in {clause}", hint)


def refuse_window_columns(expressions: Iterable[exp.Expression], where: str, problems: Problems) -> None:
    for expr in expressions:
        for column in expr.find_all(exp.Column):
            if column.text("table") == WINDOW:
                hint = "it can be used in SELECT and HAVING of an aggregate, and in SELECT beside QUALIFY or LIMIT"
                problems.add(column, f"{column.name} is not known {where}", hint)


def refuse_ranks(expressions: Iterable[exp.Expression], clause: str, problems: Problems) -> None:
    for expr in expressions:
        for column in expr.find_all(exp.Column):
            if is_rank(column):
                problems.add(column, f"a rank is not known in {clause}", "put the condition into QUALIFY")


def check_grouped(expr: exp.Expression, keys: Set[exp.Expression], problems: Problems) -> None:
    """Outside of aggregate calls only grouped expressions and the window's bounds have one value per result."""
    if expr in keys:
        return
    if isinstance(expr, AGGREGATE_NODES):
        _check_call(expr, problems)
    elif isinstance(expr, exp.Column):
        if expr.text("table") != WINDOW:
            written = problems.text(expr)
            name = expression_text(expr) if written.endswith("*") else written
            hint = f"add {name} to GROUP BY, or aggregate it, as in max({name})"
            problems.add(expr, f"{name} is neither grouped nor aggregated", hint)
    else:
        for child in expr.iter_expressions():
            if isinstance(child, exp.Expression):
                check_grouped(child, keys, problems)


def _check_call(call: exp.Expression, problems: Problems) -> None:
    inside = [node for node in call.iter_expressions() if isinstance(node, exp.Expression)]
    nested = next((found for node in inside for found in node.find_all(*AGGREGATE_NODES)), None)
    if nested:
        message = f"{spelling(nested)} cannot stand inside {spelling(call)}"
        problems.add(nested, message, "aggregate once; aggregate the results in a query of their own")
    refuse_window_columns(inside, "inside an aggregate", problems)
