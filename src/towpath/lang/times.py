"""Functions of time, and INTERVALs beside a timestamp or a date: what they become in the checked tree.

Whatever moves a timestamp or a date is a `TimestampAdd` by a count of one of three units: MICROSECOND, DAY (dates are
moved by it, too) and MONTH, which has no fixed length.
"""

from __future__ import annotations

from sqlglot import exp

from towpath.lang.arguments import BadArgument, Build, number_of
from towpath.lang.literals import cast, whole_number
from towpath.lang.query import UNITS
from towpath.schema import Type

FIXED = {"MICROSECOND": 1, **{unit: UNITS[unit] for unit in reversed(UNITS)}, "WEEK": 7 * UNITS["DAY"]}
CALENDAR = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
DAY = UNITS["DAY"]
# Of the years 1 to 9999, since 1970.
FIRST_AND_LAST_DAY = (-719_162, 2_932_896)
FIRST_AND_LAST_US = (FIRST_AND_LAST_DAY[0] * DAY, (FIRST_AND_LAST_DAY[1] + 1) * DAY - 1)
MOST_YEARS = 10_000
MOST_US, MOST_MONTHS = MOST_YEARS * 366 * DAY, MOST_YEARS * 12
EPOCH = "1970-01-01 00:00:00"
PARTS = {
    **{part.upper(): part for part in ("year", "quarter", "month", "week", "day", "hour", "minute", "isodow")},
    "DOY": "dayofyear",
}
_SECONDS = "systems differ in whether it has a fraction; second(t) has the whole seconds, unix_micros(t) all there is"
_DAYS = "systems number the days differently; isodow(t) is 1 on Mondays and 7 on Sundays"
_NO_PARTS = {
    **dict.fromkeys(("SECOND", "SECONDS", "MILLISECOND", "MILLISECONDS", "MICROSECOND", "MICROSECONDS"), _SECONDS),
    "EPOCH": "systems differ in whether it has a fraction; unix_seconds(t) has none, unix_micros(t) all there is",
    **dict.fromkeys(("DOW", "DAYOFWEEK", "WEEKDAY"), _DAYS),
}
DIFFERENT_MONTHS = "systems differ in what a whole month is, from 31 January to 28 February for example"


def part_name(unit: str) -> str:
    """The function for `extract(unit FROM t)`."""
    if unit not in PARTS:
        hint = _NO_PARTS.get(unit, f"there are {', '.join(PARTS)}")
        raise BadArgument(0, f"the part {unit} of a time is not supported", hint)
    return PARTS[unit]


def moved(moment: exp.Expression, count: int, unit: str) -> exp.Expression:
    return exp.TimestampAdd(this=moment, expression=exp.Literal.number(count), unit=exp.var(unit))


def timestampadd(arguments: list[exp.Expression]) -> exp.Expression:
    unit, count, moment = arguments[0].name, arguments[1], arguments[2]
    if unit in CALENDAR:
        most = MOST_MONTHS // CALENDAR[unit]
        return moved(moment, number_of("timestampadd", arguments, 1, range(-most, most + 1)) * CALENDAR[unit], "MONTH")
    size = _fixed(unit)
    whole = size // DAY if size % DAY == 0 else size
    kind = "DAY" if size % DAY == 0 else "MICROSECOND"
    number = whole_number(count)
    if number is not None and abs(number) <= MOST_US // size:
        return moved(moment, number * whole, kind)
    return exp.TimestampAdd(this=moment, expression=_times(count, whole), unit=exp.var(kind))


def _times(count: exp.Expression, size: int) -> exp.Expression:
    return count if size == 1 else exp.Mul(this=count, expression=exp.Literal.number(size))


def _fixed(unit: str) -> int:
    if unit not in FIXED:
        raise BadArgument(0, f"{unit} is not a unit of time", f"the units are {', '.join([*FIXED, *CALENDAR])}")
    return FIXED[unit]


def timestampdiff(arguments: list[exp.Expression]) -> exp.Expression:
    """How many whole units it is from the first to the second."""
    unit, start, end = arguments[0].name, arguments[1], arguments[2]
    if unit in CALENDAR:
        raise BadArgument(0, f"timestampdiff in units of a {unit} is not supported", DIFFERENT_MONTHS)
    _fixed(unit)
    return exp.TimestampDiff(this=end, expression=start, unit=exp.var(unit))


def date_trunc(arguments: list[exp.Expression]) -> exp.Expression:
    unit = arguments[0].name
    if unit not in CALENDAR:
        _fixed(unit)
    return exp.TimestampTrunc(this=arguments[1], unit=exp.var(unit))


def since_epoch(size: int) -> Build:
    """The timestamp that is a number of units after the beginning of 1970."""

    def build(arguments: list[exp.Expression]) -> exp.Expression:
        begin = cast(exp.Literal.string(EPOCH), Type.TIMESTAMP)
        return exp.TimestampAdd(this=begin, expression=_times(arguments[0], size), unit=exp.var("MICROSECOND"))

    return build


def to_timestamp_ltz(arguments: list[exp.Expression]) -> exp.Expression:
    sizes = {0: UNITS["SECOND"], 3: UNITS["MILLISECOND"]}
    precision = whole_number(arguments[1])
    if precision not in sizes:
        raise BadArgument(1, "to_timestamp_ltz needs 0 (seconds) or 3 (milliseconds) as argument 2")
    return since_epoch(sizes[precision])(arguments)
