"""Arguments that are part of a call's meaning: literals of a certain form, and the names of units of time."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from towpath.lang.literals import is_string, whole_number

Build = Callable[[list[exp.Expression]], exp.Expression]  # what a call becomes, of its arguments


class BadArgument(Exception):
    """A call with an argument that its function does not take, whatever its type."""

    def __init__(self, place: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint


def text_of(name: str, arguments: list[exp.Expression], place: int, *, empty: bool = False) -> str:
    """The text in quotes that a function takes there."""
    value = arguments[place]
    if not is_string(value):
        raise BadArgument(place, f"{name} needs a text in quotes as argument {place + 1}")
    if not value.name and not empty:
        raise BadArgument(place, f"{name} needs a text that is not empty as argument {place + 1}")
    return str(value.name)


def number_of(name: str, arguments: list[exp.Expression], place: int, among: range) -> int:
    """The whole number that a function takes there."""
    number = whole_number(arguments[place])
    if number is None or number not in among:
        message = f"{name} needs a whole number from {among[0]} to {among[-1]:,} as argument {place + 1}"
        raise BadArgument(place, message)
    return number


def unit_of(node: exp.Expr) -> exp.Expression:
    """The name of a unit, as a word or in quotes, before anybody takes it for a column; otherwise the node."""
    is_word = isinstance(node, exp.Var) or (isinstance(node, exp.Column) and not node.table)
    if not is_word and not is_string(node):
        raise BadArgument(0, "expected a unit of time, such as MINUTE")
    return exp.var(node.name.upper())
