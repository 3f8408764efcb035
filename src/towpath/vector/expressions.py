"""Expression trees of the language -> Polars expressions.

Nothing here may fail on data, because one row of one query must not stop a carrier that runs thousands: a division by
zero, an overflow and a cast that does not work are NULL. docs/language.md says which values those are.

All integers are calculated as Int64, whatever their type; timestamps are in UTC without saying so.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import polars as pl
from sqlglot import exp

from towpath.lang.decimals import Rescaled, TextOfUnits, UnitsOfDouble, UnitsOfText
from towpath.lang.formats import FORMAT_TOKEN
from towpath.lang.functions import Log10
from towpath.lang.json_paths import JsonValue, steps
from towpath.lang.literals import type_of_name, whole_number
from towpath.lang.regexps import LONGEST_TEXT, regexp
from towpath.lang.texts import SplitIndex
from towpath.lang.times import FIRST_AND_LAST_DAY, FIRST_AND_LAST_US, FIXED
from towpath.plan.constants import constant
from towpath.schema import INTEGERS, Type
from towpath.vector import decimals, json_texts, texts
from towpath.vector.texts import TIMESTAMP

Resolve = Callable[[exp.Expression], pl.Expr | None]
Operation = Callable[[pl.Expr, pl.Expr], pl.Expr]
Rule = Callable[["Compiler", exp.Expression], pl.Expr]

DTYPES: dict[Type, pl.DataType] = {
    Type.BOOLEAN: pl.Boolean(),
    Type.INT: pl.Int64(),
    Type.BIGINT: pl.Int64(),
    Type.DOUBLE: pl.Float64(),
    Type.STRING: pl.String(),
    Type.TIMESTAMP: TIMESTAMP,
    Type.DATE: pl.Date(),
}
# All blanks of Unicode that are no control characters.
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
FURTHEST = 2**31 - 1  # position in a text
CUTS = {
    **{"MICROSECOND": "1us", "MILLISECOND": "1ms", "SECOND": "1s", "MINUTE": "1m", "HOUR": "1h", "DAY": "1d"},
    **{"WEEK": "1w", "MONTH": "1mo", "QUARTER": "1q", "YEAR": "1y"},
}
LITERALS_KEPT = 65_536  # Polars takes longest to make these
# Operations that need a value more than once.
REPEATING = (
    exp.Mod,
    exp.Div,
    exp.Abs,
    exp.Ln,
    exp.Pow,
    exp.Between,
    exp.In,
    exp.Nullif,
    exp.Substring,
    exp.Right,
    exp.Pad,
    exp.SplitPart,
    SplitIndex,
    exp.Repeat,
    exp.StrPosition,
    exp.RegexpLike,
    exp.RegexpExtract,
    exp.RegexpReplace,
    exp.Greatest,
    exp.Cast,
    exp.TimestampAdd,
    exp.TimestampDiff,
)


class NotVectorised(Exception):
    """An expression that cannot be calculated as it is asked for."""


class Compiler:
    """Compiles one expression after another against the same columns.

    `resolve` is asked first at every node: it answers columns, and subexpressions computed before.
    `type_of` gives the type of a node's value.
    """

    def __init__(self, resolve: Resolve, type_of: Callable[[exp.Expression], Type]) -> None:
        self._resolve = resolve
        self.type_of = type_of

    def __call__(self, node: exp.Expression) -> pl.Expr:
        found = self._resolve(node)
        if found is not None:
            return found
        value = constant(node)
        if value is not None:
            return literal(value[0])
        rule = RULES.get(type(node))
        if rule is None:
            raise NotVectorised(f"{type(node).__name__} is not vectorised")
        return rule(self, node)

    def as_(self, node: exp.Expression, type_: Type) -> pl.Expr:
        """A node's value as one of a wider type."""
        if isinstance(node, exp.Null):
            return pl.lit(None, DTYPES[type_])
        value = self(node)
        return value.cast(pl.Float64) if type_ is Type.DOUBLE and self.type_of(node) is not type_ else value

    def alike(self, left: exp.Expression, right: exp.Expression) -> Type:
        """The type in which two values are compared or calculated."""
        types = self.type_of(left), self.type_of(right)
        return Type.DOUBLE if Type.DOUBLE in types else Type.BIGINT if types[0].integral else types[0]

    def let(self, body: Callable[..., pl.Expr], *nodes: exp.Expression, values: list[pl.Expr] | None = None) -> pl.Expr:
        """What `body` makes of values that it needs more than once.

        Writing a value several times is the fastest, but doubles with each level of nesting; from the second level on
        it gets a name, which Polars has in structs alone. `body` uses nothing else: a struct of constants has one row.
        """
        made = [self(n) for n in nodes] if values is None else values
        if not any(constant(node) is None and node.find(*REPEATING) for node in nodes):
            return body(*made)
        names = [f"v{n}" for n in range(len(made))]
        named = pl.struct(*(value.alias(name) for name, value in zip(names, made, strict=True)))
        return named.struct.with_fields(body(*map(pl.field, names)).alias("result")).struct.field("result")


