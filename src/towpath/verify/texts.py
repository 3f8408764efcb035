"""Functions of texts that DuckDB's statements call, since DuckDB has another meaning of them or changes it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import duckdb

UPPER, LOWER, DOUBLE_TEXT = "towpath_upper", "towpath_lower", "towpath_double_text"
_BLANKS = " \t\n\r\f\v"
JSON_VALUE, DECIMAL_OF_TEXT = "towpath_json_value", "towpath_decimal_of_text"


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Makes the functions known to a connection."""
    for name, function, taken in FUNCTIONS:
        # The connection knows it, or another one to the same database has brought it.
        with suppress(duckdb.NotImplementedException, duckdb.CatalogException):
            con.create_function(name, function, taken, "VARCHAR", null_handling="special")  # type: ignore[call-overload]


def decimal_of_text(text: str | None) -> str | None:
    """A number in plain digits, as DuckDB reads it; NULL of what is none."""
    if text is None or not re.fullmatch(
        r"[-+]?(\d{1,100}(\.\d{0,100})?|\.\d+)(E-?\d+)?", text.strip(_BLANKS), re.ASCII
    ):
        return None
    return f"{Decimal(text.strip(_BLANKS)):f}"


def _of_value(function: Callable[[Any], str]) -> Callable[[Any], str | None]:
    return lambda value: None if value is None else function(value)


class _Members(list[tuple[str, Any]]):
    """An object, with its keys as they come."""


def json_value(text: str | None, path: str) -> str | None:
    """A text, number or boolean at a path, which is a list in JSON."""
    if text is None or len(text) > 1_000_000:
        return None
    try:
        value = json.loads(
            text, object_pairs_hook=_members, parse_int=_Number, parse_float=_Number, parse_constant=_none
        )
        if _levels(value) >= 1_000 or _has_half_a_character(value):
            return None
    except ValueError:
        return None
    for step in json.loads(path):
        if isinstance(value, _Members) and isinstance(step, str):
            value = dict(value).get(step)
        elif isinstance(value, list) and not isinstance(value, _Members) and isinstance(step, int):
            value = next(iter(value[step : step + 1]), None)
        else:
            return None
    if isinstance(value, _Number):
        return value.shown
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def _members(pairs: list[tuple[str, Any]]) -> _Members:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError
    return _Members(pairs)


def _none(word: str) -> Any:
    raise ValueError


class _Number:
    def __init__(self, text: str) -> None:
        if len(text) > 1_000:
            raise ValueError
        whole = Decimal(text) if text.removeprefix("-").isdecimal() else None
        integer = whole is not None and -(2**63) <= whole < 2**63
        self.shown = str(int(text)) if integer else double_text(float(text))


def _has_half_a_character(value: Any) -> bool:
    """In a text or a key, of a surrogate without the other."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and any("\ud800" <= c <= "\udfff" for c in one):
            return True
        waiting += [part for pair in one for part in pair] if isinstance(one, _Members) else []
        waiting += one if isinstance(one, list) and not isinstance(one, _Members) else []
    return False


def _levels(value: Any) -> int:
    """How deep objects and lists are within each other."""
    level, here = 0, [value]
    while here := [one for one in here if isinstance(one, list)]:
        level += 1
        here = [inner for one in here for inner in ([i for _, i in one] if isinstance(one, _Members) else one)]
    return level


def double_text(value: float) -> str:
    """The shortest digits that are this double, two at least, with an exponent from 1.0E7 on and below 0.001."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value + 0.0)
    two = f"{value:.1e}"  # the nearest of two digits: 4.9E-324, although 5E-324 is shorter
    sign, digits, exponent = Decimal(two if float(two) == value else repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"


FUNCTIONS: tuple[tuple[str, Callable[..., str | None], list[str]], ...] = (
    (UPPER, _of_value(str.upper), ["VARCHAR"]),
    (LOWER, _of_value(str.lower), ["VARCHAR"]),
    (DOUBLE_TEXT, _of_value(double_text), ["DOUBLE"]),
    (JSON_VALUE, json_value, ["VARCHAR", "VARCHAR"]),
    (DECIMAL_OF_TEXT, decimal_of_text, ["VARCHAR"]),
)
