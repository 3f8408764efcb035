"""The functions of the language: name, arguments, types, and the sqlglot node that each becomes.

What Spark calculates for a node is in spark/expressions.py and spark/aggregates.py, what DuckDB does is in
verify/render.py: the oracle shares nothing with what it checks.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from towpath.schema import Type

LONGEST_CHAIN = 16
Build = Callable[[list[exp.Expression]], exp.Expression]


@dataclass(frozen=True)
class OperandKind:
    """What an operand may be."""

    name: str
    types: frozenset[Type]
    cast: Type | None = None  # the type a hint offers to cast to


@dataclass(frozen=True)
class Signature:
    arguments: tuple[OperandKind, ...]
    result: Type


BOOLEAN = OperandKind("a boolean", frozenset({Type.BOOLEAN}))
NUMBER = OperandKind("a number", frozenset({Type.INT, Type.BIGINT, Type.DOUBLE}), Type.DOUBLE)
INTEGER = OperandKind("an integer", frozenset({Type.INT, Type.BIGINT}), Type.BIGINT)
STRING = OperandKind("a string", frozenset({Type.STRING}), Type.STRING)
TIMESTAMP = OperandKind("a timestamp", frozenset({Type.TIMESTAMP}), Type.TIMESTAMP)
MOMENT = OperandKind("a timestamp or a date", frozenset({Type.TIMESTAMP, Type.DATE}), Type.TIMESTAMP)
ORDERED = OperandKind("a number, string, timestamp or date", frozenset(Type) - {Type.BOOLEAN}, Type.INT)


@dataclass(frozen=True)
class Function:
    node: type[exp.Expression]
    build: Build
    least: int  # number of arguments
    most: int | None  # None: as many as one likes
    signature: Signature | None = None  # None: its type depends on its arguments' types (typing.py has the rule)

    @property
    def arity(self) -> str:
        if self.most is None:
            return f"at least {self.least} arguments"
        if self.least == self.most:
            return f"{self.least} argument{'' if self.least == 1 else 's'}"
        return f"{self.least} to {self.most} arguments"


def _call(kind: type[exp.Expression], *names: str) -> Build:
    return lambda arguments: kind(**dict(zip(names, arguments, strict=False)))


def _listed(kind: type[exp.Expression], **settings: bool) -> Build:
    return lambda arguments: kind(this=arguments[0], expressions=arguments[1:], **settings)


def _if(arguments: list[exp.Expression]) -> exp.Expression:
    otherwise = arguments[2] if len(arguments) > 2 else None
    return case([(arguments[0], arguments[1])], otherwise)


def _concat(arguments: list[exp.Expression]) -> exp.Expression:
    return combined(exp.DPipe, arguments)


def combined(kind: type[exp.Expression], operands: list[exp.Expression]) -> exp.Expression:
    """A chain of an operator that may be grouped in any way; a long one is balanced, since who walks it recurses."""
    if len(operands) <= LONGEST_CHAIN:
        return reduce(lambda left, right: kind(this=left, expression=right), operands)
    middle = len(operands) // 2
    return kind(this=combined(kind, operands[:middle]), expression=combined(kind, operands[middle:]))


def case(branches: Iterable[tuple[exp.Expression, exp.Expression]], default: exp.Expression | None) -> exp.Case:
    """The one form a CASE or if() takes: conditions only, and no ELSE NULL."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=None if isinstance(default, exp.Null) else default)


def _one(node: type[exp.Expression], argument: OperandKind | None = None, result: Type | None = None) -> Function:
    signature = Signature((argument,), result) if argument is not None and result is not None else None
    return Function(node, _call(node, "this"), 1, 1, signature)


def _two(node: type[exp.Expression], signature: Signature | None = None) -> Function:
    return Function(node, _call(node, "this", "expression"), 2, 2, signature)


