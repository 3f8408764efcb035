"""The functions of the language: name, arguments, types, and the sqlglot node that each becomes.

What Spark calculates for a node is in spark/expressions.py and spark/aggregates.py, what DuckDB does is in
verify/render.py: the oracle shares nothing with what it checks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from towpath.lang import formats, json_paths, texts, times
from towpath.lang.aggregates import StringAgg, median, percentile_cont, quantile, string_agg
from towpath.lang.arguments import BadArgument, Build
from towpath.lang.literals import whole_number
from towpath.lang.query import UNITS
from towpath.schema import Type

LONGEST_CHAIN = 16


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


class Log10(exp.Expression, exp.Func):
    """The logarithm to base 10."""


@dataclass(frozen=True)
class Function:
    node: type[exp.Expression]
    build: Build
    least: int  # number of arguments
    most: int | None  # None: as many as one likes
    signature: Signature | None = None  # None: its type depends on its arguments' types (typing.py has the rule)
    names_unit: bool = False  # the first argument is the name of a unit of time
    counts: int = 0  # of an aggregate: the argument without which a tuple does not count
    by_time: bool = False  # of an aggregate: the event time is its last argument

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


def _left(arguments: list[exp.Expression]) -> exp.Expression:
    return exp.Substring(this=arguments[0], start=exp.Literal.number(1), length=arguments[1])


def _present(arguments: list[exp.Expression]) -> exp.Expression:
    """nvl2: the second if the first is there, else the third."""
    is_there = exp.Not(this=exp.Is(this=arguments[0], expression=exp.Null()))
    return case([(is_there, arguments[1])], arguments[2])


def _sha(arguments: list[exp.Expression]) -> exp.Expression:
    return exp.SHA2(this=arguments[0])


def _sha2(arguments: list[exp.Expression]) -> exp.Expression:
    if whole_number(arguments[1]) not in (0, 256):
        raise BadArgument(1, "sha2 is supported with 256 bits", "write sha256(x)")
    return _sha(arguments)


def _located(arguments: list[exp.Expression]) -> exp.Expression:
    return exp.StrPosition(this=arguments[1], substr=arguments[0])


def _part(arguments: list[exp.Expression]) -> exp.Expression:
    return _SCALARS[times.part_name(arguments[0].name)].build(arguments[1:])


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


def _trimmed(position: str) -> Build:
    return lambda arguments: exp.Trim(this=arguments[0], position=position)


TWO_TEXTS = Signature((STRING, STRING), Type.BOOLEAN)
POSITION = Signature((STRING, STRING), Type.INT)
PADDED = Signature((STRING, INTEGER, STRING), Type.STRING)
SUBSTRING = Signature((STRING, INTEGER, INTEGER), Type.STRING)
QUANTILE = Signature((NUMBER, NUMBER), Type.DOUBLE)
FORMATTED = Signature((MOMENT, STRING), Type.STRING)
JSON = Signature((STRING, STRING), Type.STRING)
PART = Signature((STRING, STRING, INTEGER), Type.STRING)

_SCALARS: dict[str, Function] = {
    "abs": _one(exp.Abs),
    "ceil": _one(exp.Ceil, NUMBER, Type.BIGINT),
    "coalesce": Function(exp.Coalesce, _listed(exp.Coalesce), 2, None),
    "concat": Function(exp.DPipe, _concat, 2, None, Signature((STRING, STRING), Type.STRING)),
    "contains": _two(exp.Contains, TWO_TEXTS),
    "date_trunc": Function(exp.TimestampTrunc, times.date_trunc, 2, 2, names_unit=True),
    "day": _one(exp.Day, MOMENT, Type.INT),
    "dayofyear": _one(exp.DayOfYear, MOMENT, Type.INT),
    "ends_with": _two(exp.EndsWith, TWO_TEXTS),
    "exp": _one(exp.Exp, NUMBER, Type.DOUBLE),
    "floor": _one(exp.Floor, NUMBER, Type.BIGINT),
    # Spark and DuckDB agree that NULLs are skipped, sqlglot wants it said.
    "greatest": Function(exp.Greatest, _listed(exp.Greatest, ignore_nulls=True), 2, None),
    "hour": _one(exp.Hour, TIMESTAMP, Type.INT),
    "if": Function(exp.Case, _if, 2, 3),
    "isodow": _one(exp.DayOfWeekIso, MOMENT, Type.INT),
    "json_value": Function(json_paths.JsonValue, json_paths.json_value("json_value"), 2, 2, JSON),
    "least": Function(exp.Least, _listed(exp.Least, ignore_nulls=True), 2, None),
    "length": _one(exp.Length, STRING, Type.INT),
    "ln": _one(exp.Ln, NUMBER, Type.DOUBLE),
    "log10": _one(Log10, NUMBER, Type.DOUBLE),
    "lower": _one(exp.Lower, STRING, Type.STRING),
    "lpad": Function(exp.Pad, texts.padded("lpad"), 2, 3, PADDED),
    "ltrim": Function(exp.Trim, _trimmed("LEADING"), 1, 1, Signature((STRING,), Type.STRING)),
    "md5": _one(exp.MD5, STRING, Type.STRING),
    "minute": _one(exp.Minute, TIMESTAMP, Type.INT),
    "month": _one(exp.Month, MOMENT, Type.INT),
    "nullif": _two(exp.Nullif),
    "power": _two(exp.Pow, Signature((NUMBER, NUMBER), Type.DOUBLE)),
    "quarter": _one(exp.Quarter, MOMENT, Type.INT),
    "regexp_extract": Function(
        exp.RegexpExtract, texts.regexp_extract, 2, 3, Signature((STRING, STRING, INTEGER), Type.STRING)
    ),
    "regexp_like": Function(exp.RegexpLike, texts.regexp_like, 2, 2, TWO_TEXTS),
    "regexp_replace": Function(
        exp.RegexpReplace, texts.regexp_replace, 3, 4, Signature((STRING, STRING, STRING), Type.STRING)
    ),
    "repeat": Function(exp.Repeat, texts.repeat, 2, 2, Signature((STRING, INTEGER), Type.STRING)),
    "replace": Function(exp.Replace, texts.replace, 3, 3, Signature((STRING, STRING, STRING), Type.STRING)),
    "right": _two(exp.Right, Signature((STRING, INTEGER), Type.STRING)),
    "round": Function(exp.Round, _call(exp.Round, "this", "decimals"), 1, 2),
    "rpad": Function(exp.Pad, texts.padded("rpad"), 2, 3, PADDED),
    "rtrim": Function(exp.Trim, _trimmed("TRAILING"), 1, 1, Signature((STRING,), Type.STRING)),
    "second": _one(exp.Second, TIMESTAMP, Type.INT),
    "sha256": Function(exp.SHA2, _sha, 1, 1, Signature((STRING,), Type.STRING)),
    "sign": _one(exp.Sign),
    "split_index": Function(texts.SplitIndex, texts.split_index, 3, 3, PART),
    "split_part": Function(exp.SplitPart, texts.split_part, 3, 3, PART),
    "sqrt": _one(exp.Sqrt, NUMBER, Type.DOUBLE),
    "starts_with": _two(exp.StartsWith, TWO_TEXTS),
    "strftime": Function(exp.TimeToStr, formats.strftime, 2, 2, FORMATTED),
    "strpos": Function(exp.StrPosition, _call(exp.StrPosition, "this", "substr"), 2, 2, POSITION),
    "substring": Function(
        exp.Substring,
        _call(exp.Substring, "this", "start", "length"),
        2,
        3,
        SUBSTRING,
    ),
    "timestamp_micros": Function(exp.TimestampAdd, times.since_epoch(1), 1, 1),
    "timestamp_millis": Function(exp.TimestampAdd, times.since_epoch(UNITS["MILLISECOND"]), 1, 1),
    "timestamp_seconds": Function(exp.TimestampAdd, times.since_epoch(UNITS["SECOND"]), 1, 1),
    "timestampadd": Function(exp.TimestampAdd, times.timestampadd, 3, 3, names_unit=True),
    "timestampdiff": Function(exp.TimestampDiff, times.timestampdiff, 3, 3, names_unit=True),
    "trim": _one(exp.Trim, STRING, Type.STRING),
    "unix_micros": _one(exp.UnixMicros, TIMESTAMP, Type.BIGINT),
    "unix_millis": _one(exp.UnixMillis, TIMESTAMP, Type.BIGINT),
    "unix_seconds": _one(exp.UnixSeconds, TIMESTAMP, Type.BIGINT),
    "upper": _one(exp.Upper, STRING, Type.STRING),
    "week": _one(exp.Week, MOMENT, Type.INT),
    "year": _one(exp.Year, MOMENT, Type.INT),
}

_OTHER_NAMES: dict[str, Function] = {
    "ceiling": _SCALARS["ceil"],
    "char_length": _SCALARS["length"],
    "character_length": _SCALARS["length"],
    "date_format": Function(exp.TimeToStr, formats.date_format, 2, 2, FORMATTED),
    "date_part": Function(exp.Year, _part, 2, 2, names_unit=True),
    "dayofmonth": _SCALARS["day"],
    "epoch_ms": _SCALARS["unix_millis"],
    "epoch_us": _SCALARS["unix_micros"],
    "ifnull": Function(exp.Coalesce, _listed(exp.Coalesce), 2, 2),
    "instr": _SCALARS["strpos"],
    "->>": Function(json_paths.JsonValue, json_paths.arrow, 2, None, JSON),
    "get_json_object": Function(json_paths.JsonValue, json_paths.json_value("get_json_object"), 2, 2, JSON),
    "json_extract_scalar": Function(json_paths.JsonValue, json_paths.json_value("json_extract_scalar"), 2, 2, JSON),
    "json_extract_string": Function(json_paths.JsonValue, json_paths.json_value("json_extract_string"), 2, 2, JSON),
    "left": Function(exp.Substring, _left, 2, 2, SUBSTRING),
    "locate": Function(exp.StrPosition, _located, 2, 2, POSITION),
    "mod": _two(exp.Mod, Signature((INTEGER, INTEGER), Type.BIGINT)),
    "nvl": Function(exp.Coalesce, _listed(exp.Coalesce), 2, 2),
    "nvl2": Function(exp.Case, _present, 3, 3),
    "pow": _SCALARS["power"],
    "sha2": Function(exp.SHA2, _sha2, 2, 2, Signature((STRING,), Type.STRING)),
    "substr": _SCALARS["substring"],
    "to_char": Function(exp.TimeToStr, formats.to_char, 2, 2, FORMATTED),
    "to_timestamp_ltz": Function(exp.TimestampAdd, times.to_timestamp_ltz, 2, 2),
    "unix_timestamp": _SCALARS["unix_seconds"],
    "weekofyear": _SCALARS["week"],
}
SCALARS = _SCALARS | _OTHER_NAMES

_AGGREGATES: dict[str, Function] = {
    "count": _one(exp.Count),
    "sum": _one(exp.Sum),
    "avg": _one(exp.Avg, NUMBER, Type.DOUBLE),
    "min": _one(exp.Min),
    "max": _one(exp.Max),
    "stddev": _one(exp.StddevSamp, NUMBER, Type.DOUBLE),
    "stddev_samp": _one(exp.StddevSamp, NUMBER, Type.DOUBLE),
    "max_by": Function(exp.ArgMax, _call(exp.ArgMax, "this", "expression"), 2, 2, counts=1),
    "min_by": Function(exp.ArgMin, _call(exp.ArgMin, "this", "expression"), 2, 2, counts=1),
    "first": Function(exp.ArgMin, _call(exp.ArgMin, "this", "expression"), 1, 1, counts=1, by_time=True),
    "last": Function(exp.ArgMax, _call(exp.ArgMax, "this", "expression"), 1, 1, counts=1, by_time=True),
    "quantile_cont": Function(exp.Quantile, quantile("quantile_cont"), 2, 2, QUANTILE),
    "median": Function(exp.Quantile, median, 1, 1, QUANTILE),
    "string_agg": Function(StringAgg, string_agg, 2, 2),
}
AGGREGATES = _AGGREGATES | {
    "arg_max": _AGGREGATES["max_by"],
    "arg_min": _AGGREGATES["min_by"],
    "first_value": _AGGREGATES["first"],
    "last_value": _AGGREGATES["last"],
    "listagg": _AGGREGATES["string_agg"],
    "percentile": Function(exp.Quantile, quantile("percentile"), 2, 2, QUANTILE),
    "percentile_cont": Function(exp.Quantile, percentile_cont, 1, 1, QUANTILE, counts=1),
}

FUNCTIONS = SCALARS | AGGREGATES
AGGREGATE_NODES = tuple(dict.fromkeys(function.node for function in AGGREGATES.values()))

# Functions whose value changes from call to call.
CHANGING = frozenset(
    {
        *("current_date", "current_time", "current_timestamp", "current_user", "gen_random_uuid", "getdate"),
        *("localtime", "localtimestamp", "monotonically_increasing_id", "newid", "now", "proctime", "rand", "randn"),
        *("mz_now", "random", "sysdate", "today", "unix_timestamp", "uuid"),
    }
)

_OTHER_AGGREGATES = frozenset(
    {
        *("any_value", "approx_count_distinct", "approx_percentile", "array_agg", "bit_and", "bit_or", "bool_and"),
        *("bool_or", "collect_list", "collect_set", "corr", "covar_pop", "covar_samp", "group_concat", "kurtosis"),
        *("mode", "percentile_approx", "percentile_disc", "quantile_disc", "skewness", "stddev_pop"),
        *("var_pop", "var_samp", "variance"),
    }
)


_WHOLE_UNITS = (
    "systems count different things; timestampdiff(unit, start, end) counts the whole units between two times"
)
_DAYS = "systems number the days differently; isodow(t) is 1 on Mondays and 7 on Sundays"
_JSON = "JSON is no type here; json_value(x, '$.path') and x ->> 'key' give a text, number or boolean in it as a text"
OTHERWISE = {
    **dict.fromkeys(("dayofweek", "weekday", "day_of_week", "dow"), _DAYS),
    **dict.fromkeys(("->", "json_extract", "json_query", "from_json", "parse_json", "json_tuple"), _JSON),
    "json_exists": "whether a path leads to anything is missing; json_value is NULL of objects, lists and null, too",
    "count_char": "write length(x) - length(replace(x, 'c', '')) to count the letter c",
    **dict.fromkeys(("date_diff", "datediff"), _WHOLE_UNITS),
    "from_unixtime": "some systems make a text of it, others a timestamp; timestamp_seconds(n) is the timestamp",
    "log": "systems take different bases; write ln(x) or log10(x)",
    "position": "write position(x IN text)",
    "regexp_matches": "in some systems it is a table; regexp_like(x, 'pattern') says whether there is a match",
    "quantile": "some systems take one of the values, others one between two; quantile_cont(x, p) is between two",
    "reverse": "systems reverse different characters",
    "to_timestamp": "systems read different things; CAST(x AS TIMESTAMP) reads a text, timestamp_seconds(n) a number",
    "to_unixtime": "systems differ in whether it has a fraction; unix_seconds(t) has none",
}
"""What the systems that have these do not agree on, or what says the same."""


def refusal(name: str) -> tuple[str, str]:
    """What to answer to a call of a function that is not in the language: message and hint."""
    lower = name.lower()
    if lower in OTHERWISE:
        return f"the function {name} is not supported", OTHERWISE[lower]
    if lower in CHANGING:
        return changing(lower)
    aggregates = ", ".join(_AGGREGATES)
    if lower in _OTHER_AGGREGATES:
        return f"{name} is not supported; available aggregates are {aggregates}", ""
    guess = did_you_mean(name, [*SCALARS, *AGGREGATES])
    known = f"available are {', '.join(_SCALARS)}; and the aggregates {aggregates}"
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
