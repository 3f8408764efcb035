"""Expressions of a checked query as DuckDB text, with the meaning the language gives them.

Every operation is put in parentheses, since a checked tree carries precedence in its structure alone.
Where DuckDB's own meaning differs from the language's, the rule below says how.

Two things are left as DuckDB does them: the text of a double below 1e-3 or from 1e7 on (Spark writes 1.0E7), and the
upper case of letters that grow by it (ß).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from towpath.lang.query import WINDOW
from towpath.lang.typing import infer
from towpath.schema import Type

DUCKDB_TYPE = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INT: "INTEGER",
    Type.BIGINT: "BIGINT",
    Type.DOUBLE: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.TIMESTAMP: "TIMESTAMP",
    Type.DATE: "DATE",
}

OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
}

FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Abs: "abs",
    exp.Exp: "exp",
    exp.Least: "least",
    exp.Greatest: "greatest",
    exp.Coalesce: "coalesce",
    exp.Nullif: "nullif",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Trim: "trim",
    exp.Length: "length",
    exp.StartsWith: "starts_with",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.StddevSamp: "stddev_samp",
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Renderer:
    """Renders the expressions of one SELECT. `window_times` is the text of window_start and window_end."""

    def __init__(self, column_type: Callable[[str, str], Type], window_times: Mapping[str, str]) -> None:
        self._column_type = column_type
        self._window_times = window_times

    def __call__(self, node: exp.Expression) -> str:
        kind = type(node)
        if kind in OPERATORS:
            return f"({self(node.this)} {OPERATORS[kind]} {self(node.expression)})"
        if kind in FUNCTIONS:
            return f"{FUNCTIONS[kind]}({', '.join(map(self, _arguments(node)))})"
        return RULES[kind](self, node)

    def output(self, node: exp.Expression, type_: Type) -> str:
        return f"CAST({self(node)} AS {DUCKDB_TYPE[type_]})"

    def type_of(self, node: exp.Expression) -> Type:
        return infer(node, self._column_type)

    def column(self, node: exp.Column) -> str:
        if node.table == WINDOW:
            return self._window_times[node.name]
        return f"{quoted(node.table)}.{quoted(node.name)}"


def _arguments(node: exp.Expression) -> list[exp.Expression]:
    """The operands in order; sqlglot also keeps flags of other dialects among a node's arguments."""
    values = [node.args.get(name) for name in node.arg_types]
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    return [v for v in flat if isinstance(v, exp.Expression)]


def _literal(render: Renderer, node: exp.Literal) -> str:
    """A number is BIGINT or DOUBLE: DuckDB would compute in 32 bits or in decimals."""
    if node.is_string:
        return "'" + str(node.this).replace("'", "''") + "'"
    return f"CAST({node.this} AS {'BIGINT' if node.is_int else 'DOUBLE'})"


def _divide(render: Renderer, node: exp.Div) -> str:
    return f"(CAST({render(node.this)} AS DOUBLE) / nullif(CAST({render(node.expression)} AS DOUBLE), 0))"


def _modulo(render: Renderer, node: exp.Mod) -> str:
    return f"({render(node.this)} % nullif({render(node.expression)}, 0))"


def _cast(render: Renderer, node: exp.Cast) -> str:
    """A value that does not fit is NULL; a double is cut towards zero, where DuckDB would round it."""
    value, target = render(node.this), render.type_of(node)
    if target.integral:
        value = f"trunc({value})" if render.type_of(node.this) is Type.DOUBLE else value
        return f"TRY_CAST({value} AS BIGINT)"
    return f"TRY_CAST({value} AS {DUCKDB_TYPE[target]})"


