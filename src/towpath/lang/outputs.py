"""What a SELECT puts out and groups by, before types are known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import TokenType, exp

from towpath.lang.budget import LONGEST_NAME
from towpath.lang.decimals import units_of
from towpath.lang.dialect import TowpathDialect
from towpath.lang.functions import AGGREGATE_NODES
from towpath.lang.query import RANK, WINDOW
from towpath.lang.refusals import refuse_clauses
from towpath.lang.scope import Scope, column
from towpath.lang.show import is_rank
from towpath.lang.typing import Unknown
from towpath.lang.underline import Problems, mark, span

LONGEST_MADE_NAME = 60  # of a column that got none from the query
_WORDS = {
    **{"+": "plus", "-": "minus", "*": "times", "/": "by", "%": "mod", "||": "and"},
    **{"=": "eq", "<>": "ne", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"},
}


@dataclass(frozen=True)
class OutputColumn:
    name: str
    node: exp.Expr
    expr: exp.Expression


def read_outputs(raw: exp.Select, scope: Scope, problems: Problems) -> list[OutputColumn]:
    if not raw.expressions:
        problems.add(raw, "SELECT names no columns", "write SELECT * for all")
    outputs: list[OutputColumn] = []
    for node in raw.expressions:
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star):
            if any(star.args.values()):
                problems.add(node, "* takes no EXCEPT, REPLACE or RENAME", "name the columns")
            alias = node.table if isinstance(node, exp.Column) else None
            outputs += [OutputColumn(name, node, e) for name, e in scope.star(alias, node)]
        else:
            value = node.this if isinstance(node, exp.Alias) else node
            if isinstance(value, exp.Window) and raw.args.get("qualify"):
                # Which one it is, is said where QUALIFY is read.
                name = node.alias or value.this.name.lower()
                rank = column(WINDOW, RANK)
                mark(rank, span(node) or (0, 1))
                outputs.append(OutputColumn(name, node, rank))
                continue
            spelled = scope.spelling(node) if isinstance(node, exp.Column) else None
            name = spelled or output_name(node, problems.text(node))
            outputs.append(OutputColumn(name, node, scope.expression(value)))
    return outputs


def check_names(outputs: Iterable[OutputColumn], problems: Problems) -> None:
    seen: set[str] = set()
    for output in outputs:
        if output.name.lower() in seen:
            message = f"two output columns are called {output.name}"
            written = problems.text(output.node.this if isinstance(output.node, exp.Alias) else output.node)
            hint = "name the columns one by one" if written.endswith("*") else f"write {written} AS another_name"
            problems.add(output.node, message, hint)
        seen.add(output.name.lower())
        if len(output.name) > LONGEST_NAME:
            message = (
                f"the name of an output column has {len(output.name):,} characters, at most {LONGEST_NAME} are allowed"
            )
            problems.add(output.node, message, "give it a shorter name with AS")


def read_group_by(
    raw: exp.Select, outputs: list[OutputColumn], scope: Scope, problems: Problems
) -> list[exp.Expression]:
    group = raw.args.get("group")
    if group is None:
        return []
    refuse_clauses(group, "expressions", problems)
    names = {o.name.lower(): o.expr for o in outputs}
    keys: list[exp.Expression] = []
    for node in group.expressions:
        key = units_of(position(node, outputs, scope, problems) or scope.expression(node, names, last=True))
        # Each window is a group of its own anyway.
        if key not in keys and (is_rank(key) or not of_window(key)):
            keys.append(key)
        if not key.find(exp.Column, Unknown, *AGGREGATE_NODES):
            problems.add(node, "a constant does not group anything", "leave it out")
    return keys


def visible_in_having(
    outputs: list[OutputColumn], group_by: list[exp.Expression], scope: Scope
) -> dict[str, exp.Expression]:
    """Output names HAVING may use: a grouped input column of the same name comes first."""
    grouped = {key.name.lower() for key in group_by if isinstance(key, exp.Column)}
    hidden = {name for name in grouped if scope.spelling(exp.column(name))}
    return {o.name.lower(): o.expr for o in outputs if o.name.lower() not in hidden}


def of_window(key: exp.Expression) -> bool:
    """Whether it says nothing but which window it is."""
    columns = list(key.find_all(exp.Column))
    return bool(columns) and all(c.text("table") == WINDOW for c in columns) and not key.find(*AGGREGATE_NODES)


def position(node: exp.Expr, outputs: list[OutputColumn], scope: Scope, problems: Problems) -> exp.Expression | None:
    """`GROUP BY 1` is the first output column."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdecimal():
        return None
    if len(node.this) > 4 or not 1 <= int(node.this) <= len(outputs):
        problems.add(node, f"there is no output column {node.this}", f"SELECT has {len(outputs)}")
        return Unknown()
    return scope.budget.copied(outputs[int(node.this) - 1].expr, node)


def output_name(raw: exp.Expr, text: str) -> str:
    """The alias, the column's name, or a snake-case reading of the text: sum(b.price) -> sum_price."""
    if isinstance(raw, exp.Alias | exp.Column):
        return str(raw.alias_or_name)
    tokens = TowpathDialect().tokenize(text.replace("(*)", "()"))
    words = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        qualifier = following is not None and following.token_type == TokenType.DOT
        if not qualifier:
            words.append(_WORDS.get(token.text, token.text))
    name = "_".join(filter(None, (re.sub(r"\W+", "_", word).strip("_").lower() for word in words)))
    return name[:LONGEST_MADE_NAME].rstrip("_") or "value"
