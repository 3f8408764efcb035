"""Expression trees of the language -> Spark columns.

No SQL text is involved: nothing a user wrote is ever parsed by Spark. Nothing here may fail on data, because one row of
one query must not stop a carrier that runs thousands: a division by zero, an overflow and a cast that does not work are
NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

from towpath.lang.like import pattern

Resolve = Callable[[exp.Expression], Column | None]
Operation = Callable[[Column, Column], Column]

CASTS = {
    exp.DataType.Type.BOOLEAN: "boolean",
    exp.DataType.Type.INT: "int",
    exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.VARCHAR: "string",
    exp.DataType.Type.TEXT: "string",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.DATE: "date",
}


class Compiler:
    """Compiles one expression after another against the same columns.

    `resolve` is asked first at every node: it answers columns, parameters, and subexpressions computed before.
    `integral` tells whether a node's value is an integer, since integers are calculated as BIGINT.
    """

    def __init__(self, resolve: Resolve, integral: Callable[[exp.Expression], bool]) -> None:
        self._resolve = resolve
        self._integral = integral

    def __call__(self, node: exp.Expression) -> Column:
        found = self._resolve(node)
        if found is not None:
            return found
        return RULES[type(node)](self, node)

    def arithmetic(self, node: exp.Expression, exact: Operation, inexact: Operation) -> Column:
        left, right = self(node.this), self(node.expression)
        if self._integral(node.this) and self._integral(node.expression):
            return exact(left.cast("bigint"), right.cast("bigint"))
        return inexact(left.cast("double"), right.cast("double"))

    def all(self, nodes: list[exp.Expression]) -> list[Column]:
        return [self(n) for n in nodes]


def _binary(operation: Operation) -> Callable[[Compiler, exp.Expression], Column]:
    return lambda compile_, node: operation(compile_(node.this), compile_(node.expression))


def _call(function: Callable[..., Column]) -> Callable[[Compiler, exp.Expression], Column]:
    return lambda compile_, node: function(compile_(node.this))


def _literal(compile_: Compiler, node: exp.Expression) -> Column:
    if node.is_string:
        return F.lit(node.this)
    return F.lit(int(node.this)).cast("bigint") if node.is_int else F.lit(float(node.this))


def _cast(compile_: Compiler, node: exp.Expression) -> Column:
    return compile_(node.this).try_cast(CASTS[node.args["to"].this])


def _case(compile_: Compiler, node: exp.Expression) -> Column:
    # One CASE, not one inside the other: Spark has no room for hundreds of levels.
    first, *others = ((compile_(branch.this), compile_(branch.args["true"])) for branch in node.args["ifs"])
    result = F.when(*first)
    for condition, value in others:
        result = result.when(condition, value)
    default = node.args.get("default")
    return result if default is None else result.otherwise(compile_(default))


def _if(compile_: Compiler, node: exp.Expression) -> Column:
    otherwise = node.args.get("false")
    return F.when(compile_(node.this), compile_(node.args["true"])).otherwise(
        F.lit(None) if otherwise is None else compile_(otherwise)
    )


def _in(compile_: Compiler, node: exp.Expression) -> Column:
    return compile_(node.this).isin(compile_.all(node.expressions))


def _like(compile_: Compiler, node: exp.Expression) -> Column:
    """A constant of the assignment table is a regular expression already (plan/assignment.py)."""
    given = node.expression
    regexp = F.lit(pattern(given.this)) if isinstance(given, exp.Literal) else compile_(given)
    return F.rlike(compile_(node.this), regexp)


def _substring(compile_: Compiler, node: exp.Expression) -> Column:
    length = node.args.get("length")
    length_column = F.lit(2**31 - 1) if length is None else compile_(length).cast("int")
    return F.substring(compile_(node.this), compile_(node.args["start"]).cast("int"), length_column)


def _round(compile_: Compiler, node: exp.Expression) -> Column:
    decimals = node.args.get("decimals")
    value = compile_(node.this)
    # The digits are part of the shape (a plain literal), possibly negative.
    return F.round(value, 0 if decimals is None else int(decimals.sql()))


def _divide(compile_: Compiler, node: exp.Expression) -> Column:
    return F.try_divide(compile_(node.this).cast("double"), compile_(node.expression).cast("double"))


def _between(compile_: Compiler, node: exp.Expression) -> Column:
    return compile_(node.this).between(compile_(node.args["low"]), compile_(node.args["high"]))


def _modulo(compile_: Compiler, node: exp.Expression) -> Column:
    return compile_.arithmetic(node, F.try_mod, F.try_mod)


def _negative(compile_: Compiler, node: exp.Expression) -> Column:
    zero = exp.Literal.number(0)
    return compile_.arithmetic(exp.Sub(this=zero, expression=node.this.copy()), F.try_subtract, lambda a, b: a - b)


def _absolute(compile_: Compiler, node: exp.Expression) -> Column:
    value = compile_(node.this)
    return F.abs(value.cast("bigint")) if compile_._integral(node.this) else F.abs(value)


def _part(function: Callable[[Column], Column]) -> Callable[[Compiler, exp.Expression], Column]:
    return lambda compile_, node: function(compile_(node.this)).cast("bigint")


def _extreme(function: Callable[..., Column]) -> Callable[[Compiler, exp.Expression], Column]:
    return lambda compile_, node: function(*compile_.all([node.this, *node.expressions]))


RULES: dict[type[exp.Expression], Callable[[Compiler, exp.Expression], Column]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda _, node: F.lit(bool(node.this)),
    exp.Null: lambda _, node: F.lit(None),
    exp.Paren: lambda compile_, node: compile_(node.this),
    exp.Add: lambda compile_, node: compile_.arithmetic(node, F.try_add, lambda a, b: a + b),
    exp.Sub: lambda compile_, node: compile_.arithmetic(node, F.try_subtract, lambda a, b: a - b),
    exp.Mul: lambda compile_, node: compile_.arithmetic(node, F.try_multiply, lambda a, b: a * b),
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.Neg: _negative,
    exp.EQ: _binary(lambda a, b: a == b),
    exp.NEQ: _binary(lambda a, b: a != b),
    exp.LT: _binary(lambda a, b: a < b),
    exp.LTE: _binary(lambda a, b: a <= b),
    exp.GT: _binary(lambda a, b: a > b),
    exp.GTE: _binary(lambda a, b: a >= b),
    exp.And: _binary(lambda a, b: a & b),
    exp.Or: _binary(lambda a, b: a | b),
    exp.Not: lambda compile_, node: ~compile_(node.this),
    exp.Is: lambda compile_, node: compile_(node.this).isNull(),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.Abs: _absolute,
    exp.Round: _round,
    exp.Floor: _part(F.floor),
    exp.Ceil: _part(F.ceil),
    exp.Sqrt: _call(F.sqrt),
    exp.Ln: _call(F.ln),
    exp.Exp: _call(F.exp),
    exp.Pow: _binary(F.pow),
    exp.Least: _extreme(F.least),
    exp.Greatest: _extreme(F.greatest),
    exp.Coalesce: _extreme(F.coalesce),
    exp.Nullif: _binary(F.nullif),
    exp.Lower: _call(F.lower),
    exp.Upper: _call(F.upper),
    exp.Trim: _call(F.trim),
    exp.Length: _part(F.length),
    exp.Substring: _substring,
    exp.DPipe: _binary(F.concat),
    exp.StartsWith: _binary(F.startswith),
    exp.Year: _part(F.year),
    exp.Month: _part(F.month),
    exp.Day: _part(F.dayofmonth),
    exp.Hour: _part(F.hour),
    exp.Minute: _part(F.minute),
    exp.Second: _part(F.second),
}
