"""Expressions of a checked query as DuckDB text, with the meaning the language gives them.

Every operation is put in parentheses, since a checked tree carries precedence in its structure alone.
Where DuckDB's own meaning differs from the language's, the rule below says how.

Case and the text of doubles are calculated by Python (texts.py): there DuckDB differs, or its versions do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sqlglot import exp

from towpath.lang.aggregates import StringAgg
from towpath.lang.decimals import Rescaled, TextOfUnits, UnitsOfDouble, UnitsOfText
from towpath.lang.functions import Log10
from towpath.lang.json_paths import JsonValue, steps
from towpath.lang.literals import whole_number
from towpath.lang.query import WINDOW
from towpath.lang.regexps import LONGEST_TEXT, regexp
from towpath.lang.texts import SplitIndex
from towpath.lang.typing import infer
from towpath.schema import Type
from towpath.verify.texts import DECIMAL_OF_TEXT, DOUBLE_TEXT, JSON_VALUE, LOWER, UPPER

OPERATORS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}

FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Exp: "exp",
    exp.Least: "least",
    exp.Greatest: "greatest",
    exp.Coalesce: "coalesce",
    exp.Lower: LOWER,
    exp.Upper: UPPER,
    exp.Length: "length",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
    exp.StrPosition: "instr",
    exp.SplitPart: "split_part",
    exp.Replace: "replace",
    exp.MD5: "md5",
    exp.SHA2: "sha256",
    exp.Year: "year",
    exp.Month: "month",
    exp.Quarter: "quarter",
    exp.Week: "week",
    exp.Day: "day",
    exp.DayOfYear: "dayofyear",
    exp.DayOfWeekIso: "isodow",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}

UNITS = {"MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000}
MICROSECONDS = {"MICROSECOND": 1, **UNITS, "DAY": 24 * UNITS["HOUR"], "WEEK": 7 * 24 * UNITS["HOUR"]}
FIRST, LAST = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
FURTHEST = 2**31 - 1  # no text is longer, and DuckDB takes no more than 32 bits
BLANKS = " \t\n\r\f\v"
SPACES = " \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
YEAR = "([1-9][0-9][0-9][0-9]|0[1-9][0-9][0-9]|00[1-9][0-9]|000[1-9])"
DATE = YEAR + "-[0-9][0-9]?-[0-9][0-9]?"
OFFSET = "(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])"
TEXTS = {
    Type.BOOLEAN: "(?i)(true|t|yes|y|1|false|f|no|n|0)",
    Type.INT: "[+-]?[0-9]+",
    Type.BIGINT: "[+-]?[0-9]+",
    Type.DOUBLE: r"(?i)[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)|nan",
    Type.TIMESTAMP: rf"{DATE}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,9}})?)?{OFFSET}?)?",
    Type.DATE: DATE,
}
"""What a text must look like to be cast."""


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
        return f"CAST({self(node)} AS {type_.sql})"

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


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _let(value: str, body: str) -> str:
    """An expression of `v`, which stands for the value."""
    return f"list_transform([{value}], lambda v: {body})[1]"


def _literal(render: Renderer, node: exp.Literal) -> str:
    """A number is BIGINT or DOUBLE: DuckDB would compute in 32 bits or in decimals."""
    if node.is_string:
        return _text(str(node.this))
    return f"CAST({node.this} AS BIGINT)" if node.is_int else f"CAST('{node.this}' AS DOUBLE)"


def _arithmetic(operator: str) -> Rule:
    """Integers in 128 bits first: what does not fit into 64 is NULL."""

    def rule(render: Renderer, node: exp.Expression) -> str:
        sides = node.this, node.expression
        if all(render.type_of(side).integral for side in sides):
            left, right = (f"CAST({render(side)} AS HUGEINT)" for side in sides)
            return f"TRY_CAST({left} {operator} {right} AS BIGINT)"
        left, right = (f"CAST({render(side)} AS DOUBLE)" for side in sides)
        return f"({left} {operator} {right})"

    return rule


def _negative(render: Renderer, node: exp.Neg) -> str:
    value = whole_number(node)
    if value is not None:
        return f"CAST({value} AS BIGINT)"
    if render.type_of(node.this) is Type.DOUBLE:
        return f"(- {render(node.this)})"
    return f"TRY_CAST(- CAST({render(node.this)} AS HUGEINT) AS BIGINT)"


def _absolute(render: Renderer, node: exp.Abs) -> str:
    type_ = render.type_of(node.this)
    if type_ is Type.DOUBLE:
        return f"abs({render(node.this)})"
    return _integer(f"abs(CAST({render(node.this)} AS HUGEINT))", type_)


def _integer(value: str, type_: Type) -> str:
    """NULL if it is out of the type's range; calculated in 64 bits, whatever the type."""
    return f"CAST(TRY_CAST({value} AS {type_.sql}) AS BIGINT)"


