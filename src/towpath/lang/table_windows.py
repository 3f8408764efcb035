"""Windows that other dialects write in FROM, read by the parser.

`TABLE(TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '10' SECOND))` of Flink, `HOP(s, at, slide, size)` of RisingWave, and
`s WINDOW TUMBLING (SIZE 10 SECONDS)` and `JOIN s WITHIN 10 SECONDS` of ksqlDB.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from sqlglot import Token, TokenType, exp
from sqlglot.parser import Parser

from towpath.lang.durations import NoDuration, duration_us, unit_us
from towpath.lang.underline import TextSpan, mark, span

FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
CLAUSES = ("TUMBLING", "HOPPING", "SESSION")
MISSING = {
    "CUMULATE": "cumulating windows (CUMULATE) are missing",
}
_NAMED = {"DATA": "data", "TIMECOL": "time", "SIZE": "size", "GAP": "size", "SLIDE": "slide", "OFFSET": "offset"}
_ORDER = {
    "TUMBLE": ("data", "time", "size", "offset"),
    "HOP": ("data", "time", "slide", "size", "offset"),
    "SESSION": ("data", "time", "size"),
}


class UnsupportedSpelling(Exception):
    """Something of another dialect that the parser knows, and the language has not."""

    def __init__(self, message: str, hint: str, place: TextSpan) -> None:
        super().__init__(message)
        self.message, self.hint, self.place = message, hint, place


class TableWindow(exp.Expression):
    """An input of FROM with a window of another dialect: `time` and `function` are what it says besides."""

    arg_types: ClassVar[dict[str, bool]] = {
        **{"this": True, "range_us": True, "slide_us": False},
        **{"time": False, "function": False, "session": False, "partition": False},
    }


class TableWindowParser(Parser):
    def at_window_function(self) -> bool:
        if self._next is None or self._next.token_type != TokenType.L_PAREN:
            return False
        return self._curr.text.upper() in ("TABLE", *FUNCTIONS) and self._curr.token_type != TokenType.IDENTIFIER

    def parse_window_function(self) -> TableWindow:
        first = self._curr
        wrapped = self._match_text_seq("TABLE") and self._match(TokenType.L_PAREN)
        kind = self._curr
        if kind.text.upper() not in FUNCTIONS or self._next.token_type != TokenType.L_PAREN:
            self._refuse("TABLE(...) is not supported", "table functions other than TUMBLE and HOP are missing", kind)
        name = kind.text.upper()
        if name in MISSING:
            self._refuse(f"{name} is not supported", MISSING[name], kind)
        self._advance(2)
        arguments = self._window_arguments(name)
        if wrapped:
            self._closing()
        if "offset" in arguments:
            self._refuse(f"{name} with an offset is not supported", "windows that begin at an offset are missing", kind)
        lacking = [a for a in _ORDER[name] if a not in (*arguments, "offset")]
        if lacking:
            lengths = {"HOP": "slide, size", "SESSION": "gap"}.get(name, "size")
            order = f"a stream, DESCRIPTOR(its time column), {lengths}"
            self._refuse(f"{name} takes {order}", "", kind)
        table = arguments["data"]
        alias = self._parse_table_alias()
        if alias:
            table.set("alias", alias)
        given = self._lengths(arguments["size"], arguments.get("slide"))
        found = TableWindow(this=table, time=arguments["time"], function=name, session=name == "SESSION", **given)
        found.set("partition", table.meta.pop("partition", None))
        mark(found, (first.start, self._prev.end + 1))
        mark(table, (first.start, self._prev.end + 1))
        return found

    def _window_arguments(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            named = self._next is not None and self._next.token_type == TokenType.FARROW
            key = _NAMED.get(self._curr.text.upper()) if named else next(iter(_ORDER[name][len(found) :]), None)
            if key is None or key in found:
                self._refuse(f"{name} has an argument too many", "", self._curr)
            if named:
                self._advance(2)
            found[key] = self._window_argument(name, key)
            if not self._match(TokenType.COMMA):
                break
        self._closing()
        return found

    def _window_argument(self, name: str, key: str) -> exp.Expr:
        if key == "data":
            self._match_text_seq("TABLE")
            table = self._parse_table_parts() or exp.Null()
            if self._curr.token_type == TokenType.PARTITION_BY or self._curr.text.upper() == "PARTITION":
                table.meta["partition"] = self._partition(name)
            return table
        if key == "time":
            described = self._match_text_seq("DESCRIPTOR") and self._match(TokenType.L_PAREN)
            column = self._parse_column()
            if described:
                self._closing()
            if not isinstance(column, exp.Column):
                self._refuse("expected the time column of the stream", "", self._prev)
            return column
        number = self._curr
        if number.token_type == TokenType.NUMBER and self._next.token_type == TokenType.VAR:  # Timeplus: 10s
            length = exp.Interval(this=exp.Literal.string(number.text), unit=exp.var(self._next.text))
            mark(length, (number.start, self._next.end + 1))
            self._advance(2)
            return length
        return self._parse_bitwise() or exp.Null()

    def _partition(self, name: str) -> list[exp.Expr]:
        """What each session is of, beside the window: to be compared with GROUP BY."""
        if name != "SESSION":
            self._refuse("PARTITION BY is not supported in a window function", "put it into GROUP BY", self._curr)
        if not self._match(TokenType.PARTITION_BY):
            self._advance(2)
        keys = [self._parse_column()]
        # Behind the last one stands the comma of the next argument.
        while self._curr.token_type == TokenType.COMMA and self._next.text.upper() not in ("DESCRIPTOR", "TIMECOL"):
            self._advance()
            keys.append(self._parse_column())
        return [key for key in keys if key is not None]

    def _lengths(self, size: exp.Expr, slide: exp.Expr | None) -> dict[str, int]:
        found = {"range_us": self._length(size)}
        return found | ({"slide_us": self._length(slide)} if slide else {})

    def _length(self, node: exp.Expr) -> int:
        try:
            return duration_us(node)
        except NoDuration as error:
            place = span(node) or (self._prev.start, self._prev.end + 1)
            raise UnsupportedSpelling(str(error), "", place) from None

    def at_window_clause(self) -> bool:
        return self._curr.text.upper() == "WINDOW" and self._next is not None and self._next.text.upper() in CLAUSES

    def parse_window_clause(self, table: exp.Expr, first: Token) -> TableWindow:
        """`WINDOW TUMBLING (SIZE 10 SECONDS)`, `WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)`."""
        self._advance()
        kind = self._curr
        name = kind.text.upper()
        self._advance()
        if not self._match(TokenType.L_PAREN):
            self._refuse(f"expected ( behind {name}", "", self._curr)
        if name == "SESSION":
            gap = TableWindow(this=table, range_us=self._plain_duration(), session=True)
            self._closing()
            mark(gap, (first.start, self._prev.end + 1))
            return gap
        lengths: dict[str, int] = {}
        while not self._match(TokenType.R_PAREN):
            word = self._curr
            key = {"SIZE": "range_us", "ADVANCE": "slide_us"}.get(word.text.upper())
            if key is None:
                hint = "how late a row may come, and how long results are kept, is written in the job file"
                self._refuse(f"{word.text.upper()} is not supported in a window", hint, word)
            self._advance()
            self._match_text_seq("BY")
            lengths[key] = self._plain_duration()
            self._match(TokenType.COMMA)
        if set(lengths) != ({"range_us", "slide_us"} if name == "HOPPING" else {"range_us"}):
            self._refuse(f"{name} takes SIZE" + (" and ADVANCE BY" if name == "HOPPING" else ""), "", kind)
        found = TableWindow(this=table, **lengths)
        mark(found, (first.start, self._prev.end + 1))
        return found

    def parse_within(self, table: exp.Expr) -> None:
        """`WITHIN 10 SECONDS`, `WITHIN (before, after)`: bounds of a join, noted with its second input."""
        word = self._curr
        self._advance()
        if self._match(TokenType.L_PAREN):
            before = self._plain_duration()
            self._match(TokenType.COMMA)
            after = self._plain_duration()
            self._closing()
        else:
            before = after = self._plain_duration()
        if self._curr.text.upper() == "GRACE":
            hint = "how late a row may come is written in the job file, as the delay of the stream"
            self._refuse("GRACE PERIOD is not supported", hint, self._curr)
        table.meta["within"] = (before, after, (word.start, self._prev.end + 1))

    def at_within(self) -> bool:
        follows = (TokenType.NUMBER, TokenType.L_PAREN)
        return self._curr.text.upper() == "WITHIN" and self._next is not None and self._next.token_type in follows

    def _plain_duration(self) -> int:
        number, unit = self._curr, self._next
        if number.token_type != TokenType.NUMBER or not number.text.isdecimal() or len(number.text) > 18:
            self._refuse("expected a duration such as 10 SECONDS", "", number)
        self._advance(2)
        try:
            return int(number.text) * unit_us(unit.text)
        except NoDuration as error:
            self._refuse(str(error), "", unit)

    def _closing(self) -> None:
        if not self._match(TokenType.R_PAREN):
            self._refuse("expected )", "", self._curr)

    def _refuse(self, message: str, hint: str, token: Token | None) -> NoReturn:
        token = token if token and token.text else self._prev
        raise UnsupportedSpelling(message, hint, (token.start, token.end + 1))
