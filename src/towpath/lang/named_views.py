"""Views with a name: those of a job, and those that CREATE VIEW makes in front of a query's SELECT.

Both are put into the WITH of the query. So its text says all that it means, wherever it is kept, and whatever the job
says by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from sqlglot import Token, TokenType, exp

from towpath.lang.statements import VIEWS, DialectStatement, unwrap
from towpath.lang.syntax import STARTS, tokens_of, tree_of
from towpath.lang.table_windows import UnsupportedSpelling
from towpath.lang.underline import Composed, Problems, TextSpan

NONE: Mapping[str, str] = {}
VIEWS_KEPT = 1_024  # of a job, however many queries read them


def compose(sql: str, views: Mapping[str, str] = NONE) -> Composed:
    """A query's text with the views that it reads in its WITH. Each of `views` stands before those that read it.

    A text that cannot be read stays as it is: who reads it then says why.
    """
    if not views and ";" not in sql:
        return Composed(sql)
    statements = _statements(sql)
    if not statements or any(view.kind not in VIEWS for view in statements[:-1]):
        return Composed(sql)
    own = [(view.result, _span(view.tokens)) for view in statements[:-1]]
    read = {name for statement in statements for name in _tables(statement.tokens, sql)}
    read -= {name.lower() for name, _ in own}
    inserted: list[tuple[str, str | TextSpan]] = [
        (n, _whole(n, tuple(views.items()))) for n in views if n.lower() in read
    ]
    inserted += own
    query = statements[-1].tokens
    if not inserted or query[0].token_type not in STARTS or _second_word(query) == "RECURSIVE":
        return Composed(sql)
    has_names = query[0].token_type == TokenType.WITH  # others go before them
    at = query[0].end + 1 if has_names else query[0].start
    begin = 0 if len(statements) == 1 else _begin(sql, statements[-2])
    pieces: list[str | TextSpan] = [(begin, at), "" if has_names else "WITH"]
    for number, (name, body) in enumerate(inserted):
        pieces += [f"{',' if number else ''} {exp.to_identifier(name, quoted=True).sql()} AS (", body, ")"]
    return _put_together(sql, [*pieces, "," if has_names else "\n", (at, len(sql))])


def in_order(views: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Views with each before those that read it, and the names of those that read themselves, or each other."""
    names = {name.lower(): name for name in views}
    reads = {name: {names[table] for table in tables(text) if table in names} for name, text in views.items()}
    found: dict[str, str] = {}
    while ready := [name for name in views if name not in found and reads[name] <= found.keys()]:
        found |= {name: views[name] for name in ready}
    return found, [name for name in views if name not in found]


def tables(sql: str) -> set[str]:
    """What a text reads by name, in lower case; nothing if it cannot be read."""
    return {name for statement in _statements(sql) for name in _tables(statement.tokens, sql)}


def _statements(sql: str) -> list[DialectStatement]:
    tokens = tokens_of(sql, Problems(sql)) or []
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    try:
        return [unwrap(part) for part in parts if part]
    except UnsupportedSpelling:
        return []


def _tables(tokens: Sequence[Token], sql: str) -> set[str]:
    tree = tree_of(list(tokens), sql, Problems(sql))
    if tree is None:
        return set()
    clause = tree.args.get("with_")
    own = {name.alias.lower() for name in clause.expressions} if clause else set()
    return {table.name.lower() for table in tree.find_all(exp.Table)} - own


@lru_cache(VIEWS_KEPT)
def _whole(name: str, views: tuple[tuple[str, str], ...]) -> str:
    """The SELECT of a view, with the views that it reads in a WITH of its own: what its reader names is none of its."""
    before = dict(takewhile(lambda view: view[0] != name, views))
    text = compose(dict(views)[name], before).text
    return text[slice(*_span(_statements(text)[-1].tokens))]


def _put_together(sql: str, pieces: Iterable[str | TextSpan]) -> Composed:
    """Of new text, and of parts of what was written."""
    made, places, length = list[str](), list[tuple[int, int, int]](), 0
    for piece in pieces:
        text = piece if isinstance(piece, str) else sql[slice(*piece)]
        if not isinstance(piece, str):
            places.append((length, length + len(text), piece[0]))
        made.append(text)
        length += len(text)
    return Composed("".join(made), sql, tuple(places))


def _begin(sql: str, before: DialectStatement) -> int:
    """Where the statement behind another one begins."""
    return sql.index(";", before.tokens[-1].end + 1) + 1


def _span(tokens: Sequence[Token]) -> TextSpan:
    return tokens[0].start, tokens[-1].end + 1


def _second_word(tokens: Sequence[Token]) -> str:
    return tokens[1].text.upper() if len(tokens) > 1 else ""
