"""Lengths of time as other dialects write them: `INTERVAL '10' SECOND`, `INTERVAL '1 hour 30 minutes'`."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from towpath.lang.literals import is_string
from towpath.lang.query import UNITS

_LENGTHS = {**UNITS, "MICROSECOND": 1, "WEEK": 7 * UNITS["DAY"]}
_SHORT = {"MS": "MILLISECOND", "S": "SECOND", "SEC": "SECOND", "MIN": "MINUTE", "H": "HOUR", "HR": "HOUR", "D": "DAY"}
_CALENDAR = ("MONTH", "QUARTER", "YEAR")
_PART = re.compile(r"\s*([+-]?)\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([A-Za-z]+)")


class NoDuration(Exception):
    """The reason why something is no length of time."""


def duration_us(node: exp.Expr) -> int:
    """Microseconds of an INTERVAL, or of a text such as '10 minutes'."""
    if is_string(node):
        return _read(node.this)
    if not isinstance(node, exp.Interval):
        raise NoDuration("expected a length of time, such as INTERVAL '10' SECOND")
    value, unit = node.this, node.args.get("unit")
    if unit is not None and not isinstance(unit, exp.Var):
        raise NoDuration("an INTERVAL of several units (HOUR TO MINUTE) is not supported")
    negative = isinstance(value, exp.Neg)
    literal = value.this if negative else value
    if not isinstance(literal, exp.Literal):
        raise NoDuration("the length of an INTERVAL is a literal, such as INTERVAL '10' SECOND")
    length = _read(f"{literal.this} {unit.name if unit else ''}")
    return -length if negative else length


def unit_us(word: str) -> int:
    unit = word.upper()
    unit = _SHORT.get(unit) or _SHORT.get(unit.removesuffix("S")) or unit.removesuffix("S")
    if unit in _CALENDAR:
        raise NoDuration(f"windows and bounds in calendar units are missing: a {unit} has no fixed length")
    if unit not in _LENGTHS:
        raise NoDuration(f"{word} is no unit of time")
    return _LENGTHS[unit]


def _read(text: str) -> int:
    total, at, text = Fraction(0), 0, text.rstrip()
    while at < len(text) or not at:
        part = _PART.match(text, at)
        if part is None:
            raise NoDuration(f"'{text[:40]}' is no length of time with its unit, such as '10 seconds'")
        sign, number, unit = part.groups()
        total += (-1 if sign == "-" else 1) * Fraction(number) * unit_us(unit)
        at = part.end()
    if total.denominator != 1:
        raise NoDuration(f"'{text[:40]}' is finer than a microsecond")
    return total.numerator