def _round(render: Renderer, node: exp.Round) -> str:
    """Half away from zero on the shortest decimal text of a double, so 2.675 becomes 2.68 although it lies below."""
    value = render(node.this)
    digits = render(node.args["decimals"]) if node.args.get("decimals") else "0"
    digits = f"CAST({digits} AS INTEGER)"
    if render.type_of(node.this) is not Type.DOUBLE:
        return f"round({value}, {digits})"
    rounded = f"CAST(CAST(round(CAST(CAST({value} AS VARCHAR) AS DECIMAL(38, 20)), {digits}) AS VARCHAR) AS DOUBLE)"
    # From 1e17 on a double has no fraction, and DECIMAL(38, 20) ends at 1e18; NaN counts as large.
    return f"(CASE WHEN abs({value}) < 1e17 THEN {rounded} ELSE {value} END)"


def _to_integer(function: str) -> Rule:
    def rule(render: Renderer, node: exp.Expression) -> str:
        value = render(node.this)
        if render.type_of(node.this) is not Type.DOUBLE:
            return value
        return f"(CASE WHEN isnan({value}) THEN 0 ELSE TRY_CAST({function}({value}) AS BIGINT) END)"

    return rule


def _sqrt(render: Renderer, node: exp.Sqrt) -> str:
    value = render(node.this)
    return f"(CASE WHEN {value} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({value}) END)"


def _ln(render: Renderer, node: exp.Ln) -> str:
    value = render(node.this)
    return f"(CASE WHEN {value} > 0 THEN ln({value}) END)"


def _power(render: Renderer, node: exp.Pow) -> str:
    return f"power(CAST({render(node.this)} AS DOUBLE), CAST({render(node.expression)} AS DOUBLE))"


def _like(render: Renderer, node: exp.Like) -> str:
    return f"({render(node.this)} LIKE {render(node.expression)})"


def _in(render: Renderer, node: exp.In) -> str:
    return f"({render(node.this)} IN ({', '.join(map(render, node.expressions))}))"


def _between(render: Renderer, node: exp.Between) -> str:
    return f"({render(node.this)} BETWEEN {render(node.args['low'])} AND {render(node.args['high'])})"


def _case(render: Renderer, node: exp.Case) -> str:
    branches = "".join(f" WHEN {render(b.this)} THEN {render(b.args['true'])}" for b in node.args["ifs"])
    default = node.args.get("default")
    return f"(CASE{branches}{f' ELSE {render(default)}' if default else ''} END)"


def _substring(render: Renderer, node: exp.Substring) -> str:
    """Position 0 is the first character too, and a negative length takes nothing; DuckDB would count from before."""
    text, start, *length = map(render, _arguments(node))
    parts = [text, f"(CASE WHEN {start} = 0 THEN 1 ELSE {start} END)"]
    parts += [f"(CASE WHEN {n} < 0 THEN 0 ELSE {n} END)" for n in length]
    return f"substring({', '.join(parts)})"


def _count(render: Renderer, node: exp.Count) -> str:
    if isinstance(node.this, exp.Distinct):
        return f"count(DISTINCT {render(node.this.expressions[0])})"
    return "count(*)" if isinstance(node.this, exp.Star) else f"count({render(node.this)})"


def _sum(render: Renderer, node: exp.Sum) -> str:
    """DuckDB sums integers in 128 bits."""
    total = f"sum({render(node.this)})"
    return f"CAST({total} AS BIGINT)" if render.type_of(node.this).integral else total


Rule = Callable[[Renderer, Any], str]
RULES: dict[type[exp.Expression], Rule] = {
    exp.Column: lambda render, node: render.column(node),
    exp.Literal: _literal,
    exp.Boolean: lambda render, node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda render, node: "NULL",
    exp.Neg: lambda render, node: f"(- {render(node.this)})",
    exp.Not: lambda render, node: f"(NOT {render(node.this)})",
    exp.Is: lambda render, node: f"({render(node.this)} IS {render(node.expression)})",
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.Cast: _cast,
    exp.Round: _round,
    exp.Floor: _to_integer("floor"),
    exp.Ceil: _to_integer("ceil"),
    exp.Sqrt: _sqrt,
    exp.Ln: _ln,
    exp.Pow: _power,
    exp.Like: _like,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.Substring: _substring,
    exp.Count: _count,
    exp.Sum: _sum,
}
