"""The functions of the language: their names, how many arguments they take, and the sqlglot node each becomes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

LONGEST_CHAIN = 16
Build = Callable[[list[exp.Expression]], exp.Expression]


@dataclass(frozen=True)
class Function:
    build: Build
    least: int  # number of arguments
    most: int | None  # None: as many as one likes

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


def _one(kind: type[exp.Expression]) -> Function:
    return Function(_call(kind, "this"), 1, 1)


def _two(kind: type[exp.Expression]) -> Function:
    return Function(_call(kind, "this", "expression"), 2, 2)


# Spark and DuckDB agree that NULLs are skipped, sqlglot wants it said.
_least = Function(_listed(exp.Least, ignore_nulls=True), 2, None)
_greatest = Function(_listed(exp.Greatest, ignore_nulls=True), 2, None)

SCALARS: dict[str, Function] = {
    "abs": _one(exp.Abs),
    "ceil": _one(exp.Ceil),
    "coalesce": Function(_listed(exp.Coalesce), 2, None),
    "concat": Function(_concat, 2, None),
    "day": _one(exp.Day),
    "exp": _one(exp.Exp),
    "floor": _one(exp.Floor),
    "greatest": _greatest,
    "hour": _one(exp.Hour),
    "if": Function(_if, 2, 3),
    "least": _least,
    "length": _one(exp.Length),
    "ln": _one(exp.Ln),
    "lower": _one(exp.Lower),
    "minute": _one(exp.Minute),
    "month": _one(exp.Month),
    "nullif": _two(exp.Nullif),
    "power": _two(exp.Pow),
    "round": Function(_call(exp.Round, "this", "decimals"), 1, 2),
    "second": _one(exp.Second),
    "sqrt": _one(exp.Sqrt),
    "starts_with": _two(exp.StartsWith),
    "substring": Function(_call(exp.Substring, "this", "start", "length"), 2, 3),
    "trim": _one(exp.Trim),
    "upper": _one(exp.Upper),
    "year": _one(exp.Year),
}

AGGREGATES: dict[str, Function] = {
    "count": _one(exp.Count),
    "sum": _one(exp.Sum),
    "avg": _one(exp.Avg),
    "min": _one(exp.Min),
    "max": _one(exp.Max),
    "stddev": _one(exp.StddevSamp),
    "stddev_samp": _one(exp.StddevSamp),
}

AGGREGATE_NODES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.StddevSamp)

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
