"""Small pieces of HTML, for notebooks: tables and texts, with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = (), note: str = "") -> str:
    """`right`: the columns of numbers. `note` stands below."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(_cell(value, n in right) for n, value in enumerate(row))}</tr>" for row in rows)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def text(title: str, lines: str) -> str:
    """Lines as they are, with their blanks."""
    return f"<p><b>{escape(title)}</b></p><pre>{escape(lines)}</pre>"


def _cell(value: object, right: bool) -> str:
    style = ' style="text-align: right"' if right else ' style="text-align: left"'
    return f"<td{style}>{escape(str(value))}</td>"
