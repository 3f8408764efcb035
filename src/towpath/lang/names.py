"""The names of output columns that got none from the query."""

from __future__ import annotations

import re

from sqlglot import TokenType, exp

from towpath.lang.dialect import TowpathDialect

LONGEST = 60
_WORDS = {
    **{"+": "plus", "-": "minus", "*": "times", "/": "by", "%": "mod", "||": "and"},
    **{"=": "eq", "<>": "ne", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"},
}


def output_name(raw: exp.Expr, text: str) -> str:
    """The alias, the column's name, or a snake-case reading of the text: sum(b.price) -> sum_price."""
    if isinstance(raw, exp.Alias | exp.Column):
        return str(raw.alias_or_name)
    tokens = TowpathDialect().tokenize(text.replace("(*)", "()"))
    words = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        qualifier = following is not None and following.token_type == TokenType.DOT
        if not qualifier:
            words.append(_WORDS.get(token.text, token.text))
    name = "_".join(filter(None, (re.sub(r"\W+", "_", word).strip("_").lower() for word in words)))
    return name[:LONGEST].rstrip("_") or "value"
