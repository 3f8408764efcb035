"""The SQL dialect: sqlglot's own, with CQL's windows in brackets behind an input of FROM.

Functions are not read here: every call becomes `exp.Anonymous` with its name as written, and `functions.py` decides,
so that one table says what exists and a message can name what does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator
from sqlglot.parser import Parser
from sqlglot.tokens import Tokenizer

from towpath.lang.aggregates import StringAgg
from towpath.lang.decimals import PLACES, Rescaled, Scaled, TextOfUnits, UnitsOfDouble, UnitsOfText, Unscaled
from towpath.lang.foreign import FOREIGN, JOINS
from towpath.lang.json_paths import JsonValue
from towpath.lang.literals import whole_number
from towpath.lang.query import SESSION, UNITS, window
from towpath.lang.table_windows import TableWindowParser
from towpath.lang.times import FIXED, MOST_US
from towpath.lang.underline import TextSpan, mark

# Days are a unit of their own, which dates are moved by.
SHOWN = {unit: UNITS[unit] for unit in UNITS if unit != "DAY"} | {"MICROSECOND": 1}
LONGEST_US = 36_500 * UNITS["DAY"]


class ForeignWord(Exception):
    """A word behind an input that is a keyword in other dialects, and would be taken for the input's name here."""

    def __init__(self, token: Token) -> None:
        super().__init__(token.text)
        self.word = token.text
        self.place: TextSpan = (token.start, token.end + 1)


class BadWindow(Exception):
    """A window that cannot be read. No ParseError: behind a comma sqlglot would try to read something else there."""

    def __init__(self, message: str, place: TextSpan) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