@lru_cache(LITERALS_KEPT, typed=True)
def literal(value: object) -> pl.Expr:
    if isinstance(value, int) and not isinstance(value, bool):
        return pl.lit(value, pl.Int64)
    return pl.lit(plain_value(value), TIMESTAMP if isinstance(value, dt.datetime) else None)


def plain_value(value: object) -> object:
    """A constant as columns hold it."""
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def _call(function: Callable[[pl.Expr], pl.Expr], type_: Type | None = None) -> Rule:
    def rule(compile_: Compiler, node: exp.Expression) -> pl.Expr:
        return function(compile_(node.this) if type_ is None else compile_.as_(node.this, type_))

    return rule


# --- numbers ---------------------------------------------------------------------------------------------------------


def _arithmetic(operation: Operation) -> Rule:
    def rule(compile_: Compiler, node: exp.Expression) -> pl.Expr:
        return arithmetic(compile_, operation, node.this, node.expression)

    return rule


def arithmetic(compile_: Compiler, operation: Operation, left: exp.Expression, right: exp.Expression) -> pl.Expr:
    type_ = compile_.alike(left, right)
    a, b = compile_.as_(left, type_), compile_.as_(right, type_)
    if type_ is Type.DOUBLE or (_small(compile_, left) and _small(compile_, right)):
        return operation(a, b)
    return operation(a.cast(pl.Int128), b.cast(pl.Int128)).cast(pl.Int64, strict=False)


def _small(compile_: Compiler, node: exp.Expression) -> bool:
    """Whether it has 32 bits: of two such numbers nothing is too large for 64."""
    return compile_.type_of(node) is Type.INT


