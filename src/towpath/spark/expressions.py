"""Expression trees of the language -> Spark columns.

No SQL text is involved: nothing a user wrote is ever parsed by Spark. Nothing here may fail on data, because one row of
one query must not stop a carrier that runs thousands: a division by zero, an overflow and a cast that does not work are
NULL. docs/language.md says which values those are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

from towpath.lang import infer
from towpath.lang.decimals import Rescaled, TextOfUnits, UnitsOfDouble, UnitsOfText
from towpath.lang.formats import FORMAT_TOKEN
from towpath.lang.functions import Log10
from towpath.lang.json_paths import LONGEST_JSON, JsonValue, steps
from towpath.lang.like import pattern
from towpath.lang.literals import type_of_name, whole_number
from towpath.lang.regexps import LONGEST_TEXT, Regexp, regexp
from towpath.lang.texts import SplitIndex
from towpath.lang.times import FIRST_AND_LAST_DAY, FIRST_AND_LAST_US, FIXED
from towpath.plan.assignment import input_column
from towpath.schema import Type

Resolve = Callable[[exp.Expression], Column | None]
Operation = Callable[[Column, Column], Column]
Operation1 = Callable[[Column], Column]

# What a text must look like to be cast; the group is what Spark then reads. It would accept more: a time without a date
# is one of today, 1d is a number.
_BLANKS = r"[ \t\n\r\f\x0B]*"
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE = f"{_YEAR}-[0-9]{{1,2}}-[0-9]{{1,2}}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
_OFFSET = "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
TEXTS = {
    "boolean": "(?i:true|t|yes|y|1|false|f|no|n|0)",
    "int": "[+-]?[0-9]+",
    "bigint": "[+-]?[0-9]+",
    "double": r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity))|(?i:nan)",
    "timestamp": f"{_DATE}(?:[ T]{_CLOCK}{_OFFSET})?",
    "date": _DATE,
}
DECIMAL_TEXT = r"[+-]?(?:[0-9]{1,100}\.?[0-9]{0,100}|\.[0-9]{1,100})"
# All blanks of Unicode that are no control characters.
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
FURTHEST = 2**31 - 1  # position in a text
BIGINT_BOUNDS = (-(2.0**63), 2.0**63)  # the second is the first double that is too large
# What Java writes for a part of a pattern.
FORMATS = {
    **{"%Y": "yyyy", "%y": "yy", "%m": "MM", "%-m": "M", "%b": "MMM", "%B": "MMMM", "%d": "dd", "%-d": "d"},
    **{"%j": "DDD", "%-j": "D", "%H": "HH", "%-H": "H", "%I": "hh", "%-I": "h", "%M": "mm", "%-M": "m"},
    **{"%S": "ss", "%-S": "s", "%g": "SSS", "%f": "SSSSSS", "%p": "a", "%a": "EEE", "%A": "EEEE", "%%": "'%'"},
}
# Operations that need a value more than once.
REPEATING = (
    *(exp.Floor, exp.Ceil, exp.Pow, exp.Between, exp.In, exp.Nullif, exp.Substring, exp.TimestampAdd),
    *(Rescaled, SplitIndex, JsonValue, exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace),
)


class SparkCompiler:
    """Compiles one expression after another against the same columns.

    `resolve` is asked first at every node: it answers columns, parameters, and subexpressions computed before.
    `type_of` gives the type of a node's value; integers are calculated as BIGINT.
    """

    def __init__(self, resolve: Resolve, type_of: Callable[[exp.Expression], Type]) -> None:
        self._resolve = resolve
        self.type_of = type_of

    def __call__(self, node: exp.Expression) -> Column:
        found = self._resolve(node)
        if found is not None:
            return found
        return RULES[type(node)](self, node)

    def arithmetic(self, node: exp.Expression, exact: Operation, inexact: Operation) -> Column:
        left, right = self(node.this), self(node.expression)
        if self.type_of(node.this).integral and self.type_of(node.expression).integral:
            return exact(left.cast("bigint"), right.cast("bigint"))
        return inexact(left.cast("double"), right.cast("double"))

    def let(self, node: exp.Expression, body: Operation1, value: Column | None = None) -> Column:
        """What `body` makes of a value that it needs more than once.

        Writing the value several times is the fastest, but doubles with each level of nesting; from the second level on
        it gets a name, which Spark has in functions of arrays alone.
        """
        value = self(node) if value is None else value
        if not node.find(*REPEATING):
            return body(value)
        return F.get(F.transform(F.array(value), body), F.lit(0))

    def all(self, nodes: list[exp.Expression]) -> list[Column]:
        return [self(n) for n in nodes]


def value_of_row(expr: exp.Expression, alias: str, types: Mapping[str, Type]) -> Column:
    """An expression over the columns of an input's tuple, whatever table they are written with."""

    def resolve(node: exp.Expression) -> Column | None:
        return F.col(input_column(alias, node.name)) if isinstance(node, exp.Column) else None

    return SparkCompiler(resolve, lambda node: infer(node, lambda _, name: types[name]))(expr)