def _divide(render: Renderer, node: exp.Div) -> str:
    return f"(CAST({render(node.this)} AS DOUBLE) / nullif(CAST({render(node.expression)} AS DOUBLE), 0))"


def _modulo(render: Renderer, node: exp.Mod) -> str:
    left, right = f"CAST({render(node.this)} AS HUGEINT)", f"CAST({render(node.expression)} AS HUGEINT)"
    return f"CAST({left} % nullif({right}, 0) AS BIGINT)"


def _cast(render: Renderer, node: exp.Cast) -> str:
    """A value that does not fit is NULL; a double is cut towards zero, where DuckDB would round it."""
    value, target = render(node.this), render.type_of(node)
    source = None if isinstance(node.this, exp.Null) else render.type_of(node.this)
    if source is Type.STRING and target in TEXTS:
        pattern = _text(TEXTS[target])
        read = f"CASE WHEN regexp_full_match(v, {pattern}) THEN {_read(target)} END"
        return _let(f"trim({value}, {_text(BLANKS)})", read)
    if source is Type.DOUBLE and target is Type.STRING:
        return f"{DOUBLE_TEXT}({value})"
    if target.integral:
        return _integer(f"trunc({value})" if source is Type.DOUBLE else value, target)
    return f"TRY_CAST({value} AS {target.sql})"


def _read(target: Type) -> str:
    """The value of a text `v` of the right form. DuckDB skips the offset of a text that is to be a TIMESTAMP."""
    if target.integral:
        return _integer("v", target)
    if target is not Type.TIMESTAMP:
        return f"TRY_CAST(v AS {target.sql})"
    shifted = f"regexp_matches(v, {_text(':.*' + OFFSET + '$')})"
    return (
        f"CASE WHEN {shifted} THEN make_timestamp(epoch_us(TRY_CAST(v AS TIMESTAMPTZ))) "
        "ELSE TRY_CAST(v AS TIMESTAMP) END"
    )


def _round(render: Renderer, node: exp.Round) -> str:
    """Half away from zero on the shortest decimal text of a double, so 2.675 becomes 2.68 although it lies below."""
    value = render(node.this)
    digits = render(node.args["decimals"]) if node.args.get("decimals") else "0"
    digits = f"CAST({digits} AS INTEGER)"
    if render.type_of(node.this) is not Type.DOUBLE:
        return value
    rounded = f"CAST(CAST(round(CAST(CAST(v AS VARCHAR) AS DECIMAL(38, 20)), {digits}) AS VARCHAR) AS DOUBLE)"
    # From 1e17 on a double has no fraction, and DECIMAL(38, 20) ends at 1e18; NaN counts as large.
    return _let(value, f"CASE WHEN abs(v) < 1e17 THEN {rounded} ELSE v END")


def _to_integer(function: str) -> Rule:
    def rule(render: Renderer, node: exp.Expression) -> str:
        value = render(node.this)
        if render.type_of(node.this) is not Type.DOUBLE:
            return value
        return f"TRY_CAST({function}({value}) AS BIGINT)"

    return rule


def _sqrt(render: Renderer, node: exp.Sqrt) -> str:
    return _let(render(node.this), "CASE WHEN v < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt(v) END")


def _ln(render: Renderer, node: exp.Ln) -> str:
    return _let(render(node.this), "CASE WHEN v > 0 THEN ln(v) END")


def _power(render: Renderer, node: exp.Pow) -> str:
    """-0.0 is the same as 0.0."""
    return f"power(CAST({render(node.this)} AS DOUBLE) + 0.0, CAST({render(node.expression)} AS DOUBLE))"