def _divide(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    dividend = compile_.as_(node.this, Type.DOUBLE)
    divisor = compile_.as_(node.expression, Type.DOUBLE)
    if not divisor.meta.root_names():
        # Polars multiplies by the inverse of a single value, which is not the same in the last digit.
        divisor = divisor + pl.int_range(pl.len()) * 0.0
    known = constant(node.expression)
    if known is not None and known[0]:
        return dividend / divisor
    values = [dividend, divisor]
    return compile_.let(lambda a, b: pl.when(b != 0).then(a / b), node.this, node.expression, values=values)


def _modulo(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    """With the sign of the dividend; Polars has that of the divisor."""

    def remainder(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        found = a % b
        return pl.when((found != 0) & ((a < 0) != (b < 0))).then(found - b).otherwise(found)

    return compile_.let(remainder, node.this, node.expression)


def _negative(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    value = whole_number(node)
    if value is not None:
        return pl.lit(value, pl.Int64)
    return arithmetic(compile_, lambda a, b: a - b, exp.Literal.number(0), node.this)


def _absolute(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    type_ = compile_.type_of(node.this)
    if type_ is Type.DOUBLE:
        return compile_(node.this).abs()
    smallest = INTEGERS[type_].start
    return compile_.let(lambda v: pl.when(v != smallest).then(v.abs()), node.this)


def _round(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    decimals = node.args.get("decimals")
    value = compile_(node.this)
    if compile_.type_of(node.this).integral:
        return value
    return texts.rounded(value, 0 if decimals is None else int(decimals.sql()))


def _whole(function: Callable[[pl.Expr], pl.Expr]) -> Rule:
    def rule(compile_: Compiler, node: exp.Expression) -> pl.Expr:
        value = compile_(node.this)
        if compile_.type_of(node.this).integral:
            return value
        return function(value).cast(pl.Int64, strict=False)

    return rule


def _ln(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    values = [compile_.as_(node.this, Type.DOUBLE)]
    return compile_.let(lambda v: pl.when(v > 0).then(v.log()), node.this, values=values)


def _log10(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    def of_batch(values: pl.Series) -> pl.Series:
        # Polars divides two logarithms, and then that of 1000 is less than 3.
        with np.errstate(all="ignore"):
            found = pl.Series(values.name, np.log10(values.fill_null(0.0).to_numpy()))
        return found.set((values <= 0) | values.is_null(), None)

    value = compile_.as_(node.this, Type.DOUBLE)
    return value.map_batches(of_batch, return_dtype=pl.Float64, is_elementwise=True)


def _power(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    nodes = node.this, node.expression
    values = [compile_.as_(n, Type.DOUBLE) for n in nodes]
    return compile_.let(lambda base, exponent: unsigned_zero(base).pow(exponent), *nodes, values=values)


def unsigned_zero(value: pl.Expr) -> pl.Expr:
    """-0.0 and 0.0 are one value, and stay one in what is made of them. (Polars takes an addition of 0.0 away.)"""
    return pl.when(value == 0).then(0.0).otherwise(value)


# --- conditions ------------------------------------------------------------------------------------------------------


def _comparison(operation: Operation) -> Rule:
    return lambda compile_, node: compare(compile_, operation, node.this, node.expression)


def compare(compile_: Compiler, operation: Operation, left: exp.Expression, right: exp.Expression) -> pl.Expr:
    type_ = compile_.alike(left, right)
    return operation(compile_.as_(left, type_), compile_.as_(right, type_))


def _between(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    nodes = node.this, node.args["low"], node.args["high"]
    types = [compile_.alike(node.this, n) for n in nodes[1:]]

    def inside(value: pl.Expr, low: pl.Expr, high: pl.Expr) -> pl.Expr:
        as_low, as_high = (_as(compile_, value, node.this, type_) for type_ in types)
        return (as_low >= low) & (as_high <= high)

    bounds = [compile_.as_(n, type_) for n, type_ in zip(nodes[1:], types, strict=True)]
    return compile_.let(inside, *nodes, values=[compile_(node.this), *bounds])


def _as(compile_: Compiler, value: pl.Expr, node: exp.Expression, type_: Type) -> pl.Expr:
    return value.cast(pl.Float64) if type_ is Type.DOUBLE and compile_.type_of(node) is not type_ else value


def _in(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    """Each is compared by itself: integers as integers, even if there are doubles among the others."""
    known: dict[Type, list[object]] = {}
    calculated = []
    for member in node.expressions:
        if (value := constant(member)) is None:
            calculated.append(member)
        else:
            known.setdefault(compile_.alike(node.this, member), []).append(plain_value(value[0]))

    types = [compile_.alike(node.this, member) for member in calculated]
    values = [compile_(node.this), *map(compile_.as_, calculated, types)]
    # Then the answer is a column of one row, unless Polars is asked for more.
    single = not any(value.meta.root_names() for value in values)

    def found(asked: pl.Expr, *others: pl.Expr) -> pl.Expr:
        terms = [_as(compile_, asked, node.this, t) == other for t, other in zip(types, others, strict=True)]
        for type_, constants in known.items():
            typed = _as(compile_, asked, node.this, type_)
            inside = typed.is_in(pl.Series(constants, dtype=DTYPES[type_], strict=False).implode())
            terms.append(inside.first() if single else inside)
        return reduce(lambda a, b: a | b, terms)

    return compile_.let(found, node.this, *calculated, values=values)


def _like(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    given = constant(node.expression)
    if given is None:
        raise NotVectorised("LIKE with a pattern that is no literal")
    return like(compile_(node.this), str(given[0]))


def like(text: pl.Expr, wanted: str) -> pl.Expr:
    pieces = wanted.split("%")
    if "_" not in wanted and len(pieces) == 1:
        return text == wanted
    if "_" not in wanted and len(pieces) == 2:
        first, last = (pieces[0], pieces[1])
        if not last:
            return text.str.starts_with(first)
        if not first:
            return text.str.ends_with(last)
    if "_" not in wanted and len(pieces) == 3 and not pieces[0] and not pieces[2]:
        return text.str.contains(pieces[1], literal=True)
    # These take time in proportion to the text, whatever the pattern is.
    return text.str.contains(rf"(?s)\A{'.*'.join(map(_exactly, pieces))}\z")


def _exactly(piece: str) -> str:
    return "".join("." if c == "_" else re.escape(c) if c.isascii() else c for c in piece)


def _case(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    type_ = compile_.type_of(node)
    first, *others = ((compile_(b.this), compile_.as_(b.args["true"], type_)) for b in node.args["ifs"])
    chain: Any = pl.when(first[0]).then(first[1])
    for condition, value in others:
        chain = chain.when(condition).then(value)
    default = node.args.get("default")
    return chain.otherwise(pl.lit(None, DTYPES[type_]) if default is None else compile_.as_(default, type_))


def _extreme(function: Callable[..., pl.Expr]) -> Rule:
    def rule(compile_: Compiler, node: exp.Expression) -> pl.Expr:
        type_ = compile_.type_of(node)
        return function([compile_.as_(n, type_) for n in (node.this, *node.expressions)])

    return rule


def _greatest(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    type_, nodes = compile_.type_of(node), (node.this, *node.expressions)
    values = [compile_.as_(n, type_) for n in nodes]
    if type_ is not Type.DOUBLE:
        return pl.max_horizontal(values)

    def largest(*given: pl.Expr) -> pl.Expr:
        # Polars passes over NaN, which is larger than all others.
        some_nan = pl.any_horizontal(*(v.is_nan().fill_null(False) for v in given))
        return pl.when(some_nan).then(pl.lit(float("nan"))).otherwise(pl.max_horizontal(*given))

    return compile_.let(largest, *nodes, values=values)


def _nullif(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    if isinstance(node.expression, exp.Null):
        return compile_(node.this)
    type_ = compile_.alike(node.this, node.expression)
    null = pl.lit(None, DTYPES[compile_.type_of(node.this)])

    def unless(value: pl.Expr, other: pl.Expr) -> pl.Expr:
        return pl.when(_as(compile_, value, node.this, type_) == other).then(null).otherwise(value)

    values = [compile_(node.this), compile_.as_(node.expression, type_)]
    return compile_.let(unless, node.this, node.expression, values=values)


# --- casts, texts, times ---------------------------------------------------------------------------------------------


def _cast(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    target = type_of_name(node.args["to"])
    assert target is not None, f"{node} is a cast to a type of the language"
    if isinstance(node.this, exp.Null):
        return pl.lit(None, DTYPES[target])
    value, source = compile_(node.this), compile_.type_of(node.this)
    if source is target:
        return value
    if source is Type.STRING:
        return compile_.let(lambda v: texts.read(v, target), node.this, values=[value])
    if target is Type.STRING:
        return _written(value, source)
    if target is Type.INT:
        return value.cast(pl.Int32, strict=False).cast(pl.Int64)
    return value.cast(DTYPES[target], strict=False)


def _written(value: pl.Expr, source: Type) -> pl.Expr:
    if source is Type.DOUBLE:
        return texts.of_double(value)
    return texts.of_timestamp(value) if source is Type.TIMESTAMP else value.cast(pl.String)


def _substring(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    start, length, zero = node.args["start"], node.args.get("length"), pl.lit(0, pl.Int64)

    def part(text: pl.Expr, first: pl.Expr, count: pl.Expr) -> pl.Expr:
        first = first.clip(-FURTHEST, FURTHEST)
        from_end = text.str.len_chars().cast(pl.Int64) + first
        begin = pl.when(first > 0).then(first - 1).when(first == 0).then(0).otherwise(from_end)
        end = begin + count.clip(0, FURTHEST)
        begin = pl.max_horizontal(begin, zero)
        return pl.when(first.is_not_null() & count.is_not_null()).then(
            text.str.slice(begin, pl.max_horizontal(end - begin, zero))
        )

    nodes = [node.this, start] if length is None else [node.this, start, length]
    count = pl.lit(FURTHEST, pl.Int64) if length is None else compile_(length)
    return compile_.let(part, *nodes, values=[compile_(node.this), compile_(start), count])


def _right(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    count = compile_(node.expression).clip(0, FURTHEST)

    def end(text: pl.Expr, n: pl.Expr) -> pl.Expr:
        length = text.str.len_chars().cast(pl.Int64)
        return pl.when(n.is_not_null()).then(text.str.slice(pl.max_horizontal(length - n, pl.lit(0, pl.Int64)), None))

    return compile_.let(end, node.this, node.expression, values=[compile_(node.this), count])


def _padded(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    width, fill = int(node.expression.name), node.args["fill_pattern"].name
    filling = pl.lit((fill * width)[:width])

    def padded(text: pl.Expr) -> pl.Expr:
        missing = (width - text.str.len_chars().cast(pl.Int64)).clip(0, width)
        parts = [filling.str.slice(pl.lit(0, pl.Int64), missing), text.str.slice(0, width)]
        return pl.concat_str(parts if node.args["is_left"] else parts[::-1])

    return compile_.let(padded, node.this)


def _split_part(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    number = whole_number(node.args["part_index"]) or 0
    place = number - 1 if number > 0 else number

    def part(text: pl.Expr) -> pl.Expr:
        found = text.str.split(node.args["delimiter"].name).list.get(place, null_on_oob=True)
        return pl.when(text.is_not_null()).then(found.fill_null(""))

    return compile_.let(part, node.this)


def _split_index(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    delimiter, place = node.args["delimiter"].name, int(node.args["part_index"].name)

    def part(text: pl.Expr) -> pl.Expr:
        return pl.when(text != "").then(text.str.split(delimiter).list.get(place, null_on_oob=True))

    return compile_.let(part, node.this)


def _repeat(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    times = int(node.args["times"].name)
    return compile_.let(lambda text: pl.concat_str([text] * times) if times else text.str.slice(0, 0), node.this)


def _replace(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    return compile_(node.this).str.replace_all(node.expression.name, node.args["replacement"].name, literal=True)


def _searched(found: Callable[[pl.Expr, str, exp.Expression], pl.Expr]) -> Rule:
    def rule(compile_: Compiler, node: exp.Expression) -> pl.Expr:
        pattern = regexp(node.expression.name).text
        return compile_.let(
            lambda text: pl.when(text.str.len_chars() <= LONGEST_TEXT).then(found(text, pattern, node)), node.this
        )

    return rule


def _substituted(text: pl.Expr, pattern: str, node: exp.Expression) -> pl.Expr:
    return text.str.replace_all(pattern, node.args["replacement"].name)


def _found(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    """Polars finds bytes; what stands before them is counted in characters."""

    def position(text: pl.Expr, wanted: pl.Expr) -> pl.Expr:
        # A constant has one row, and `splitn` would answer one: it takes the length of what is looked for.
        long = pl.when(wanted.is_not_null()).then(text)
        before = long.str.splitn(wanted, 2).struct.field("field_0")
        at = before.str.len_chars().cast(pl.Int64) + 1
        there = text.str.contains(wanted, literal=True)
        return pl.when(wanted == "").then(there.cast(pl.Int64)).when(there).then(at).when(~there).then(0)

    return compile_.let(position, node.this, node.args["substr"])


def _trim(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    text = compile_(node.this).str
    match node.args.get("position"):
        case "LEADING":
            return text.strip_chars_start(SPACES)
        case "TRAILING":
            return text.strip_chars_end(SPACES)
    return text.strip_chars(SPACES)


def _joined(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    return pl.concat_str([compile_(node.this), compile_(node.expression)])


def _texts(function: Operation) -> Rule:
    return lambda compile_, node: function(compile_(node.this), compile_(node.expression))


def _part(function: Callable[[pl.Expr], pl.Expr]) -> Rule:
    return lambda compile_, node: function(compile_(node.this)).cast(pl.Int64)


def _moved(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    """By microseconds, days or months; NULL outside of the years 1 to 9999."""
    moment, count, unit = compile_(node.this), node.expression, node.args["unit"].name
    is_date = compile_.type_of(node.this) is Type.DATE
    dtype, (first, last) = (pl.Date(), FIRST_AND_LAST_DAY) if is_date else (TIMESTAMP, FIRST_AND_LAST_US)
    if unit == "MONTH":
        number = constant(count)
        assert number is not None, "months are counted by a literal"
        value = moment.dt.offset_by(f"{number[0]}mo").to_physical().cast(pl.Int128)
    else:
        size = FIXED["DAY"] if unit == "DAY" and dtype == TIMESTAMP else 1
        value = moment.to_physical().cast(pl.Int128) + compile_(count).cast(pl.Int128) * size

    def within(found: pl.Expr) -> pl.Expr:
        return pl.when((found >= first) & (found <= last)).then(found).cast(pl.Int64).cast(dtype)

    return compile_.let(within, node.this, values=[value])


def _difference(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    """Polars rounds down where towards zero is meant."""
    size = FIXED[node.args["unit"].name]
    end, start = (compile_(side).cast(TIMESTAMP).to_physical() for side in (node.this, node.expression))

    def whole(value: pl.Expr) -> pl.Expr:
        return pl.when(value < 0).then(-(-value // size)).otherwise(value // size)

    return compile_.let(whole, node.this, node.expression, values=[end - start])


def _formatted(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    chosen = {"%f": "%6f", "%g": "%3f"}
    pattern = "".join(chosen.get(token, token) for token in FORMAT_TOKEN.findall(node.args["format"].name))
    return compile_(node.this).cast(TIMESTAMP).dt.strftime(pattern)


def _cut(compile_: Compiler, node: exp.Expression) -> pl.Expr:
    return compile_(node.this).cast(TIMESTAMP).dt.truncate(CUTS[node.args["unit"].name])


def _since_1970(size: int) -> Rule:
    return lambda compile_, node: compile_(node.this).to_physical() // size


RULES: dict[type[exp.Expression], Rule] = {
    exp.Paren: lambda compile_, node: compile_(node.this),
    exp.Add: _arithmetic(lambda a, b: a + b),
    exp.Sub: _arithmetic(lambda a, b: a - b),
    exp.Mul: _arithmetic(lambda a, b: a * b),
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.Neg: _negative,
    exp.EQ: _comparison(lambda a, b: a == b),
    exp.NEQ: _comparison(lambda a, b: a != b),
    exp.NullSafeEQ: _comparison(lambda a, b: a.eq_missing(b)),
    exp.LT: _comparison(lambda a, b: a < b),
    exp.LTE: _comparison(lambda a, b: a <= b),
    exp.GT: _comparison(lambda a, b: a > b),
    exp.GTE: _comparison(lambda a, b: a >= b),
    exp.And: lambda compile_, node: compile_(node.this) & compile_(node.expression),
    exp.Or: lambda compile_, node: compile_(node.this) | compile_(node.expression),
    exp.Not: lambda compile_, node: ~compile_(node.this),
    exp.Is: lambda compile_, node: compile_(node.this).is_null(),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Abs: _absolute,
    exp.Round: _round,
    exp.Floor: _whole(lambda v: v.floor()),
    exp.Ceil: _whole(lambda v: v.ceil()),
    exp.Sign: _call(lambda v: v.sign()),
    Log10: _log10,
    exp.Sqrt: _call(lambda v: v.sqrt(), Type.DOUBLE),
    exp.Ln: _ln,
    exp.Exp: _call(lambda v: v.exp(), Type.DOUBLE),
    exp.Pow: _power,
    exp.Least: _extreme(pl.min_horizontal),
    exp.Greatest: _greatest,
    exp.Coalesce: _extreme(pl.coalesce),
    exp.Nullif: _nullif,
    exp.Lower: _call(lambda v: v.str.to_lowercase()),
    exp.Upper: _call(lambda v: v.str.to_uppercase()),
    exp.Trim: _trim,
    exp.Length: _part(lambda v: v.str.len_chars()),
    exp.Substring: _substring,
    exp.DPipe: _joined,
    exp.StartsWith: _texts(lambda a, b: a.str.starts_with(b)),
    exp.EndsWith: _texts(lambda a, b: a.str.ends_with(b)),
    exp.Contains: _texts(lambda a, b: a.str.contains(b, literal=True)),
    exp.Right: _right,
    exp.Pad: _padded,
    exp.SplitPart: _split_part,
    Rescaled: lambda compile_, node: decimals.rescaled(compile_(node.this), node),
    UnitsOfText: lambda compile_, node: decimals.of_text(compile_(node.this), node),
    UnitsOfDouble: lambda compile_, node: decimals.of_double(compile_(node.this).cast(pl.Float64), node),
    TextOfUnits: lambda compile_, node: decimals.as_text(compile_(node.this), node),
    JsonValue: lambda compile_, node: json_texts.value(compile_(node.this), steps(node.args["path"].name)),
    SplitIndex: _split_index,
    exp.Repeat: _repeat,
    exp.Replace: _replace,
    exp.RegexpLike: _searched(lambda text, pattern, _: text.str.contains(pattern)),
    exp.RegexpExtract: _searched(lambda text, pattern, node: text.str.extract(pattern, int(node.args["group"].name))),
    exp.RegexpReplace: _searched(_substituted),
    exp.StrPosition: _found,
    exp.MD5: _call(texts.md5),
    exp.SHA2: _call(texts.sha256),
    exp.TimestampAdd: _moved,
    exp.TimestampDiff: _difference,
    exp.TimestampTrunc: _cut,
    exp.TimeToStr: _formatted,
    exp.UnixMicros: _since_1970(1),
    exp.UnixMillis: _since_1970(FIXED["MILLISECOND"]),
    exp.UnixSeconds: _since_1970(FIXED["SECOND"]),
    exp.Year: _part(lambda v: v.dt.year()),
    exp.Month: _part(lambda v: v.dt.month()),
    exp.Quarter: _part(lambda v: v.dt.quarter()),
    exp.Week: _part(lambda v: v.dt.week()),
    exp.Day: _part(lambda v: v.dt.day()),
    exp.DayOfYear: _part(lambda v: v.dt.ordinal_day()),
    exp.DayOfWeekIso: _part(lambda v: v.dt.weekday()),
    exp.Hour: _part(lambda v: v.dt.hour()),
    exp.Minute: _part(lambda v: v.dt.minute()),
    exp.Second: _part(lambda v: v.dt.second()),
}
