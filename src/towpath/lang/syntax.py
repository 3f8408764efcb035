"""Text to tree: one statement, or one problem that says where the text stops being SQL."""

from __future__ import annotations

import re
import sys
import unicodedata
from itertools import pairwise

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from towpath.lang.dialect import BadWindow, ForeignWord, TowpathDialect, TowpathParser
from towpath.lang.foreign import FOREIGN
from towpath.lang.statements import VIEW, DialectStatement, unwrap
from towpath.lang.table_windows import UnsupportedSpelling
from towpath.lang.underline import Problems

LONGEST_TEXT = 100_000
MOST_OPEN_JOINS = 8
# sqlglot takes about 15 calls for a level of parentheses. What can be read must not depend on how deep in the program
# it is read, so there is room for the deepest nesting wherever that is.
MOST_CALLS = 10_000
sys.setrecursionlimit(max(sys.getrecursionlimit(), MOST_CALLS))
STARTS = (TokenType.SELECT, TokenType.L_PAREN, TokenType.WITH)
AFTER_NO_COMMA = (TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM)
# A quote or comment that is closed, or what is neither. A closing quote stands alone, a doubled one is text.
# Without possessive quantifiers, which the `re` of Python 3.11.2 (Debian 12) gets wrong.
_CLOSED = re.compile(
    r"""'[^']*(?:''[^']*)*'(?!')|"[^"]*(?:""[^"]*)*"(?!")|`[^`]*(?:``[^`]*)*`(?!`)"""
    r"""|--[^\n]*|/\*.*?\*/|/(?!\*)|-(?!-)|[^'"`/-]+""",
    re.DOTALL,
)


def read(sql: str, problems: Problems) -> tuple[DialectStatement, exp.Expr] | None:
    """The only statement in the text and the tree of its SELECT, or None after noting the problem."""
    if len(sql) > LONGEST_TEXT:
        problems.add((0, 1), f"the text has {len(sql)} characters, at most {LONGEST_TEXT} are allowed")
        return None
    if _holds_no_text(sql, problems):
        return None
    tokens = tokens_of(sql, problems)
    if tokens is None:
        return None
    try:
        statement = unwrap(tokens)
    except UnsupportedSpelling as error:
        problems.add(error.place, error.message, error.hint)
        return None
    if statement.kind == VIEW:
        hint = "put the SELECT that reads it behind a semicolon; or name the view under `views` in the job file"
        problems.add((tokens[0].start, tokens[-1].end + 1), "a view alone puts nothing out", hint)
        return None
    if not _one_select(statement.tokens, sql, problems):
        return None
    tree = tree_of(statement.tokens, sql, problems)
    return None if tree is None else (statement, tree)


def tree_of(tokens: list[Token], sql: str, problems: Problems) -> exp.Expr | None:
    if _joins_are_open(tokens, problems):
        return None
    parser = TowpathParser(ErrorLevel.IMMEDIATE, error_message_context=len(sql), dialect=TowpathDialect())
    try:
        return parser.parse(tokens, sql)[0]
    except ParseError as error:
        _syntax_problem(error, sql, problems)
    except UnsupportedSpelling as error:
        problems.add(error.place, error.message, error.hint)
    except BadWindow as error:
        _note(error.message, *error.place, sql, problems)
    except ForeignWord as error:
        word = error.word.upper()
        hint = f"{FOREIGN[word]}; the name of an input goes behind AS"
        problems.add(error.place, f"{word} is not supported behind an input", hint)
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        # sqlglot trips over some malformed texts instead of refusing them, such as `FROM a ? at x`.
        problems.add(parser.place(), "the text cannot be read around here")
    return None


def _joins_are_open(tokens: list[Token], problems: Problems) -> bool:
    """Behind each JOIN without ON, sqlglot looks for its ON behind the joins that follow, and if there is none it reads
    those again: twice as often with each. No query has that many."""
    left: list[Token] = []
    waiting: list[list[Token]] = [[]]  # for each parenthesis
    for token in tokens:
        match token.token_type:
            case TokenType.JOIN:
                waiting[-1].append(token)
            case TokenType.ON | TokenType.USING if waiting[-1]:
                waiting[-1].pop()
            case TokenType.L_PAREN:
                waiting.append([])
            case TokenType.R_PAREN if len(waiting) > 1:
                left += waiting.pop()
    left += (token for opened in waiting for token in opened)
    if len(left) <= MOST_OPEN_JOINS:
        return False
    first = min(left, key=lambda token: token.start)
    hint = "say behind each JOIN what it joins on"
    problems.add((first.start, first.end + 1), f"{len(left)} JOINs have no ON", hint)
    return True


def _holds_no_text(sql: str, problems: Problems) -> bool:
    for place, character in enumerate(sql):
        if character == "\0" or unicodedata.category(character) == "Cs":
            what = "a NUL character" if character == "\0" else "half of a character (a lone surrogate)"
            problems.add((place, place + 1), f"the text holds {what}", "take it out")
            return True
    return False


def tokens_of(sql: str, problems: Problems) -> list[Token] | None:
    try:
        tokens = TowpathDialect().tokenize(sql)
    except TokenError:
        problems.add((_first_open(sql), len(sql)), "a quote or a comment that begins here does not end", "close it")
        return None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        problems.add((0, 1), "the query is empty", "write SELECT ... FROM a stream")
        return None
    return tokens


def _first_open(sql: str) -> int:
    """Where the first quote or comment begins that is left open."""
    start = 0
    while closed := _CLOSED.match(sql, start):
        start = closed.end()
    return start if start < len(sql) else 0


def _one_select(tokens: list[Token], sql: str, problems: Problems) -> bool:
    for token, following in pairwise(tokens):
        # sqlglot lets commas go that separate nothing.
        if token.token_type == TokenType.COMMA and following.token_type in AFTER_NO_COMMA:
            problems.add((token.start, token.end + 1), "something is missing after the comma")
            return False
        if token.token_type == TokenType.SEMICOLON:
            place = (following.start, tokens[-1].end + 1)
            problems.add(place, "a query is one statement, here begins another", "make it a query of its own")
            return False
    first = tokens[0]
    if first.token_type not in STARTS:
        word = sql[first.start : first.end + 1].split()[0]
        problems.add((first.start, first.start + len(word)), f"a query starts with SELECT, not with {word}")
        return False
    return True


def _syntax_problem(error: ParseError, sql: str, problems: Problems) -> None:
    details = error.errors[0]
    # The context is as long as the text, so what stands before the highlight is the whole text before it.
    start = len(details["start_context"] or "")
    _note(str(details["description"]), start, start + len(details["highlight"] or ""), sql, problems)


def _note(description: str, start: int, end: int, sql: str, problems: Problems) -> None:
    found, end = sql[start:end], max(start + 1, end)
    last = not sql[end:].strip("; \n\t")
    problems.add((start, end), _in_words(description, found, last))


def _in_words(description: str, found: str, last: bool) -> str:
    if description.startswith("Required keyword") or "Expected table name" in description:
        return f"the query ends too early, after {found}" if last else f"something is missing around {found}"
    if "following CTE" in description:
        return "a SELECT has to follow what WITH names"
    if "Invalid expression" in description:
        return f"did not expect {found} here"
    wanted = re.sub(r"^Expect(ing|ed) ", "expected ", description).rstrip(".")
    return f"{wanted}, got {found}" if wanted.startswith("expected") and not last else wanted
