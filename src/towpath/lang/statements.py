"""What other dialects write around a SELECT: `INSERT INTO x`, `CREATE MATERIALIZED VIEW x AS`, `EMIT FINAL`.

A query's results are kept under the query's name, so these say little; what they say beyond that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from towpath.lang.functions import AGGREGATES
from towpath.lang.table_windows import UnsupportedSpelling
from towpath.lang.underline import TextSpan

VIEW, MATERIALIZED_VIEW = VIEWS = ("VIEW", "MATERIALIZED VIEW")
_KINDS = ("TABLE", "STREAM", "SINK", "PIPELINE", VIEW)
_OPTIONS = "where streams come from and where results go is written in the job file"
_UPDATES = "updating results are missing: a window gives its result once, when it is complete (EMIT FINAL)"


@dataclass(frozen=True)
class DialectStatement:
    """The tokens of the SELECT, and what stood around them."""

    tokens: list[Token]
    result: str = ""  # the name that the text gives to its results
    kind: str = ""  # what the results are to be, in the words behind CREATE
    changes: TextSpan | None = None  # EMIT CHANGES
    other: bool = False  # whether there was anything


def unwrap(tokens: list[Token]) -> DialectStatement:
    """The SELECT of a statement. Raises UnsupportedSpelling for what has no place."""
    tokens = [_function_name(token, following) for token, following in pairwise([*tokens, tokens[-1]])]
    return _without_emit(_Head(tokens).read())


def refuse_changes(at: TextSpan) -> UnsupportedSpelling:
    return UnsupportedSpelling("EMIT CHANGES is not supported for an aggregate", _UPDATES, at)


def _function_name(token: Token, following: Token) -> Token:
    """`window(at, '10 minutes')` and `SESSION(at, ...)` are calls; the keywords would end GROUP BY."""
    if token.token_type not in (TokenType.WINDOW, TokenType.SESSION) or following.token_type != TokenType.L_PAREN:
        return token
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)


class _Head:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def read(self) -> DialectStatement:
        kind = ""
        if self._take("INSERT"):
            self._must("INTO")
            self._take("TABLE")
            name = self._name()
            if self._word() == "(" and self._word(1) != "SELECT":
                self._refuse("a list of columns is not supported here", "name the columns in SELECT with AS")
        elif self._word() == "CREATE":
            name, kind = self._created()
        else:
            return DialectStatement(self._tokens)
        rest = self._tokens[self._at :]
        if not rest:
            self._refuse("the statement has no SELECT", "")
        self._refuse_options(rest)
        return DialectStatement(rest, name, kind, other=True)

    def _created(self) -> tuple[str, str]:
        """The name and the kind of what is made."""
        self._take("CREATE")
        if self._take("OR"):
            self._must("REPLACE")
        if self._take("MATERIALIZED"):
            self._must(VIEW)
            kind = MATERIALIZED_VIEW
        else:
            self._take("TEMPORARY") or self._take("TEMP")
            kind = next((kind for kind in _KINDS if self._take(kind)), "")
        if not kind:
            hint = "a query is a SELECT, or CREATE MATERIALIZED VIEW, TABLE or STREAM name AS SELECT"
            self._refuse(f"CREATE {self._word()} is not supported", hint)
        if self._take("IF"):
            self._must("NOT")
            self._must("EXISTS")
        name = self._name()
        if self._word() in ("WITH", "("):
            self._refuse("options and columns are not supported here", _OPTIONS)
        self._must("AS")
        return name, kind

    def _refuse_options(self, rest: list[Token]) -> None:
        """Options behind the SELECT, as a sink has them."""
        depth = 0
        for token, following in pairwise(rest):
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0 and token.token_type == TokenType.WITH and following.token_type == TokenType.L_PAREN:
                raise UnsupportedSpelling("options are not supported here", _OPTIONS, (token.start, token.end + 1))

    def _name(self) -> str:
        parts = [self._next().text]
        while self._take("."):
            parts.append(self._next().text)
        return ".".join(parts)

    def _word(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].text.upper() if at < len(self._tokens) else ""

    def _take(self, word: str) -> bool:
        # sqlglot makes one token of some pairs of words.
        taken = self._word() == word
        self._at += taken
        return taken

    def _must(self, word: str) -> None:
        if not self._take(word):
            self._refuse(f"expected {word}", "")

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            self._refuse("the statement ends too early", "")
        self._at += 1
        return self._tokens[self._at - 1]

    def _refuse(self, message: str, hint: str) -> None:
        token = self._tokens[min(self._at, len(self._tokens) - 1)]
        raise UnsupportedSpelling(message, hint, (token.start, token.end + 1))


def _without_emit(statement: DialectStatement) -> DialectStatement:
    """The end of the text: EMIT FINAL (ksqlDB) and EMIT ON WINDOW CLOSE (RisingWave) say what windows do anyway."""
    tokens = statement.tokens
    words = [token.text.upper() for token in tokens[-4:]]
    if words == ["EMIT", "ON", "WINDOW", "CLOSE"]:
        return replace(statement, tokens=tokens[:-4], other=True)
    if words[-2:] == ["EMIT", "FINAL"]:
        return replace(statement, tokens=tokens[:-2], other=True)
    if words[-2:] == ["EMIT", "CHANGES"]:
        place = (tokens[-2].start, tokens[-1].end + 1)
        return replace(statement, tokens=tokens[:-2], changes=place, other=True)
    return statement


def aggregates(tree: exp.Expr) -> bool:
    """Whether a SELECT of the tree aggregates, by what it says."""
    return any(
        select.args.get("group") or any(call.name.lower() in AGGREGATES for call in select.find_all(exp.Anonymous))
        for select in tree.find_all(exp.Select)
    )