class Windowed(exp.Expression):
    """An input of FROM with its window; lengths are microseconds, and may be out of bounds (inputs.py)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "range_us": True, "slide_us": False, "session": False}


class TowpathTokenizer(Tokenizer):
    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        # An optimiser hint is a comment here; templates and pipes are no part of the language.
        **{word: kind for word, kind in Tokenizer.KEYWORDS.items() if word[:2] not in ("/*", "{%", "{{", "|>")},
        "STRING": TokenType.TEXT,
    }


def _arrow(operator: str, text: exp.Expr, key: exp.Expr) -> exp.Expr:
    """`s -> 'a' ->> 'b'` as a call with all keys."""
    inner = text.unnest()
    first = inner.expressions if isinstance(inner, exp.Anonymous) and inner.name == "->" else [text]
    return exp.Anonymous(this=operator, expressions=[*first, key])


class TowpathParser(TableWindowParser):
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: Parser.FUNCTION_PARSERS[name] for name in ("CAST", "EXTRACT")
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }

    COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        **{operator: Parser.COLUMN_OPERATORS[operator] for operator in (TokenType.DOT, TokenType.DCOLON)},
        TokenType.ARROW: lambda _, text, key: _arrow("->", text, key),
        TokenType.DARROW: lambda _, text, key: _arrow("->>", text, key),
    }
    LAMBDAS: ClassVar[dict[TokenType, Any]] = {TokenType.FARROW: Parser.LAMBDAS[TokenType.FARROW]}

    def place(self) -> TextSpan:
        """Where reading has come to."""
        token = self._curr or self._prev
        return (token.start, token.end + 1) if token else (0, 1)

    def _parse_unary(self) -> exp.Expr | None:
        return self._marked(super()._parse_unary)

    def _parse_atom(self) -> exp.Expr | None:
        return self._marked(super()._parse_atom)

    def _marked(self, parse: Callable[[], exp.Expr | None]) -> exp.Expr | None:
        first = self._curr
        node = parse()
        if node is not None and first and self._prev and node.meta.get("end", -1) < self._prev.end:
            mark(node, (first.start, self._prev.end + 1))
        return node

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        # `stream [RANGE` is a window, left for _parse_table; every other bracket is sqlglot's.
        if isinstance(this, exp.Table) and self._curr.token_type == TokenType.L_BRACKET:
            if not self._at_window():
                self._refuse_window("expected RANGE, as in [RANGE 10 SECONDS]", self._next)
            return this
        if self._at_window():
            self.raise_error("a window stands behind an input of FROM")
        return super()._parse_bracket(this)

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._curr
        if self.at_window_function():
            return self.parse_window_function()
        table = super()._parse_table(*args, **kwargs)
        if table is None:
            return None
        if self.at_window_clause():
            return self.parse_window_clause(table, first)
        if self.at_within():
            self.parse_within(table)
        if not self._at_window():
            mark(table, (first.start, self._prev.end + 1))
            return table
        windowed = Windowed(this=table, session=self._next.text.upper() == "SESSION")
        self._advance(2)
        self._parse_duration(windowed, "range_us")
        if not windowed.args["session"] and self._match_text_seq("SLIDE"):
            self._parse_duration(windowed, "slide_us")
        if not self._match(TokenType.R_BRACKET):
            self._refuse_window("expected ] at the end of the window")
        if not table.args.get("alias"):
            table.set("alias", self._parse_table_alias())
        mark(windowed, (first.start, self._prev.end + 1))
        return windowed

    def _at_window(self) -> bool:
        return self._curr.token_type == TokenType.L_BRACKET and self._next.text.upper() in ("RANGE", "SESSION")

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> exp.Table | exp.Dot | None:
        table = super()._parse_table_parts(*args, **kwargs)
        if table is not None:
            self._refuse_foreign_word()
        return table

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        if self.at_window_clause() or self.at_within():
            return None
        self._refuse_foreign_word()
        return super()._parse_table_alias(*args, **kwargs)

    def _refuse_foreign_word(self) -> None:
        """With AS it is a name, and so it is in quotes."""
        word = self._curr.text.upper()
        joins = word in JOINS and self._next.token_type == TokenType.JOIN  # refused as a join
        quoted = self._curr.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
        known = self.at_window_clause() or self.at_within()
        if not quoted and not joins and not known and word in FOREIGN:
            raise ForeignWord(self._curr)

    def _parse_duration(self, windowed: Windowed, key: str) -> None:
        number = self._curr
        if number.token_type != TokenType.NUMBER or not number.text.isdecimal():
            self._refuse_window("expected a duration such as 10 SECONDS")
        self._advance()
        unit = self._curr.text.upper().removesuffix("S")
        unit = "MILLISECOND" if unit == "M" and self._curr.text.upper() == "MS" else unit
        if unit not in UNITS:
            self._refuse_window("expected a unit: ms, seconds, minutes, hours or days")
        self._advance()
        # Comparing lengths first keeps a number of a million digits from being converted.
        length = int(number.text) * UNITS[unit] if len(number.text) < 20 else LONGEST_US + 1
        windowed.set(key, length)
        windowed.meta[key] = (number.start, number.end + 1)

    def _refuse_window(self, message: str, token: Token | None = None) -> NoReturn:
        raise BadWindow(message, (token.start, token.end + 1) if token else self.place())


def _moved(generator: Generator, node: exp.TimestampAdd) -> str:
    """As an INTERVAL in the largest unit, or with timestampadd where the length is calculated."""
    moment, count, unit = node.this, node.expression, node.args["unit"].name
    number = whole_number(count)
    if number is None or (unit != "MONTH" and abs(number) > MOST_US // FIXED[unit]):
        return generator.func("TIMESTAMPADD", exp.var(unit), count, moment)
    if unit == "MICROSECOND" and number:
        unit, size = next((u, s) for u, s in SHOWN.items() if number % s == 0)
        number //= size
    sign = "-" if number < 0 else "+"
    return f"{generator.sql(moment)} {sign} INTERVAL '{abs(number)}' {unit}"


def _windowed(generator: Generator, node: Windowed) -> str:
    slide = SESSION if node.args.get("session") else node.args.get("slide_us")
    return f"{generator.sql(node, 'this')} {window(node.args['range_us'], slide)}"


def _texts(generator: Generator, node: StringAgg) -> str:
    direction = " DESC" if node.args.get("descending") else ""
    value, separator, order = (generator.sql(node, key) for key in ("this", "separator", "order"))
    return f"STRING_AGG({value}, {separator} ORDER BY {order}{direction})"


def _decimal(generator: Generator, units: exp.Expr, scale: int) -> str:
    """What has such units, as a decimal."""
    if isinstance(units, Unscaled) and units.this.meta.get(PLACES) == scale:
        return generator.sql(units.this)
    if units.args.get("places") == scale and not units.args.get("cut"):
        return _converted(generator, units)
    return f"SCALED({generator.sql(units)}, {scale})"


def _converted(generator: Generator, node: exp.Expr) -> str:
    """A decimal that was rounded or cast."""
    given = node.this
    value = _decimal(generator, given, node.args["scale"]) if isinstance(node, Rescaled) else generator.sql(given)
    places, digits = node.args["places"], node.args["digits"]
    return f"CAST({value} AS DECIMAL({digits}, {places}))" if digits else f"ROUND({value}, {places})"


def _units(generator: Generator, node: exp.Expr) -> str:
    if node.args.get("cut"):
        return f"CAST({_decimal(generator, node.this, node.args['scale'])} AS BIGINT)"
    return f"UNSCALED({_converted(generator, node)})"


class TowpathGenerator(Generator):
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **Generator.TRANSFORMS,
        exp.StrPosition: lambda self, e: self.func("STRPOS", e.this, e.args["substr"]),
        exp.DayOfYear: lambda self, e: self.func("DAYOFYEAR", e.this),
        exp.DayOfWeekIso: lambda self, e: self.func("ISODOW", e.this),
        exp.SHA2: lambda self, e: self.func("SHA256", e.this),
        exp.TimestampAdd: _moved,
        exp.ArgMax: lambda self, e: self.func("MAX_BY", e.this, e.expression),
        exp.ArgMin: lambda self, e: self.func("MIN_BY", e.this, e.expression),
        exp.Quantile: lambda self, e: self.func("QUANTILE_CONT", e.this, e.args["quantile"]),
        StringAgg: _texts,
        exp.RegexpLike: lambda self, e: self.func("REGEXP_LIKE", e.this, e.expression),
        exp.RegexpExtract: lambda self, e: self.func("REGEXP_EXTRACT", e.this, e.expression, e.args["group"]),
        exp.RegexpReplace: lambda self, e: self.func(
            "REGEXP_REPLACE", e.this, e.expression, e.args["replacement"], exp.Literal.string("g")
        ),
        Unscaled: lambda self, e: f"UNSCALED({self.sql(e, 'this')})",
        Scaled: lambda self, e: _decimal(self, e.this, e.scale),
        TextOfUnits: lambda self, e: f"CAST({_decimal(self, e.this, e.args['scale'])} AS STRING)",
        **dict.fromkeys((Rescaled, UnitsOfText, UnitsOfDouble), _units),
        JsonValue: lambda self, e: self.func("JSON_VALUE", e.this, e.args["path"]),
        exp.TimeToStr: lambda self, e: self.func("STRFTIME", e.this, e.args["format"]),
        exp.UnixMicros: lambda self, e: self.func("UNIX_MICROS", e.this),
        exp.UnixMillis: lambda self, e: self.func("UNIX_MILLIS", e.this),
        exp.UnixSeconds: lambda self, e: self.func("UNIX_SECONDS", e.this),
        exp.TimestampDiff: lambda self, e: self.func("TIMESTAMPDIFF", e.args["unit"], e.expression, e.this),
        exp.TimestampTrunc: lambda self, e: self.func("DATE_TRUNC", exp.Literal.string(e.args["unit"].name), e.this),
        Windowed: _windowed,
    }
    TYPE_MAPPING: ClassVar[dict[exp.DType, str]] = {**Generator.TYPE_MAPPING, exp.DType.TEXT: "STRING"}


class TowpathDialect(Dialect):
    Tokenizer = TowpathTokenizer
    Parser = TowpathParser
    Generator = TowpathGenerator
