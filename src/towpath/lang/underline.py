"""Where in the text a mistake is, and the collector of all mistakes of one text."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from sqlglot import exp

from towpath.errors import Mistake

TextSpan = tuple[int, int]  # offsets into the text: first character, one past the last

WIDTH = 110  # an excerpt of a longer line is cut around the mark


@dataclass(frozen=True)
class Composed:
    """A text that was put together, and where its parts stand in what somebody wrote."""

    text: str
    written: str = ""  # if it was put together
    parts: tuple[tuple[int, int, int], ...] = ()  # begin and end in the text, begin in what was written

    def place(self, found: TextSpan) -> TextSpan:
        """A place of the text in what was written; its beginning, for what nobody wrote there."""
        if not self.parts:
            return found
        start, end = found
        for begin, stop, there in self.parts:
            if begin <= start < stop:
                return there + start - begin, there + min(end, stop) - begin
        return 0, 1


class Problems:
    """Collects the mistakes of one SQL text, each once."""

    def __init__(self, sql: str, composed: Composed | None = None) -> None:
        self.sql = sql
        self._composed = composed or Composed(sql)
        self._found: dict[Mistake, TextSpan] = {}

    def add(self, at: exp.Expr | TextSpan, message: str, hint: str = "") -> None:
        found = at if isinstance(at, tuple) else span(at)
        place = self._composed.place(found or (0, len(self.sql)))
        written = self._composed.written or self.sql
        line, column = position(written, place[0])
        problem = Mistake(f"line {line}, column {column}", message, hint, underline(written, place))
        self._found.setdefault(problem, place)

    def __len__(self) -> int:
        return len(self._found)

    def in_order(self) -> list[Mistake]:
        return sorted(self._found, key=lambda problem: self._found[problem])

    def text(self, node: exp.Expr) -> str:
        """The node as the user wrote it, on one line."""
        found = span(node)
        return " ".join(self.sql[slice(*found)].split()) if found else node.sql()


def mark(node: exp.Expr, place: TextSpan) -> None:
    node.meta["start"], node.meta["end"] = place[0], place[1] - 1


def span(node: exp.Expr) -> TextSpan | None:
    """The part of the text a node was read from; the parser marks leaves and calls, the rest follows from them."""
    if node.meta.get("start") is not None:
        return node.meta["start"], node.meta["end"] + 1
    parts = [found for child in node.iter_expressions() if (found := span(child))]
    return (min(start for start, _ in parts), max(end for _, end in parts)) if parts else None


def position(sql: str, offset: int) -> tuple[int, int]:
    """Line and column, both counted from 1."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _visible(character: str) -> str:
    """As wide as one letter, so that the mark stays under its place: also a tab, and what no terminal takes."""
    if character.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in ("Cc", "Cs") else character


def underline(sql: str, place: TextSpan) -> str:
    """The line of the place, and ^^^^ below it; of a place that spans lines, its first line."""
    start, end = place
    first = sql.rfind("\n", 0, start) + 1
    last = sql.find("\n", start)
    last = len(sql) if last < 0 else last
    length = max(1, min(end, last) - start)
    cut = max(0, start - first - WIDTH // 2) if last - first > WIDTH else 0
    shown = sql[first + cut : min(last, first + cut + WIDTH)]
    left = "..." if cut else ""
    right = "..." if first + cut + WIDTH < last else ""
    line = left + "".join(map(_visible, shown)) + right
    if not line.strip():
        return ""
    indent = start - first - cut + len(left)
    return f"{line}\n{' ' * indent}{'^' * min(length, max(1, len(line) - indent))}"