def _log10(render: Renderer, node: Log10) -> str:
    return _let(render(node.this), "CASE WHEN v > 0 THEN log10(v) END")


def _sign(render: Renderer, node: exp.Sign) -> str:
    sign = "CASE WHEN isnan(v) THEN v ELSE sign(v) END" if render.type_of(node.this) is Type.DOUBLE else "sign(v)"
    return f"CAST({_let(render(node.this), sign)} AS {'DOUBLE' if 'isnan' in sign else 'BIGINT'})"


def _right(render: Renderer, node: exp.Right) -> str:
    """Of a negative length DuckDB would leave characters away."""
    count = f"CASE WHEN v < 0 THEN 0 WHEN v > {FURTHEST} THEN {FURTHEST} ELSE v END"
    return f"right({render(node.this)}, {_let(render(node.expression), count)})"


def _padded(render: Renderer, node: exp.Pad) -> str:
    name = "lpad" if node.args["is_left"] else "rpad"
    return f"{name}({render(node.this)}, {node.expression.name}, {render(node.args['fill_pattern'])})"


def _split_index(render: Renderer, node: SplitIndex) -> str:
    delimiter, place = render(node.args["delimiter"]), int(node.args["part_index"].name) + 1
    return _let(render(node.this), f"CASE WHEN v <> '' THEN string_split(v, {delimiter})[{place}] END")


def _searched(body: str) -> Rule:
    """`body` is of a text `v`, which is not too long, and a pattern `{p}`."""

    def rule(render: Renderer, node: exp.Expression) -> str:
        group, given = (node.text(name) for name in ("group", "replacement"))
        searched = body.format(p=_text(regexp(node.expression.name).text), group=group, given=_text(given))
        return _let(render(node.this), f"CASE WHEN length(v) <= {LONGEST_TEXT} THEN {searched} END")

    return rule


def _decimal(units: str, scale: int) -> str:
    """Units as a number of DuckDB's own."""
    return f"(CAST({units} AS DECIMAL(19,0)) * CAST('{Decimal(1).scaleb(-scale):f}' AS DECIMAL(18,{scale})))"


def _rescaled(render: Renderer, node: Rescaled) -> str:
    places = node.args["places"]
    number = _decimal(render(node.this), node.args["scale"])
    if node.args["cut"]:
        return f"CAST(trunc({number}) AS BIGINT)"
    digits = node.args["digits"] or 38
    return f"TRY_CAST(TRY_CAST({number} AS DECIMAL({digits},{places})) * CAST({10**places} AS DECIMAL(19,0)) AS BIGINT)"


def _units(number: str, node: exp.Expression) -> str:
    digits, places = node.args["digits"], node.args["places"]
    return f"CAST(TRY_CAST({number} AS DECIMAL({digits},{places})) * CAST({10**places} AS DECIMAL(19,0)) AS BIGINT)"


def _json_value(render: Renderer, node: JsonValue) -> str:
    path = json.dumps(steps(node.args["path"].name))
    return f"{JSON_VALUE}({render(node.this)}, {_text(path)})"