def _binary(operation: Operation) -> Callable[[SparkCompiler, exp.Expression], Column]:
    return lambda compile_, node: operation(compile_(node.this), compile_(node.expression))


def _call(function: Callable[..., Column]) -> Callable[[SparkCompiler, exp.Expression], Column]:
    return lambda compile_, node: function(compile_(node.this))


def _literal(compile_: SparkCompiler, node: exp.Expression) -> Column:
    if node.is_string:
        return F.lit(node.this)
    return F.lit(int(node.this)).cast("bigint") if node.is_int else F.lit(float(node.this))


def _cast(compile_: SparkCompiler, node: exp.Expression) -> Column:
    type_ = type_of_name(node.args["to"])
    assert type_ is not None, f"{node} is a cast to a type of the language"
    value, target = compile_(node.this), type_.value
    source = None if isinstance(node.this, exp.Null) else compile_.type_of(node.this)
    if source is Type.STRING and target in TEXTS:
        text = rf"\A{_BLANKS}({TEXTS[target]}){_BLANKS}\z"
        return F.regexp_extract(value, text, 1).try_cast(target)
    if source is Type.DOUBLE and target == "bigint":
        # Spark makes 2^63 the largest BIGINT, which no other double becomes.
        return F.try_subtract(F.try_add(value.try_cast("bigint"), F.lit(1)), F.lit(1))
    if source is Type.DOUBLE and target == "string":
        return _unsigned_zero(value).cast("string")
    return value.try_cast(target)


def _unsigned_zero(value: Column) -> Column:
    """-0.0 and 0.0 are one value, and stay one in what is made of them."""
    return value + F.lit(0.0)


def _case(compile_: SparkCompiler, node: exp.Expression) -> Column:
    # One CASE, not one inside the other: Spark has no room for hundreds of levels.
    first, *others = ((compile_(branch.this), compile_(branch.args["true"])) for branch in node.args["ifs"])
    result = F.when(*first)
    for condition, value in others:
        result = result.when(condition, value)
    default = node.args.get("default")
    return result if default is None else result.otherwise(compile_(default))


def _if(compile_: SparkCompiler, node: exp.Expression) -> Column:
    otherwise = node.args.get("false")
    return F.when(compile_(node.this), compile_(node.args["true"])).otherwise(
        F.lit(None) if otherwise is None else compile_(otherwise)
    )


def _in(compile_: SparkCompiler, node: exp.Expression) -> Column:
    members = [(compile_(m), compile_.type_of(m) is Type.DOUBLE) for m in node.expressions]
    kinds = [[m for m, double in members if double is kind] for kind in (False, True)]
    if not all(kinds):
        return compile_(node.this).isin([m for m, _ in members])
    # Each is compared by itself: Spark would make doubles of all of them.
    return compile_.let(node.this, lambda value: value.isin(kinds[0]) | value.isin(kinds[1]))


