"""The meaning of LIKE, as a pattern that takes time in proportion to the text.

`%` stands for any text, `_` for one character, everything else for itself: as in DuckDB, no character escapes another.
"""

from __future__ import annotations

import re


def pattern(like: str) -> str:
    """A regular expression of Java, to be found in a text, for the right side of LIKE.

    The first place at which a piece between two `%` fits is as good as any later one, so each search ends with it: what
    an atomic group `(?>...)` has found is not looked for again when something behind it does not fit. With `.*` for
    every `%`, which is how Spark reads LIKE, '%a%a%a%a%z' takes the fifth power of the length of a text of many a.
    """
    first, *pieces = like.split("%")
    if not pieces:
        return rf"(?s)\A{_exactly(first)}\z"
    *middle, last = pieces
    found = "".join(f"(?>.*?{_exactly(piece)})" for piece in middle if piece)
    end = rf".*{_exactly(last)}\z" if last else ""
    return rf"(?s)\A{_exactly(first)}{found}{end}"


def _exactly(piece: str) -> str:
    return "".join("." if character == "_" else re.escape(character) for character in piece)
