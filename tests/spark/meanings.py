"""What functions of the language mean, in plain Python: those that DuckDB does not have with that meaning."""

from __future__ import annotations

import calendar
import datetime as dt
import hashlib
import re
import unicodedata
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import wraps

import duckdb
import numpy as np

SPACES = "".join(char for char in map(chr, range(0x3001)) if unicodedata.category(char) == "Zs")
BLANKS = " \t\n\r\f\v"
ZONED = re.compile(r"(.*:[0-9.]+)(Z|[+-][0-9]{2}:[0-9]{2})")


def whole(text: str) -> int | None:
    digits = text.strip(BLANKS)
    unsigned = digits[1:] if digits[:1] in ("+", "-") else digits
    if not (unsigned.isascii() and unsigned.isdigit()):
        return None
    value = int(digits)
    return value if -(2**63) <= value < 2**63 else None


def fraction(text: str) -> float | None:
    number = text.strip(BLANKS).lower()
    if not number.isascii() or "_" in number or number in ("+nan", "-nan") or number != number.strip():
        return None
    try:
        return float(number)
    except ValueError:
        return None


def truth(text: str) -> bool | None:
    word = text.strip(BLANKS).lower()
    return True if word in ("true", "t", "yes", "y", "1") else False if word in ("false", "f", "no", "n", "0") else None


def day(text: str) -> dt.date | None:
    parts = text.strip(BLANKS).split("-")
    if [len(p) for p in parts] not in ([4, 2, 2], [4, 1, 2], [4, 2, 1], [4, 1, 1]):
        return None
    if not all(p.isascii() and p.isdigit() for p in parts):
        return None
    try:
        return dt.date(*map(int, parts))
    except ValueError:
        return None


