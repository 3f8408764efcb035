"""Random expressions, each in two languages: ours, and DuckDB's with the meaning that docs/language.md gives them.

Nothing of the product is used here: neither its trees nor its rules. Where DuckDB has no function of that meaning,
plain Python says it (meanings.py). So a mistake would have to be made twice to stay hidden.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from tests.spark.edge_values import (
    BIG,
    BOOL,
    COLUMNS,
    DAY,
    DBL,
    DUCK,
    EDGES,
    INT,
    NUMBERS,
    ORDERED,
    STR,
    TIME,
    TYPES,
    WHOLE,
)
from tests.spark.meanings import FAR

MAX = "1.797693134862315e308"  # only the largest double and what is no number are beyond it


@dataclass(frozen=True)
class Expr:
    type: str
    ours: str
    duck: str
    exact: bool = True  # else engines may differ in the last digits


# --- leaves ---------------------------------------------------------------------------------------------------------


def column(name: str) -> Expr:
    type_ = COLUMNS[name]
    return Expr(type_, name, f"CAST({name} AS BIGINT)" if type_ == INT else name)


def literal(value: object) -> Expr:
    match value:
        case bool():
            return Expr(BOOL, str(value).lower(), str(value).upper())
        case int():
            type_ = INT if -(2**31) <= value < 2**31 else BIG
            return Expr(type_, str(value), f"CAST({value} AS BIGINT)")
        case float():
            return Expr(DBL, repr(value), f"CAST('{value!r}' AS DOUBLE)")
        case str():
            text = "'" + value.replace("'", "''") + "'"
            return Expr(STR, text, text)
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(sep=" ")
            return Expr(TIME, f"TIMESTAMP '{text}'", f"TIMESTAMP '{text}'")
        case dt.date():
            return Expr(DAY, f"DATE '{value}'", f"DATE '{value}'")
    raise AssertionError(value)


LITERALS = {
    type_: [literal(v) for v in values if v is not None and not (type_ == DBL and not np.isfinite(v))]
    for type_, values in EDGES.items()
}
LITERALS[INT] = [e for e in LITERALS[INT] if e.type == INT]
LITERALS[BIG] = [e for e in LITERALS[BIG] if e.type == BIG]


# --- operations -----------------------------------------------------------------------------------------------------

Operation = Callable[..., Expr]


@dataclass(frozen=True)
class Op:
    """`build` makes an expression of arguments of these types."""

    name: str
    arguments: tuple[str, ...]
    result: str
    build: Operation
    exact: bool = True


def _double(e: Expr) -> str:
    return f"CAST({e.duck} AS DOUBLE)"


def _alike(a: Expr, b: Expr) -> tuple[str, str]:
    return (_double(a), _double(b)) if DBL in (a.type, b.type) else (a.duck, b.duck)


def _arithmetic(symbol: str, result: str) -> Operation:
    def build(a: Expr, b: Expr) -> Expr:
        ours = f"({a.ours} {symbol} {b.ours})"
        if result == BIG:
            return Expr(BIG, ours, f"TRY({a.duck} {symbol} {b.duck})")
        return Expr(DBL, ours, f"({_double(a)} {symbol} {_double(b)})")

    return build


def _comparison(symbol: str) -> Operation:
    def build(a: Expr, b: Expr) -> Expr:
        left, right = _alike(a, b)
        return Expr(BOOL, f"({a.ours} {symbol} {b.ours})", f"({left} {symbol} {right})")

    return build


def _between(word: str) -> Operation:
    def build(a: Expr, low: Expr, high: Expr) -> Expr:
        (v, lo), (w, hi) = _alike(a, low), _alike(a, high)
        duck = f"(({v} >= {lo}) AND ({w} <= {hi}))"
        return Expr(BOOL, f"({a.ours} {word}BETWEEN {low.ours} AND {high.ours})", f"(NOT {duck})" if word else duck)

    return build


def _in(word: str) -> Operation:
    def build(a: Expr, *members: Expr) -> Expr:
        each = [" = ".join(_alike(a, m)) for m in members]
        ours = f"({a.ours} {word}IN ({', '.join(m.ours for m in members)}))"
        duck = "(" + " OR ".join(f"({e})" for e in each) + ")"
        return Expr(BOOL, ours, f"(NOT {duck})" if word else duck)

    return build


def _call(name: str, result: str, duck: str, exact: bool = True) -> Operation:
    def build(*arguments: Expr) -> Expr:
        ours = f"{name}({', '.join(a.ours for a in arguments)})"
        return Expr(
            result,
            ours,
            duck.format(*(a.duck for a in arguments), *(f"CAST({a.duck} AS DOUBLE)" for a in arguments)),
            exact,
        )

    return build


def _infix(duck: str, result: str, ours: str | None = None) -> Operation:
    """The text is the same in both, unless ours is said."""

    def build(*arguments: Expr) -> Expr:
        text = duck if ours is None else ours
        return Expr(result, text.format(*(a.ours for a in arguments)), duck.format(*(a.duck for a in arguments)))

    return build


def _widest(*types: str) -> str:
    return max(types, key=NUMBERS.index) if types[0] in NUMBERS else types[0]


def _as(e: Expr, type_: str) -> str:
    return _double(e) if type_ == DBL else e.duck


def _listed(name: str) -> Operation:
    def build(*arguments: Expr) -> Expr:
        type_ = _widest(*(a.type for a in arguments))
        duck = f"{name}({', '.join(_as(a, type_) for a in arguments)})"
        return Expr(type_, f"{name}({', '.join(a.ours for a in arguments)})", duck)

    return build


def _nullif(a: Expr, b: Expr) -> Expr:
    left, right = _alike(a, b)
    return Expr(a.type, f"nullif({a.ours}, {b.ours})", f"(CASE WHEN {left} = {right} THEN NULL ELSE {a.duck} END)")


def _case(form: str) -> Operation:
    def build(c: Expr, x: Expr, y: Expr) -> Expr:
        type_ = _widest(x.type, y.type)
        duck = f"(CASE WHEN {c.duck} THEN {_as(x, type_)} ELSE {_as(y, type_)} END)"
        return Expr(type_, form.format(c.ours, x.ours, y.ours), duck)

    return build


def _case_without_else(c: Expr, x: Expr) -> Expr:
    return Expr(x.type, f"if({c.ours}, {x.ours})", f"(CASE WHEN {c.duck} THEN {x.duck} END)")


def _simple_case(v: Expr, w: Expr, x: Expr, y: Expr) -> Expr:
    type_ = _widest(x.type, y.type)
    same = " = ".join(_alike(v, w))
    duck = f"(CASE WHEN {same} THEN {_as(x, type_)} ELSE {_as(y, type_)} END)"
    return Expr(type_, f"(CASE {v.ours} WHEN {w.ours} THEN {x.ours} ELSE {y.ours} END)", duck)


FROM_TEXT = {
    INT: "CAST(TRY_CAST(t_whole({}) AS INTEGER) AS BIGINT)",
    BIG: "t_whole({})",
    DBL: "t_double({})",
    BOOL: "t_truth({})",
    DAY: "t_day({})",
    TIME: "make_timestamp(t_instant({}))",
}


def _cast(source: str, target: str) -> Operation:
    def build(a: Expr) -> Expr:
        if source == STR and target != STR:
            # A literal that is no date is refused before it runs.
            ours = f"({a.ours} || '')" if a.ours.startswith("'") else a.ours
            return Expr(target, f"CAST({ours} AS {target})", FROM_TEXT[target].format(a.duck))
        if source == DBL and target == STR:
            # Java before 19 writes a digit too many of some doubles, but not of short ones, nor of what is no number.
            short = f"abs({a.ours}) < 1e9 AND {a.ours} * 1024 = floor({a.ours} * 1024) OR abs({a.ours}) >= {MAX}"
            ours = f"if({short}, {a.ours})"
            condition = f"abs({a.duck}) < 1e9 AND {a.duck} * 1024 = floor({a.duck} * 1024) OR abs({a.duck}) >= {MAX}"
            duck = f"CASE WHEN {condition} THEN t_shown({a.duck}) END"
            return Expr(STR, f"CAST({ours} AS string)", duck)
        if target in WHOLE:
            value = f"trunc({a.duck})" if source == DBL else a.duck
            duck = f"CAST(TRY_CAST({value} AS {DUCK[target]}) AS BIGINT)"
        else:
            duck = f"TRY_CAST({a.duck} AS {DUCK[target]})"
        return Expr(target, f"CAST({a.ours} AS {target})", duck)

    return build


def _round(digits: int) -> Operation:
    def build(a: Expr) -> Expr:
        ours = f"round({a.ours}, {digits})" if digits else f"round({a.ours})"
        return Expr(a.type, ours, f"t_round({a.duck}, {digits})" if a.type == DBL else a.duck)

    return build


def _abs(a: Expr) -> Expr:
    duck = {INT: "TRY(CAST(abs(CAST({} AS INTEGER)) AS BIGINT))", BIG: "TRY(abs({}))", DBL: "abs({})"}[a.type]
    return Expr(a.type, f"abs({a.ours})", duck.format(a.duck))


def _whole(name: str) -> Operation:
    def build(a: Expr) -> Expr:
        return Expr(BIG, f"{name}({a.ours})", f"TRY_CAST({name}({a.duck}) AS BIGINT)" if a.type == DBL else a.duck)

    return build


def _sign(a: Expr) -> Expr:
    nan = f"WHEN isnan({a.duck}) THEN {a.duck} " if a.type == DBL else ""
    duck = f"CASE {nan}WHEN {a.duck} > 0 THEN 1 WHEN {a.duck} < 0 THEN -1 WHEN {a.duck} = 0 THEN 0 END"
    return Expr(a.type, f"sign({a.ours})", f"CAST({duck} AS {DUCK[BIG if a.type == INT else a.type]})")


def _negative(a: Expr) -> Expr:
    if a.ours.isdigit():  # the minus belongs to the literal
        type_ = INT if int(a.ours) <= 2**31 else BIG
        return Expr(type_, f"(- {a.ours})", f"CAST(-{a.ours} AS {type_})")
    type_ = DBL if a.type == DBL else BIG
    return Expr(
        type_, f"(- {a.ours})", f"(- {a.duck})" if type_ == DBL else f"TRY_CAST(- CAST({a.duck} AS HUGEINT) AS BIGINT)"
    )


PATTERNS = ("", "%", "_", "__", "a%", "%a", "%a%b%", "A_C", "%_%", "1%", "2026-__-%", "%\\%", "😀_", "_%😀%", "%ß%")


def operations() -> Iterator[Op]:
    yield from _numbers()
    yield from _comparisons()
    yield from _conditionals()
    yield from _texts()
    yield from _moments()
    yield from _lengths()
    yield from _formats()
    yield from _regexps()
    for source in TYPES:
        for target in TYPES:
            moments = {source, target} & {TIME, DAY}
            if source == target or STR in (source, target) or {source, target} == {TIME, DAY} or not moments:
                yield Op("CAST", (source,), target, _cast(source, target))


def _numbers() -> Iterator[Op]:
    for a in NUMBERS:
        yield Op("-", (a,), DBL if a == DBL else BIG, _negative)
        yield Op("abs", (a,), a, _abs)
        for digits in (0, 1, 2, 15):
            yield Op("round", (a,), a, _round(digits))
        for name in ("floor", "ceil"):
            yield Op(name, (a,), BIG, _whole(name))
        yield Op("sign", (a,), a, _sign)
        yield Op("log10", (a,), DBL, _call("log10", DBL, "t_log10({1})", False), False)
        yield Op("sqrt", (a,), DBL, _call("sqrt", DBL, "t_sqrt({1})"))
        yield Op("ln", (a,), DBL, _call("ln", DBL, "t_ln({1})", False), False)
        yield Op("exp", (a,), DBL, _call("exp", DBL, "exp({1})", False), False)
    for a, b in _pairs(NUMBERS):
        result = DBL if DBL in (a, b) else BIG
        for symbol in "+-*":
            yield Op(symbol, (a, b), result, _arithmetic(symbol, result))
        yield Op("/", (a, b), DBL, lambda x, y: Expr(DBL, f"({x.ours} / {y.ours})", f"t_div({x.duck}, {y.duck})"))
        yield Op("power", (a, b), DBL, _call("power", DBL, "power({2} + 0.0, {3})", False), False)
    for a, b in _pairs(WHOLE):
        yield Op("%", (a, b), BIG, lambda x, y: Expr(BIG, f"({x.ours} % {y.ours})", f"t_mod({x.duck}, {y.duck})"))


def _moments() -> Iterator[Op]:
    for type_ in (TIME, DAY):
        for part in ("year", "quarter", "month", "week", "day", "dayofyear", "isodow"):
            yield Op(part, (type_,), INT, _call(part, INT, part + "({0})"))
    for part in ("hour", "minute", "second"):
        yield Op(part, (TIME,), INT, _call(part, INT, part + "({0})"))


LENGTHS = (
    *(("1", "MICROSECOND"), ("86400000001", "MICROSECOND"), ("1", "SECOND"), ("90", "MINUTE"), ("25", "HOUR")),
    *(("0", "DAY"), ("1", "DAY"), ("366", "DAY"), ("2", "WEEK"), ("1", "MONTH"), ("13", "MONTH"), ("4", "YEAR")),
    ("9998", "YEAR"),
)
CUTS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


# Patterns as ours and as Python's, which has another end of the text, and other digits and words.
PATTERNS_OF_REGEXP = (
    *(("a", "a"), ("^a", "^a"), ("a$", r"a\Z"), ("^$", r"^\Z"), ("[a-c]+", "[a-c]+"), (r"\d+", "[0-9]+")),
    *((r"\D\w", "[^0-9][A-Za-z0-9_]"), (r"\W", "[^A-Za-z0-9_]"), ("(?:ab|a)b*c", "(?:ab|a)b*c"), ("b|a", "b|a")),
    *((".*a.*", ".*a.*"), ("^.*-.*-", "^.*-.*-"), ("a.", "a."), ("😀", "😀"), ("[^a]", "[^a]"), ("é?a", "é?a")),
    *((r"(\d{4})-(\d{1,2})-(\d+)", "([0-9]{4})-([0-9]{1,2})-([0-9]+)"), (r"\n", "\n"), (r"[\t\n]", "[\t\n]")),
    *(("^([^:]*):(.*)$", r"^([^:]*):(.*)\Z"), ("(^|-)([a-z]*)", "(^|-)([a-z]*)"), ("x?y?", "x?y?")),
    *(
        (r"C:\D", "C:[^0-9]"),
        ("[^\\]]{2}", "[^\\]]{2}"),
        ("(l)ong long", "(l)ong long"),
        ("(?:0|1)?2", "(?:0|1)?2"),
        ("ß|İ|ŉ", "ß|İ|ŉ"),
    ),
)


def _regexps() -> Iterator[Op]:
    for ours, python in PATTERNS_OF_REGEXP:
        pattern, other = (p.replace("{", "{{").replace("}", "}}") for p in (ours, python))
        duck = f"t_matches({{}}, '{other}')"
        yield Op("regexp_like", (STR,), BOOL, _infix(duck, BOOL, f"regexp_like({{}}, '{pattern}')"))
        for group in range(re.compile(python).groups + 1):
            found = duck.replace("t_matches", "t_extracted")[:-1] + f", {group})"
            yield Op("regexp_extract", (STR,), STR, _infix(found, STR, f"regexp_extract({{}}, '{pattern}', {group})"))
        if re.fullmatch(python, "") is None and not ours.startswith(("^$", "(^|-)", ".*")):
            for given in ("", "é-"):
                found = duck.replace("t_matches", "t_substituted")[:-1] + f", '{given}')"
                replaced = _infix(found, STR, f"regexp_replace({{}}, '{pattern}', '{given}', 'g')")
                yield Op("regexp_replace", (STR,), STR, replaced)


# The same with strftime and, where it has one, with the pattern of another function.
FORMATS = (
    ("%Y-%m-%d %H:%M:%S.%f", "date_format", "yyyy-MM-dd HH:mm:ss.SSSSSS"),
    ("%Y%m%dT%H%M%S%g", "date_format", "yyyyMMdd''T''HHmmssSSS"),
    ("%-d.%-m.%y, %-H:%-M:%-S", "date_format", "d.M.yy, H:m:s"),
    ("%a %A %b %B", "date_format", "E EEEE MMM MMMM"),
    ("%I|%-I|%p|%j|%-j", "date_format", "hh|h|a|DDD|D"),
    ("100%% it''s %Y o''clock é😀", "", ""),
    ("100 it %Y é😀''", "date_format", "''100 it'' yyyy é😀''''"),
    ("%m%m%Y%Y%f%f%S%-S%%%%", "", ""),
    ("%Y-%m-%d %H:%M:%S.%g %f", "to_char", "YYYY-MM-DD HH24:MI:SS.MS US"),
    ("%y %b %B %a %A %j %I %p %-d %-m", "to_char", "YY Mon FMMonth Dy FMDay DDD HH12 AM FMDD FMMM"),
)


def _formats() -> Iterator[Op]:
    for type_ in (TIME, DAY):
        for pattern, name, other in FORMATS:
            duck = f"t_written(CAST({{}} AS TIMESTAMP), '{pattern}')"
            yield Op("strftime", (type_,), STR, _infix(duck, STR, f"strftime({{}}, '{pattern}')"))
            if name:
                yield Op("strftime", (type_,), STR, _infix(duck, STR, f"{name}({{}}, '{other}')"))


def _lengths() -> Iterator[Op]:
    """What moves times, and what is between two."""
    moment = "CAST({} AS TIMESTAMP)"
    for type_ in (TIME, DAY):
        for count, unit in LENGTHS:
            if type_ == TIME or unit in ("DAY", "WEEK", "MONTH", "YEAR"):
                for sign in "+-":
                    duck = f"CAST(t_moved({moment}, {sign}{count}, '{unit}') AS {DUCK[type_]})"
                    yield Op(
                        "INTERVAL", (type_,), type_, _infix(duck, type_, f"({{}} {sign} INTERVAL '{count}' {unit})")
                    )
        for unit in CUTS:
            yield Op(
                "date_trunc", (type_,), TIME, _infix(f"t_cut('{unit}', {moment})", TIME, f"date_trunc('{unit}', {{}})")
            )
        for a in WHOLE:
            units = ("DAY", "WEEK") if type_ == DAY else CUTS[:7]
            for unit in units:
                duck = f"CAST(t_moved(CAST({{1}} AS TIMESTAMP), {{0}}, '{unit}') AS {DUCK[type_]})"
                added = _infix(duck, type_, f"timestampadd({unit}, {{}}, {{}})")
                yield Op("timestampadd", (a, type_), type_, added)
        for other in (TIME, DAY):
            for unit in CUTS[:7]:
                units = f"t_units({moment}, {moment}, '{unit}')"
                yield Op("timestampdiff", (type_, other), BIG, _infix(units, BIG, f"timestampdiff({unit}, {{}}, {{}})"))
    for name, unit in (("micros", "MICROSECOND"), ("millis", "MILLISECOND"), ("seconds", "SECOND")):
        yield Op("unix", (TIME,), BIG, _infix(f"t_since({{}}, '{unit}')", BIG, f"unix_{name}({{}})"))
        for a in WHOLE:
            duck = f"t_moved(TIMESTAMP '1970-01-01', {{}}, '{unit}')"
            yield Op("timestamp_of", (a,), TIME, _infix(duck, TIME, f"timestamp_{name}({{}})"))


def _pairs(types: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((a, b) for a in types for b in types if a == b or (a in NUMBERS and b in NUMBERS))


def _comparisons() -> Iterator[Op]:
    for a, b in _pairs(TYPES):
        for symbol in ("=", "<>", "<", "<=", ">", ">="):
            yield Op(symbol, (a, b), BOOL, _comparison(symbol))
    for a, b in _pairs(ORDERED):
        for word in ("", "NOT "):
            yield Op("BETWEEN", (a, b, a), BOOL, _between(word))
            yield Op("IN", (a, a, b), BOOL, _in(word))
            yield Op("IN", (a, "literal " + a, "literal " + b, "literal " + a), BOOL, _in(word))
    for symbol in ("AND", "OR"):
        yield Op(symbol, (BOOL, BOOL), BOOL, _infix("({} " + symbol + " {})", BOOL))
    yield Op("NOT", (BOOL,), BOOL, _infix("(NOT {})", BOOL))
    for type_ in TYPES:
        for word in ("", "NOT "):
            yield Op("DISTINCT", (type_, type_), BOOL, _infix(f"({{}} IS {word}DISTINCT FROM {{}})", BOOL))
        yield Op("IS NULL", (type_,), BOOL, _infix("({} IS NULL)", BOOL))
        yield Op("IS NOT NULL", (type_,), BOOL, _infix("({} IS NOT NULL)", BOOL))


def _conditionals() -> Iterator[Op]:
    for a, b in _pairs(TYPES):
        result = _widest(a, b)
        yield Op("CASE", (BOOL, a, b), result, _case("(CASE WHEN {} THEN {} ELSE {} END)"))
        yield Op("if", (BOOL, a, b), result, _case("if({}, {}, {})"))
        yield Op("CASE x", (a, b, b, a), result, _simple_case)
        yield Op("nullif", (a, b), a, _nullif)
        for name in ("coalesce", "least", "greatest"):
            yield Op(name, (a, b), result, _listed(name))
            yield Op(name, (a, b, a), result, _listed(name))
    for type_ in TYPES:
        yield Op("if", (BOOL, type_), type_, _case_without_else)


def _texts() -> Iterator[Op]:
    for name in ("lower", "upper", "trim"):
        yield Op(name, (STR,), STR, _call(name, STR, f"t_{name}({{0}})"))
    yield Op("length", (STR,), INT, _call("length", INT, "length({0})"))
    yield Op("||", (STR, STR), STR, _infix("({} || {})", STR))
    yield Op("concat", (STR, STR, STR), STR, _call("concat", STR, "({0} || {1} || {2})"))
    for text in PATTERNS:
        for word in ("", "NOT "):
            yield Op("LIKE", (STR,), BOOL, _infix(f"({{}} {word}LIKE '{text}')", BOOL))
    for name in ("starts_with", "ends_with", "contains"):
        yield Op(name, (STR, STR), BOOL, _call(name, BOOL, name + "({0}, {1})"))
    yield Op("ILIKE", (STR,), BOOL, lambda a: Expr(BOOL, f"({a.ours} ILIKE '%A%')", f"(t_lower({a.duck}) LIKE '%a%')"))
    for name in ("ltrim", "rtrim", "md5", "sha256"):
        yield Op(name, (STR,), STR, _call(name, STR, f"t_{name}({{0}})"))
    yield from _changed_texts()
    yield Op("strpos", (STR, STR), INT, _call("strpos", INT, "t_found({0}, {1})"))
    yield Op("locate", (STR, STR), INT, _call("locate", INT, "t_found({1}, {0})"))
    for a in WHOLE:
        yield Op("left", (STR, a), STR, _call("left", STR, "t_part({0}, 1, {1})"))
        yield Op("right", (STR, a), STR, _call("right", STR, "t_right({0}, {1})"))
    for a in WHOLE:
        yield Op("substring", (STR, a), STR, _call("substring", STR, f"t_part({{0}}, {{1}}, {FAR})"))
        for b in WHOLE:
            yield Op("substring", (STR, a, b), STR, _call("substring", STR, "t_part({0}, {1}, {2})"))


def _changed_texts() -> Iterator[Op]:
    for name in ("lpad", "rpad"):
        for width, fill in ((0, " "), (3, "xy"), (12, "é😀-"), (1000, "ab")):
            arguments = f"{width}, '{fill}'"
            yield Op(name, (STR,), STR, _infix(f"t_{name}({{}}, {arguments})", STR, f"{name}({{}}, {arguments})"))
    for delimiter in (" ", "-", "12", "😀", "a"):
        for place in (1, 2, -1, -2, 7):
            arguments = f"'{delimiter}', {place}"
            split = f"t_split({{}}, {arguments})"
            yield Op("split_part", (STR,), STR, _infix(split, STR, f"split_part({{}}, {arguments})"))
        for place in (0, 1, 7):
            arguments = f"'{delimiter}', {place}"
            split = f"t_split_index({{}}, {arguments})"
            yield Op("split_index", (STR,), STR, _infix(split, STR, f"split_index({{}}, {arguments})"))
    for wanted, given in (("a", ""), ("12", "$1"), ("0", "\\0"), ("-", "/"), (" ", "  "), ("😀", "é"), ("oo", "o")):
        arguments = f"'{wanted}', '{given}'"
        yield Op("replace", (STR,), STR, _infix(f"t_replace({{}}, {arguments})", STR, f"replace({{}}, {arguments})"))
    for times in (0, 1, 2):
        yield Op("repeat", (STR,), STR, _infix(f"repeat({{}}, {times})", STR))


OPERATIONS = tuple(operations())
BY_RESULT = {t: [op for op in OPERATIONS if op.result == t and op.exact] for t in TYPES}


# --- expressions ----------------------------------------------------------------------------------------------------


def every_operation() -> Iterator[Expr]:
    """Each on columns, and each with a literal among its arguments."""
    rng = Random(1)
    for op in OPERATIONS:
        yield op.build(*(_leaf(t, n, rng) for n, t in enumerate(op.arguments)))
        if len(op.arguments) > 1:
            place = rng.randrange(len(op.arguments))
            yield op.build(
                *(_a_literal(t, rng) if n == place else _leaf(t, n, rng) for n, t in enumerate(op.arguments))
            )


def random_expression(rng: Random, depth: int) -> Expr:
    op = rng.choice(OPERATIONS)
    return op.build(*(_grown(rng, t, depth - 1) for t in op.arguments))


def _grown(rng: Random, type_: str, depth: int) -> Expr:
    if type_.startswith("literal ") or rng.random() < 0.15:
        return _a_literal(type_, rng)
    if depth == 0 or rng.random() < 0.2:
        return column(f"{'ibdstyf'[TYPES.index(type_)]}{rng.choice('12')}")
    # An operation is drawn before the types of its arguments, or comparisons would crowd out all others.
    names = sorted({op.name for op in BY_RESULT[type_]})
    name = rng.choice(names)
    op = rng.choice([op for op in BY_RESULT[type_] if op.name == name])
    return op.build(*(_grown(rng, t, depth - 1) for t in op.arguments))


def _leaf(type_: str, position: int, rng: Random) -> Expr:
    if type_.startswith("literal "):
        return _a_literal(type_, rng)
    return column(f"{'ibdstyf'[TYPES.index(type_)]}{1 + position % 2}")


def _a_literal(type_: str, rng: Random) -> Expr:
    return rng.choice(LITERALS[type_.removeprefix("literal ")])