def _trim(render: Renderer, node: exp.Trim) -> str:
    name = {None: "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[node.args.get("position")]
    return f"{name}({render(node.this)}, {_text(SPACES)})"


def _moved(render: Renderer, node: exp.TimestampAdd) -> str:
    """By microseconds, days or months; NULL outside of the years 1 to 9999."""
    moment, type_ = f"CAST({render(node.this)} AS TIMESTAMP)", render.type_of(node.this).sql
    unit = node.args["unit"].name
    if unit == "MONTH":
        months = _let(
            f"{moment} + to_months({whole_number(node.expression)})",
            f"CASE WHEN v BETWEEN {FIRST} AND {LAST} THEN v END",
        )
        return f"CAST({months} AS {type_})"
    moved = f"epoch_us({moment}) + CAST({render(node.expression)} AS HUGEINT) * {MICROSECONDS[unit]}"
    within = f"v BETWEEN epoch_us({FIRST}) AND epoch_us({LAST})"
    return f"CAST({_let(moved, f'CASE WHEN {within} THEN make_timestamp(CAST(v AS BIGINT)) END')} AS {type_})"


def _difference(render: Renderer, node: exp.TimestampDiff) -> str:
    """Whole units, towards zero."""
    end, start = (f"epoch_us(CAST({render(side)} AS TIMESTAMP))" for side in (node.this, node.expression))
    size = MICROSECONDS[node.args["unit"].name]
    return _let(f"{end} - {start}", f"(v - v % {size}) // {size}")


def _cut(render: Renderer, node: exp.TimestampTrunc) -> str:
    return f"date_trunc('{node.args['unit'].name}', CAST({render(node.this)} AS TIMESTAMP))"


def _since_1970(size: int) -> Rule:
    """Rounded down, where DuckDB would round towards zero."""

    def rule(render: Renderer, node: exp.Expression) -> str:
        return _let(f"epoch_us({render(node.this)})", f"(v - (v % {size} + {size}) % {size}) // {size}")

    return rule


def _nullif(render: Renderer, node: exp.Nullif) -> str:
    value = render(node.this)
    if isinstance(node.expression, exp.Null):
        return value
    return f"(CASE WHEN {value} = {render(node.expression)} THEN NULL ELSE {value} END)"


def _like(render: Renderer, node: exp.Like) -> str:
    return f"({render(node.this)} LIKE {render(node.expression)})"


def _in(render: Renderer, node: exp.In) -> str:
    """Each is compared by itself: DuckDB would make doubles of all if one is."""
    value, members = render(node.this), [(render(m), render.type_of(m) is Type.DOUBLE) for m in node.expressions]
    kinds = [[m for m, double in members if double is kind] for kind in (False, True)]
    return "(" + " OR ".join(f"{value} IN ({', '.join(kind)})" for kind in kinds if kind) + ")"


def _between(render: Renderer, node: exp.Between) -> str:
    value = render(node.this)
    return f"({value} >= {render(node.args['low'])} AND {value} <= {render(node.args['high'])})"


def _case(render: Renderer, node: exp.Case) -> str:
    branches = "".join(f" WHEN {render(b.this)} THEN {render(b.args['true'])}" for b in node.args["ifs"])
    default = node.args.get("default")
    return f"(CASE{branches}{f' ELSE {render(default)}' if default else ''} END)"


def _substring(render: Renderer, node: exp.Substring) -> str:
    """Position 0 is the first character too, and a negative length takes nothing; DuckDB would count from before."""
    text, start, *length = map(render, _arguments(node))
    near = f"WHEN v > {FURTHEST} THEN {FURTHEST} WHEN v < -{FURTHEST} THEN -{FURTHEST} ELSE v END"
    parts = [text, _let(start, f"CASE WHEN v = 0 THEN 1 {near}")]
    parts += [_let(n, f"CASE WHEN v < 0 THEN 0 {near}") for n in length]
    return f"substring({', '.join(parts)})"


def _of_extreme(descending: bool) -> Rule:
    """Of several tuples with the same, the one whose value is the more extreme in the same direction."""
    direction = "DESC NULLS LAST" if descending else "ASC NULLS FIRST"

    def rule(render: Renderer, node: exp.Expression) -> str:
        value, by = render(node.this), render(node.expression)
        listed = f"list({value} ORDER BY {by} {direction}, {value} {direction}) FILTER (WHERE {by} IS NOT NULL)"
        return f"({listed})[1]"

    return rule


def _quantile(render: Renderer, node: exp.Quantile) -> str:
    """Between two values as far from the lower one as the place is."""
    value, share = render(node.this), f"CAST('{node.args['quantile'].name}' AS DOUBLE)"
    values = f"list_sort(list(CAST({value} AS DOUBLE)) FILTER (WHERE {value} IS NOT NULL))"
    place = f"((len(v) - 1) * {share})"
    low, high = f"v[CAST(floor({place}) AS BIGINT) + 1]", f"v[CAST(ceil({place}) AS BIGINT) + 1]"
    between = f"{low} + ({high} - {low}) * ({place} - floor({place}))"
    return _let(values, f"CASE WHEN {low} = {high} THEN {low} ELSE {between} END")


def _texts(render: Renderer, node: StringAgg) -> str:
    value, by = render(node.this), render(node.args["order"])
    direction = "DESC NULLS LAST" if node.args.get("descending") else "ASC NULLS FIRST"
    order = f"{by} {direction}, {value} {direction}"
    return f"string_agg({value}, {render(node.args['separator'])} ORDER BY {order}) FILTER (WHERE {value} IS NOT NULL)"


def _count(render: Renderer, node: exp.Count) -> str:
    if isinstance(node.this, exp.Distinct):
        return f"count(DISTINCT {render(node.this.expressions[0])})"
    return "count(*)" if isinstance(node.this, exp.Star) else f"count({render(node.this)})"


def _sum(render: Renderer, node: exp.Sum) -> str:
    """DuckDB sums integers in 128 bits."""
    total = f"sum({render(node.this)})"
    return f"TRY_CAST({total} AS BIGINT)" if render.type_of(node.this).integral else total


def _deviation(render: Renderer, node: exp.StddevSamp) -> str:
    value = f"CAST({render(node.this)} AS DOUBLE)"
    some, large = f"count({value}) > 1", f"count(*) FILTER (WHERE abs({value}) >= 1e150) > 0"
    deviation = f"stddev_samp({value}) FILTER (WHERE abs({value}) < 1e150)"
    return f"(CASE WHEN {some} THEN CASE WHEN {large} THEN CAST('NaN' AS DOUBLE) ELSE {deviation} END END)"


Rule = Callable[[Renderer, Any], str]
RULES: dict[type[exp.Expression], Rule] = {
    exp.Column: lambda render, node: render.column(node),
    exp.Literal: _literal,
    exp.Boolean: lambda render, node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda render, node: "NULL",
    exp.Neg: _negative,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Abs: _absolute,
    exp.Nullif: _nullif,
    exp.Trim: _trim,
    exp.Not: lambda render, node: f"(NOT {render(node.this)})",
    exp.Is: lambda render, node: f"({render(node.this)} IS {render(node.expression)})",
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.Cast: _cast,
    exp.Round: _round,
    exp.Floor: _to_integer("floor"),
    exp.Ceil: _to_integer("ceil"),
    exp.Sqrt: _sqrt,
    exp.Sign: _sign,
    Log10: _log10,
    exp.Right: _right,
    exp.Pad: _padded,
    JsonValue: _json_value,
    Rescaled: _rescaled,
    UnitsOfText: lambda render, node: _units(f"{DECIMAL_OF_TEXT}({render(node.this)})", node),
    UnitsOfDouble: lambda render, node: _units(
        f"{DECIMAL_OF_TEXT}({DOUBLE_TEXT}(CAST({render(node.this)} AS DOUBLE)))", node
    ),
    TextOfUnits: lambda render, node: _let(_decimal(render(node.this), node.args["scale"]), "CAST(v AS VARCHAR)"),
    exp.RegexpLike: _searched("regexp_matches(v, {p})"),
    exp.RegexpExtract: _searched("CASE WHEN regexp_matches(v, {p}) THEN regexp_extract(v, {p}, {group}) END"),
    exp.RegexpReplace: _searched("regexp_replace(v, {p}, {given}, 'g')"),
    SplitIndex: _split_index,
    exp.Repeat: lambda render, node: f"repeat({render(node.this)}, {node.args['times'].name})",
    exp.Ln: _ln,
    exp.Pow: _power,
    exp.Like: _like,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.Substring: _substring,
    exp.TimestampAdd: _moved,
    exp.TimestampDiff: _difference,
    exp.TimestampTrunc: _cut,
    exp.TimeToStr: lambda render, node: f"strftime({render(node.this)}, {render(node.args['format'])})",
    exp.UnixMicros: _since_1970(1),
    exp.UnixMillis: _since_1970(UNITS["MILLISECOND"]),
    exp.UnixSeconds: _since_1970(UNITS["SECOND"]),
    exp.Count: _count,
    exp.Sum: _sum,
    exp.StddevSamp: _deviation,
    exp.ArgMax: _of_extreme(descending=True),
    exp.ArgMin: _of_extreme(descending=False),
    exp.Quantile: _quantile,
    StringAgg: _texts,
}