def _like(compile_: SparkCompiler, node: exp.Expression) -> Column:
    """A constant of the assignment table is a regular expression already (plan/assignment.py)."""
    given = node.expression
    regexp = F.lit(pattern(given.this)) if isinstance(given, exp.Literal) else compile_(given)
    return F.rlike(compile_(node.this), regexp)


def _substring(compile_: SparkCompiler, node: exp.Expression) -> Column:
    length = node.args.get("length")
    length_column = F.lit(FURTHEST) if length is None else compile_.let(length, _position)
    return F.substring(compile_(node.this), compile_.let(node.args["start"], _position), length_column)


def _position(value: Column) -> Column:
    """The nearest that can be a position."""
    end = F.lit(FURTHEST)
    return F.when(value > end, end).when(value < -end, -end).otherwise(value).cast("int")


def _round(compile_: SparkCompiler, node: exp.Expression) -> Column:
    decimals = node.args.get("decimals")
    value = compile_(node.this)
    # The digits are part of the shape (a plain literal), possibly negative.
    return F.round(value, 0 if decimals is None else int(decimals.sql()))


def _divide(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return F.try_divide(compile_(node.this).cast("double"), compile_(node.expression).cast("double"))


def _between(compile_: SparkCompiler, node: exp.Expression) -> Column:
    low, high = compile_(node.args["low"]), compile_(node.args["high"])
    return compile_.let(node.this, lambda value: (value >= low) & (value <= high))


def _nullif(compile_: SparkCompiler, node: exp.Expression) -> Column:
    other = compile_(node.expression)
    return compile_.let(node.this, lambda value: F.when(value == other, F.lit(None)).otherwise(value))


def _sign(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return F.signum(compile_(node.this)).cast(compile_.type_of(node.this).value)


def _log10(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return F.log10(compile_(node.this))


def _right(compile_: SparkCompiler, node: exp.Expression) -> Column:
    def end(text: Column) -> Callable[[Column], Column]:
        # Of 0 characters and less nothing is left, and NULL of NULL.
        return lambda n: F.substring(text, -n, F.when(n <= 0, F.lit(0)).otherwise(n))

    nearest = compile_.let(node.expression, _position)
    return F.get(F.transform(F.array(nearest), end(compile_(node.this))), F.lit(0))


def _padded(compile_: SparkCompiler, node: exp.Expression) -> Column:
    function = F.lpad if node.args["is_left"] else F.rpad
    return function(compile_(node.this), int(node.expression.name), node.args["fill_pattern"].name)


def _split_part(compile_: SparkCompiler, node: exp.Expression) -> Column:
    delimiter, place = F.lit(node.args["delimiter"].name), whole_number(node.args["part_index"])
    return F.split_part(compile_(node.this), delimiter, F.lit(place))


def _split_index(compile_: SparkCompiler, node: exp.Expression) -> Column:
    delimiter, place = re.escape(node.args["delimiter"].name), int(node.args["part_index"].name)

    def part(text: Column) -> Column:
        return F.when(text != F.lit(""), F.get(F.split(text, delimiter, -1), F.lit(place)))

    return compile_.let(node.this, part)


def _repeat(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return F.repeat(compile_(node.this), int(node.args["times"].name))


def _replace(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return F.replace(compile_(node.this), F.lit(node.expression.name), F.lit(node.args["replacement"].name))


def _rescaled(compile_: SparkCompiler, node: exp.Expression) -> Column:
    more, digits = node.args["places"] - node.args["scale"], node.args["digits"]

    def bounded(units: Column) -> Column:
        return F.when(F.abs(units) < F.lit(10**digits), units) if digits else units

    def made(units: Column) -> Column:
        if more >= 0:
            return F.try_multiply(units, F.lit(10**more).cast("bigint"))
        size = F.lit(10**-more).cast("bigint")
        whole, rest = F.call_function("div", units, size), F.try_mod(units, size)
        up = F.lit(False) if node.args["cut"] else F.abs(rest) >= size - F.abs(rest)
        return whole + F.when(up, F.when(units < 0, -1).otherwise(1)).otherwise(0)

    value = compile_(node.this).cast("bigint")
    rescaled = compile_.let(node.this, made, value)
    return F.get(F.transform(F.array(rescaled), bounded), F.lit(0)) if digits else rescaled


def _units_of_text(compile_: SparkCompiler, node: exp.Expression) -> Column:
    text = F.regexp_extract(compile_(node.this), rf"\A{_BLANKS}({DECIMAL_TEXT}){_BLANKS}\z", 1)
    return _units(text, node)


def _units_of_double(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return _units(compile_(node.this).cast("double"), node)


def _units(value: Column, node: exp.Expression) -> Column:
    digits, places = node.args["digits"], node.args["places"]
    number = value.try_cast(f"decimal({digits},{places})")
    return (number * F.lit(10**places).cast("decimal(19,0)")).cast("bigint")


def _text_of_units(compile_: SparkCompiler, node: exp.Expression) -> Column:
    scale = node.args["scale"]
    if not scale:
        return compile_(node.this).cast("string")

    def text(units: Column) -> Column:
        # Not of a decimal of Spark's, which it writes with an exponent if it is small.
        digits = F.replace(units.cast("string"), F.lit("-"), F.lit(""))
        filled = F.when(F.length(digits) > scale, digits).otherwise(F.lpad(digits, scale + 1, "0"))
        front = F.substring(filled, F.lit(1), F.length(filled) - scale)
        return F.concat(F.when(units < 0, "-").otherwise(""), front, F.lit("."), F.right(filled, F.lit(scale)))

    return F.get(F.transform(F.array(compile_(node.this).cast("bigint")), text), F.lit(0))


def _json_value(compile_: SparkCompiler, node: exp.Expression) -> Column:
    """Variants, because they are strict: `get_json_object` reads what is no JSON, and the first of two equal keys."""
    path = "$[0]" + "".join(f"[{s}]" if isinstance(s, int) else f"['{s}']" for s in steps(node.args["path"].name))

    def value(text: Column) -> Column:
        # It stops behind the first value. What is whole within a list and within an object has nothing behind it.
        short = F.when(F.length(text) <= LONGEST_JSON, text)
        within_list = F.try_parse_json(F.concat(F.lit("["), short, F.lit("]")))
        within_object = F.try_parse_json(F.concat(F.lit('{"":'), short, F.lit("}")))
        found = F.try_variant_get(F.when(within_object.isNotNull(), within_list), path, "variant")
        kind = F.schema_of_variant(found)
        number = _unsigned_zero(F.try_variant_get(found, "$", "double")).cast("string")
        plain = F.when(kind.isin("STRING", "BIGINT", "BOOLEAN"), F.try_variant_get(found, "$", "string"))
        return plain.when((kind == "DOUBLE") | kind.startswith("DECIMAL"), number)

    return compile_.let(node.this, value)


def _trim(compile_: SparkCompiler, node: exp.Expression) -> Column:
    functions = {None: F.trim, "LEADING": F.ltrim, "TRAILING": F.rtrim}
    return functions[node.args.get("position")](compile_(node.this), F.lit(SPACES))


def _searched(found: Callable[[Column, Regexp, exp.Expression], Column]) -> Callable[..., Column]:
    """Java takes up to the square of a text's length."""

    def rule(compile_: SparkCompiler, node: exp.Expression) -> Column:
        pattern = regexp(node.expression.name)
        return compile_.let(node.this, lambda text: F.when(F.length(text) <= LONGEST_TEXT, found(text, pattern, node)))

    return rule


def _extracted(text: Column, pattern: Regexp, node: exp.Expression) -> Column:
    group = F.regexp_extract(text, pattern.first, int(node.args["group"].name))
    return F.when(F.rlike(text, F.lit(pattern.first)), group)


def _substituted(text: Column, pattern: Regexp, node: exp.Expression) -> Column:
    return F.regexp_replace(text, F.lit(pattern.text), F.lit(node.args["replacement"].name))


def _found(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return F.instr(compile_(node.this), compile_(node.args["substr"])).cast("bigint")


def _power(compile_: SparkCompiler, node: exp.Expression) -> Column:
    one = F.lit(1.0)

    def power(base: Column, exponent: Column) -> Column:
        # IEEE 754 has these two; Java has NaN.
        always = (base == one) & exponent.isNotNull()
        return F.when(always | ((base == -one) & (F.abs(exponent) == F.lit(math.inf))), one).otherwise(
            F.pow(_unsigned_zero(base), exponent)
        )

    def raised(base: Column) -> Column:
        return compile_.let(node.expression, lambda exponent: power(base.cast("double"), exponent.cast("double")))

    return compile_.let(node.this, raised)


def _modulo(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return compile_.arithmetic(node, F.try_mod, F.try_mod)


def _negative(compile_: SparkCompiler, node: exp.Expression) -> Column:
    value = whole_number(node)
    if value is not None:
        return F.lit(value).cast("bigint")
    zero = exp.Literal.number(0)
    return compile_.arithmetic(exp.Sub(this=zero, expression=node.this.copy()), F.try_subtract, lambda a, b: a - b)


def _absolute(compile_: SparkCompiler, node: exp.Expression) -> Column:
    value, type_ = compile_(node.this), compile_.type_of(node.this)
    if type_ is Type.DOUBLE:
        return F.abs(value)
    absolute = F.abs(value.cast("bigint"))
    # Spark leaves the smallest BIGINT negative.
    return absolute.try_cast("int") if type_ is Type.INT else F.try_add(F.try_subtract(absolute, F.lit(1)), F.lit(1))


def _whole(function: Operation1) -> Callable[[SparkCompiler, exp.Expression], Column]:
    low, high = BIGINT_BOUNDS

    def rule(compile_: SparkCompiler, node: exp.Expression) -> Column:
        if compile_.type_of(node.this).integral:
            return compile_(node.this).cast("bigint")
        # Spark makes 0 of NaN and the next BIGINT of what is none.
        return compile_.let(node.this, lambda v: F.when((v >= F.lit(low)) & (v < F.lit(high)), function(v)))

    return rule


def _moved(compile_: SparkCompiler, node: exp.Expression) -> Column:
    """By microseconds, days or months; NULL outside of the years 1 to 9999."""
    moment, count, unit = node.this, compile_(node.expression).cast("bigint"), node.args["unit"].name
    is_date, value = compile_.type_of(moment) is Type.DATE, compile_(moment)
    if unit == "MONTH":
        days = F.unix_date(F.add_months(value.cast("date"), count.cast("int"))).cast("bigint")
    else:
        days = F.try_add(F.unix_date(value.cast("date")).cast("bigint"), count)
    if is_date:
        return compile_.let(moment, lambda v: F.date_from_unix_date(_within(FIRST_AND_LAST_DAY, v).cast("int")), days)
    micros, a_day = F.unix_micros(value), F.lit(FIXED["DAY"])
    if unit == "MONTH":
        micros = days * a_day + F.pmod(micros, a_day)
    else:
        micros = F.try_add(micros, F.try_multiply(count, a_day) if unit == "DAY" else count)
    return compile_.let(moment, lambda v: F.timestamp_micros(_within(FIRST_AND_LAST_US, v)), micros)


def _within(bounds: tuple[int, int], value: Column) -> Column:
    return F.when((value >= F.lit(bounds[0])) & (value <= F.lit(bounds[1])), value)


def _difference(compile_: SparkCompiler, node: exp.Expression) -> Column:
    end, start = (F.unix_micros(compile_(side).cast("timestamp")) for side in (node.this, node.expression))
    return F.call_function("div", end - start, F.lit(FIXED[node.args["unit"].name]).cast("bigint"))


def _formatted(compile_: SparkCompiler, node: exp.Expression) -> Column:
    """One pattern after another where the same letter follows: MM and MM would be MMMM."""
    patterns = [""]
    for token in FORMAT_TOKEN.findall(node.args["format"].name):
        part = FORMATS.get(token) or "'" + token.replace("'", "''") + "'"
        if patterns[-1][-1:] == part[0]:
            patterns.append("")
        patterns[-1] += part
    moment = compile_(node.this).cast("timestamp")
    return F.concat(*(F.date_format(moment, pattern) for pattern in patterns))


def _cut(compile_: SparkCompiler, node: exp.Expression) -> Column:
    return F.date_trunc(node.args["unit"].name, compile_(node.this).cast("timestamp"))


def _part(function: Callable[[Column], Column]) -> Callable[[SparkCompiler, exp.Expression], Column]:
    return lambda compile_, node: function(compile_(node.this)).cast("bigint")


def _extreme(function: Callable[..., Column]) -> Callable[[SparkCompiler, exp.Expression], Column]:
    return lambda compile_, node: function(*compile_.all([node.this, *node.expressions]))


RULES: dict[type[exp.Expression], Callable[[SparkCompiler, exp.Expression], Column]] = {
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
    exp.NullSafeEQ: _binary(lambda a, b: a.eqNullSafe(b)),
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
    exp.Floor: _whole(F.floor),
    exp.Ceil: _whole(F.ceil),
    exp.Sign: _sign,
    exp.Sqrt: _call(F.sqrt),
    Log10: _log10,
    exp.Ln: _call(F.ln),
    exp.Exp: _call(F.exp),
    exp.Pow: _power,
    exp.Least: _extreme(F.least),
    exp.Greatest: _extreme(F.greatest),
    exp.Coalesce: _extreme(F.coalesce),
    exp.Nullif: _nullif,
    exp.Lower: _call(F.lower),
    exp.Upper: _call(F.upper),
    exp.Trim: _trim,
    exp.Length: _part(F.length),
    exp.Substring: _substring,
    exp.DPipe: _binary(F.concat),
    exp.StartsWith: _binary(F.startswith),
    exp.EndsWith: _binary(F.endswith),
    exp.Contains: _binary(F.contains),
    exp.Right: _right,
    exp.Pad: _padded,
    exp.SplitPart: _split_part,
    JsonValue: _json_value,
    Rescaled: _rescaled,
    UnitsOfText: _units_of_text,
    UnitsOfDouble: _units_of_double,
    TextOfUnits: _text_of_units,
    SplitIndex: _split_index,
    exp.Repeat: _repeat,
    exp.Replace: _replace,
    exp.RegexpLike: _searched(lambda text, pattern, _: F.rlike(text, F.lit(pattern.first))),
    exp.RegexpExtract: _searched(_extracted),
    exp.RegexpReplace: _searched(_substituted),
    exp.StrPosition: _found,
    exp.MD5: _call(lambda text: F.md5(text.cast("binary"))),
    exp.SHA2: _call(lambda text: F.sha2(text.cast("binary"), 256)),
    exp.TimestampAdd: _moved,
    exp.TimestampDiff: _difference,
    exp.TimestampTrunc: _cut,
    exp.TimeToStr: _formatted,
    exp.UnixMicros: _call(F.unix_micros),
    exp.UnixMillis: _call(F.unix_millis),
    exp.UnixSeconds: _call(F.unix_seconds),
    exp.Year: _part(F.year),
    exp.Month: _part(F.month),
    exp.Quarter: _part(F.quarter),
    exp.Week: _part(F.weekofyear),
    exp.Day: _part(F.dayofmonth),
    exp.DayOfYear: _part(F.dayofyear),
    exp.DayOfWeekIso: _part(lambda moment: F.weekday(moment) + 1),
    exp.Hour: _part(F.hour),
    exp.Minute: _part(F.minute),
    exp.Second: _part(F.second),
}
