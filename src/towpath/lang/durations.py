"""Lengths of time as other dialects write them: `INTERVAL '10' SECOND`, `INTERVAL '1 hour 30 minutes'`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from sqlglot import exp

from towpath.lang.literals import is_string
from towpath.lang.query import UNITS
from towpath.lang.times import CALENDAR, MOST_MONTHS, MOST_US

_LENGTHS = {**UNITS, "MICROSECOND": 1, "WEEK": 7 * UNITS["DAY"]}
_SHORT = {"MS": "MILLISECOND", "S": "SECOND", "SEC": "SECOND", "MIN": "MINUTE", "H": "HOUR", "HR": "HOUR", "D": "DAY"}
_SEVERAL = "an INTERVAL of months and of days is not supported: add one after the other"
_PART = re.compile(r"\s*([+-]?)\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([A-Za-z]+)")


class NoDuration(Exception):
    """The reason why something is no length of time."""


def duration_us(node: exp.Expr) -> int:
    """Microseconds of an INTERVAL, or of a text such as '10 minutes'."""
    if is_string(node):
        return _read(node.this)
    if not isinstance(node, exp.Interval):
        raise NoDuration("expected a length of time, such as INTERVAL '10' SECOND")
    return _read(_text(node))


def length(node: exp.Interval) -> tuple[int, str]:
    """An INTERVAL as a count of MONTHs, of DAYs, or of MICROSECONDs."""
    text = _text(node)
    units = {_unit(word) for _, _, word in _parts(text)}
    if units & set(CALENDAR):
        return _months(text, units), "MONTH"
    total = _read(text)
    if abs(total) > MOST_US:
        raise NoDuration("an INTERVAL is at most 10,000 years")
    days, rest = divmod(total, UNITS["DAY"])
    return (days, "DAY") if units <= {"DAY", "WEEK"} and not rest else (total, "MICROSECOND")


def _months(text: str, units: set[str]) -> int:
    if units - set(CALENDAR):
        raise NoDuration(_SEVERAL)
    counts = (Fraction(f"{sign}{number}") * CALENDAR[_unit(word)] for sign, number, word in _parts(text))
    total = sum(counts, Fraction(0))
    if total.denominator != 1 or abs(total) > MOST_MONTHS:
        raise NoDuration("an INTERVAL has whole months, at most 10,000 years of them")
    return int(total)


def _text(node: exp.Interval) -> str:
    value, unit = node.this, node.args.get("unit")
    if unit is not None and not isinstance(unit, exp.Var):
        raise NoDuration("an INTERVAL of several units (HOUR TO MINUTE) is not supported")
    sign, literal = ("-", value.this) if isinstance(value, exp.Neg) else ("", value)
    if not isinstance(literal, exp.Literal):
        hint = "timestampadd(SECOND, n, t) takes any number"
        raise NoDuration(f"the length of an INTERVAL is a literal, such as INTERVAL '10' SECOND; {hint}")
    return f"{sign}{literal.this} {unit.name if unit else ''}"


def _unit(word: str) -> str:
    unit = word.upper()
    unit = _SHORT.get(unit) or _SHORT.get(unit.removesuffix("S")) or unit.removesuffix("S")
    if unit not in _LENGTHS and unit not in CALENDAR:
        raise NoDuration(f"{word} is no unit of time")
    return unit


def unit_us(word: str) -> int:
    unit = _unit(word)
    if unit in CALENDAR:
        raise NoDuration(f"windows and bounds in calendar units are missing: a {unit} has no fixed length")
    return _LENGTHS[unit]


def _parts(text: str) -> Iterator[tuple[str, str, str]]:
    """The sign, number and unit of each part of a length of time."""
    at, text = 0, text.rstrip()
    while at < len(text) or not at:
        part = _PART.match(text, at)
        if part is None:
            raise NoDuration(f"'{text[:40]}' is no length of time with its unit, such as '10 seconds'")
        sign, number, word = part.groups()
        yield sign, number, word
        at = part.end()


def _read(text: str) -> int:
    total = sum((Fraction(f"{sign}{number}") * unit_us(word) for sign, number, word in _parts(text)), Fraction(0))
    if total.denominator != 1:
        raise NoDuration(f"'{text[:40]}' is finer than a microsecond")
    return total.numerator