def instant(text: str) -> int | None:
    """Microseconds since 1970."""
    written = text.strip(BLANKS)
    date, clock = day(written[:10].split(" ")[0].split("T")[0]), ""
    if date is None:
        return None
    rest = written[len(written[:10].split(" ")[0].split("T")[0]) :]
    offset = 0
    if rest:
        if rest[0] not in " T":
            return None
        clock = rest[1:]
        if zoned := ZONED.fullmatch(clock):
            clock, zone = zoned.groups()
            if zone != "Z":
                hours, minutes = int(zone[1:3]), int(zone[4:])
                if hours > 14 or minutes > 59:
                    return None
                offset = (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
        found = re.fullmatch(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?", clock)
        if not found:
            return None
        h, m, s, f = found.groups()
        if int(h) > 23 or int(m) > 59 or int(s or 0) > 59:
            return None
        micros = ((int(h) * 60 + int(m)) * 60 + int(s or 0)) * 1_000_000 + int(((f or "") + "000000")[:6])
    else:
        micros = 0
    days = (date - dt.date(1970, 1, 1)).days
    return days * 86_400_000_000 + micros - offset * 60_000_000


def shown(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return ("-" if value < 0 else "") + "Infinity"
    if value == 0:
        return "0.0"
    if 0.001 <= abs(value) < 10_000_000:
        return np.format_float_positional(value, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    if float(f"{value:.1e}") == value:  # two digits at least, and those next to it: 4.9E-324
        mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def rounded(value: float, digits: int) -> float:
    if not np.isfinite(value) or abs(value) >= 2.0**53:
        return value
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, Context(prec=400)))


def filled(text: str, width: int, fill: str) -> str:
    missing = max(0, width - len(text))
    return (fill * missing)[:missing]


def part(text: str, delimiter: str, place: int) -> str:
    parts = text.split(delimiter)
    at = place - 1 if place > 0 else len(parts) + place
    return parts[at] if 0 <= at < len(parts) else ""


def numbered_part(text: str, delimiter: str, place: int) -> str | None:
    """An empty text has no parts."""
    parts = text.split(delimiter) if text else []
    return parts[place] if place < len(parts) else None


EPOCH = dt.datetime(1970, 1, 1)
LENGTHS = {
    "MICROSECOND": dt.timedelta(microseconds=1),
    "MILLISECOND": dt.timedelta(milliseconds=1),
    **{unit: dt.timedelta(**{f"{unit.lower()}s": 1}) for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")},
}


def moved(moment: dt.datetime, count: int, unit: str) -> dt.datetime | None:
    """Nothing beyond the years 1 to 9999; a day that its month has not is the month's last."""
    try:
        if unit in LENGTHS:
            return moment + count * LENGTHS[unit]
        months = moment.year * 12 + moment.month - 1 + count * {"MONTH": 1, "YEAR": 12}[unit]
        year, month = months // 12, months % 12 + 1
        return moment.replace(year=year, month=month, day=min(moment.day, calendar.monthrange(year, month)[1]))
    except (OverflowError, ValueError):
        return None


def whole_units(start: dt.datetime, end: dt.datetime, unit: str) -> int:
    units = abs(end - start) // LENGTHS[unit]
    return units if end >= start else -units


def cut(unit: str, moment: dt.datetime) -> dt.datetime:
    day = dt.datetime(moment.year, moment.month, moment.day)
    match unit:
        case "WEEK":
            return day - dt.timedelta(days=day.weekday())
        case "MONTH":
            return day.replace(day=1)
        case "QUARTER":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "YEAR":
            return day.replace(month=1, day=1)
    return moment - (moment - day) % LENGTHS[unit]


def since_1970(moment: dt.datetime, unit: str) -> int:
    return (moment - EPOCH) // LENGTHS[unit]


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def written(moment: dt.datetime, pattern: str) -> str:
    day, month = DAYS[moment.weekday()], MONTHS[moment.month - 1]
    half, number = moment.hour % 12 or 12, moment.timetuple().tm_yday
    shown = {
        **{"%Y": f"{moment.year:04}", "%y": f"{moment.year % 100:02}", "%m": f"{moment.month:02}", "%-m": moment.month},
        **{"%B": month, "%b": month[:3], "%A": day, "%a": day[:3], "%d": f"{moment.day:02}", "%-d": moment.day},
        **{"%j": f"{number:03}", "%-j": number, "%H": f"{moment.hour:02}", "%-H": moment.hour, "%I": f"{half:02}"},
        **{"%-I": half, "%p": "AM" if moment.hour < 12 else "PM", "%M": f"{moment.minute:02}", "%-M": moment.minute},
        **{"%S": f"{moment.second:02}", "%-S": moment.second, "%f": f"{moment.microsecond:06}"},
        **{"%g": f"{moment.microsecond // 1000:03}", "%%": "%"},
    }
    return re.sub("%-?.", lambda token: str(shown[token[0]]), pattern)


TOO_LONG = 4_001


def matches(text: str, pattern: str) -> bool | None:
    return None if len(text) >= TOO_LONG else re.search(pattern, text) is not None


def extracted(text: str, pattern: str, group: int) -> str | None:
    found = None if len(text) >= TOO_LONG else re.search(pattern, text)
    return None if found is None else found[group]


def substituted(text: str, pattern: str, given: str) -> str | None:
    return None if len(text) >= TOO_LONG else re.sub(pattern, given, text)


FUNCTIONS: dict[str, tuple[Callable, list[str], str]] = {
    "t_whole": (whole, ["VARCHAR"], "BIGINT"),
    "t_fraction": (fraction, ["VARCHAR"], "DOUBLE"),
    "t_truth": (truth, ["VARCHAR"], "BOOLEAN"),
    "t_day": (day, ["VARCHAR"], "DATE"),
    "t_instant": (instant, ["VARCHAR"], "BIGINT"),
    "t_shown": (shown, ["DOUBLE"], "VARCHAR"),
    "t_rounded": (rounded, ["DOUBLE", "BIGINT"], "DOUBLE"),
    "t_upper": (lambda text: text.upper(), ["VARCHAR"], "VARCHAR"),
    "t_lower": (lambda text: text.lower(), ["VARCHAR"], "VARCHAR"),
    "t_ltrim": (lambda text: text.lstrip(SPACES), ["VARCHAR"], "VARCHAR"),
    "t_rtrim": (lambda text: text.rstrip(SPACES), ["VARCHAR"], "VARCHAR"),
    "t_md5": (lambda text: hashlib.md5(text.encode()).hexdigest(), ["VARCHAR"], "VARCHAR"),
    "t_sha256": (lambda text: hashlib.sha256(text.encode()).hexdigest(), ["VARCHAR"], "VARCHAR"),
    "t_found": (lambda text, wanted: text.find(wanted) + 1, ["VARCHAR", "VARCHAR"], "INTEGER"),
    "t_lpad": (lambda text, n, fill: filled(text, n, fill) + text[:n], ["VARCHAR", "INTEGER", "VARCHAR"], "VARCHAR"),
    "t_rpad": (lambda text, n, fill: text[:n] + filled(text, n, fill), ["VARCHAR", "INTEGER", "VARCHAR"], "VARCHAR"),
    "t_split": (part, ["VARCHAR", "VARCHAR", "INTEGER"], "VARCHAR"),
    "t_split_index": (numbered_part, ["VARCHAR", "VARCHAR", "INTEGER"], "VARCHAR"),
    "t_written": (written, ["TIMESTAMP", "VARCHAR"], "VARCHAR"),
    "t_matches": (matches, ["VARCHAR", "VARCHAR"], "BOOLEAN"),
    "t_extracted": (extracted, ["VARCHAR", "VARCHAR", "INTEGER"], "VARCHAR"),
    "t_substituted": (substituted, ["VARCHAR", "VARCHAR", "VARCHAR"], "VARCHAR"),
    "t_moved": (moved, ["TIMESTAMP", "BIGINT", "VARCHAR"], "TIMESTAMP"),
    "t_units": (whole_units, ["TIMESTAMP", "TIMESTAMP", "VARCHAR"], "BIGINT"),
    "t_cut": (cut, ["VARCHAR", "TIMESTAMP"], "TIMESTAMP"),
    "t_since": (since_1970, ["TIMESTAMP", "VARCHAR"], "BIGINT"),
    "t_replace": (
        lambda text, wanted, given: text.replace(wanted, given),
        ["VARCHAR", "VARCHAR", "VARCHAR"],
        "VARCHAR",
    ),
    "t_right": (lambda text, n: text[-n:] if n > 0 else "", ["VARCHAR", "BIGINT"], "VARCHAR"),
    "t_trim": (lambda text: text.strip(SPACES), ["VARCHAR"], "VARCHAR"),
}
FAR = 2**31 - 1
MACROS = (
    f"t_near(n) AS CASE WHEN n > {FAR} THEN {FAR} WHEN n < -{FAR} THEN -{FAR} ELSE n END",
    "t_part(s, a, n) AS substring(s, CASE WHEN a = 0 THEN 1 ELSE t_near(a) END, "
    "CASE WHEN n < 0 THEN 0 ELSE t_near(n) END)",
    # A function of Python cannot answer NaN: that would be NULL.
    f"t_double(s) AS CASE WHEN lower(trim(s, '{BLANKS}')) = 'nan' THEN CAST('NaN' AS DOUBLE) ELSE t_fraction(s) END",
    "t_round(a, n) AS CASE WHEN isfinite(a) THEN t_rounded(a, n) ELSE a END",
    "t_mod(a, b) AS CASE WHEN b = 0 THEN NULL WHEN b = -1 THEN a - a ELSE a % b END",
    "t_div(a, b) AS CASE WHEN b = 0 THEN NULL ELSE CAST(a AS DOUBLE) / CAST(b AS DOUBLE) END",
    "t_log10(a) AS CASE WHEN a <= 0 THEN NULL ELSE log10(a) END",
    "t_ln(a) AS CASE WHEN a <= 0 THEN NULL ELSE ln(a) END",
    "t_sqrt(a) AS CASE WHEN a < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt(a) END",
)


def _of_null(function: Callable) -> Callable:
    @wraps(function)  # DuckDB counts its parameters
    def careful(*arguments: object) -> object:
        return None if None in arguments else function(*arguments)

    return careful


def prepare(con: duckdb.DuckDBPyConnection) -> None:
    for name, (function, arguments, result) in FUNCTIONS.items():
        con.create_function(name, _of_null(function), arguments, result, null_handling="special")
    for macro in MACROS:
        con.execute(f"CREATE MACRO {macro}")