SCALARS: dict[str, Function] = {
    "abs": _one(exp.Abs),
    "ceil": _one(exp.Ceil, NUMBER, Type.BIGINT),
    "coalesce": Function(exp.Coalesce, _listed(exp.Coalesce), 2, None),
    "concat": Function(exp.DPipe, _concat, 2, None, Signature((STRING, STRING), Type.STRING)),
    "day": _one(exp.Day, MOMENT, Type.INT),
    "exp": _one(exp.Exp, NUMBER, Type.DOUBLE),
    "floor": _one(exp.Floor, NUMBER, Type.BIGINT),
    # Spark and DuckDB agree that NULLs are skipped, sqlglot wants it said.
    "greatest": Function(exp.Greatest, _listed(exp.Greatest, ignore_nulls=True), 2, None),
    "hour": _one(exp.Hour, TIMESTAMP, Type.INT),
    "if": Function(exp.Case, _if, 2, 3),
    "least": Function(exp.Least, _listed(exp.Least, ignore_nulls=True), 2, None),
    "length": _one(exp.Length, STRING, Type.INT),
    "ln": _one(exp.Ln, NUMBER, Type.DOUBLE),
    "lower": _one(exp.Lower, STRING, Type.STRING),
    "minute": _one(exp.Minute, TIMESTAMP, Type.INT),
    "month": _one(exp.Month, MOMENT, Type.INT),
    "nullif": _two(exp.Nullif),
    "power": _two(exp.Pow, Signature((NUMBER, NUMBER), Type.DOUBLE)),
    "round": Function(exp.Round, _call(exp.Round, "this", "decimals"), 1, 2),
    "second": _one(exp.Second, TIMESTAMP, Type.INT),
    "sqrt": _one(exp.Sqrt, NUMBER, Type.DOUBLE),
    "starts_with": _two(exp.StartsWith, Signature((STRING, STRING), Type.BOOLEAN)),
    "substring": Function(
        exp.Substring,
        _call(exp.Substring, "this", "start", "length"),
        2,
        3,
        Signature((STRING, INTEGER, INTEGER), Type.STRING),
    ),
    "trim": _one(exp.Trim, STRING, Type.STRING),
    "upper": _one(exp.Upper, STRING, Type.STRING),
    "year": _one(exp.Year, MOMENT, Type.INT),
}

AGGREGATES: dict[str, Function] = {
    "count": _one(exp.Count),
    "sum": _one(exp.Sum),
    "avg": _one(exp.Avg, NUMBER, Type.DOUBLE),
    "min": _one(exp.Min),
    "max": _one(exp.Max),
    "stddev": _one(exp.StddevSamp, NUMBER, Type.DOUBLE),
    "stddev_samp": _one(exp.StddevSamp, NUMBER, Type.DOUBLE),
}

FUNCTIONS = SCALARS | AGGREGATES
AGGREGATE_NODES = tuple(dict.fromkeys(function.node for function in AGGREGATES.values()))

# Functions whose value changes from call to call.
CHANGING = frozenset(
    {
        *("current_date", "current_time", "current_timestamp", "current_user", "gen_random_uuid", "getdate"),
        *("localtime", "localtimestamp", "monotonically_increasing_id", "newid", "now", "rand", "randn", "random"),
        *("sysdate", "today", "unix_timestamp", "uuid"),
    }
)

_OTHER_AGGREGATES = frozenset(
    {
        *("any_value", "approx_count_distinct", "approx_percentile", "array_agg", "bit_and", "bit_or", "bool_and"),
        *("bool_or", "collect_list", "collect_set", "corr", "covar_pop", "covar_samp", "first", "first_value"),
        *("group_concat", "kurtosis", "last", "last_value", "listagg", "max_by", "median", "min_by", "mode"),
        *("percentile", "percentile_approx", "percentile_cont", "percentile_disc", "quantile", "skewness"),
        *("stddev_pop", "string_agg", "var_pop", "var_samp", "variance"),
    }
)


def refusal(name: str) -> tuple[str, str]:
    """What to answer to a call of a function that is not in the language: message and hint."""
    lower = name.lower()
    if lower in CHANGING:
        return changing(lower)
    aggregates = ", ".join(AGGREGATES)
    if lower in _OTHER_AGGREGATES:
        return f"{name} is not supported; available aggregates are {aggregates}", ""
    guess = did_you_mean(name, [*SCALARS, *AGGREGATES])
    known = f"available are {', '.join(SCALARS)}; and the aggregates {aggregates}"
    return f"the function {name} is not supported", guess or known


def changing(name: str) -> tuple[str, str]:
    return (
        f"{name} gives another value each time, but a query's answer must be the same when its input is replayed",
        "use a column of the stream, such as its event time",
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return f"did you mean {by_lower[close[0]]}?" if close else ""
