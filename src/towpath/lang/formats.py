"""Patterns that write a time as a text: those of strftime, of Java (date_format) and of PostgreSQL (to_char).

The checked tree has that of strftime. Only what all engines write alike is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from towpath.lang.arguments import BadArgument, Build, text_of

LONGEST = 100
# The letters of Java, as often as they stand there.
JAVA = {
    **{"yyyy": "%Y", "uuuu": "%Y", "yy": "%y"},
    **{"MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B"},
    **{"dd": "%d", "d": "%-d", "DDD": "%j", "D": "%-j", "E": "%a", "EEE": "%a", "EEEE": "%A"},
    **{"HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "a": "%p"},
    **{"mm": "%M", "m": "%-M", "ss": "%S", "s": "%-S", "SSS": "%g", "SSSSSS": "%f"},
}
POSTGRES = {
    **{"YYYY": "%Y", "YY": "%y"},
    **{"MM": "%m", "FMMM": "%-m", "Mon": "%b", "FMMonth": "%B"},
    **{"DD": "%d", "FMDD": "%-d", "DDD": "%j", "FMDDD": "%-j", "Dy": "%a", "FMDay": "%A"},
    **{"HH24": "%H", "FMHH24": "%-H", "HH12": "%I", "HH": "%I", "FMHH12": "%-I", "AM": "%p", "PM": "%p"},
    **{"MI": "%M", "FMMI": "%-M", "SS": "%S", "FMSS": "%-S", "MS": "%g", "US": "%f"},
}
STRFTIME = frozenset(JAVA.values())
# Those that are no pattern of Java's: in Spark, to_char takes these.
_NOT_JAVA = {"YYYY", "YY", "MI", "US", "Mon"}
_OF_STRFTIME = {
    "%F": "write %Y-%m-%d",
    "%T": "write %H:%M:%S",
    "%s": "unix_seconds(t) counts the seconds since 1970",
}
_HINTS = {
    "Y": "Y is the year that a week belongs to; y is the calendar year",
    "e": "systems number the days differently; isodow(t) is 1 on Mondays",
    "%": "% names parts of the time in strftime; date_format has letters, such as yyyy-MM-dd",
    "Month": "PostgreSQL fills it up with blanks; FMMonth has none",
    "Day": "PostgreSQL fills it up with blanks; FMDay has none",
}
_JAVA_TOKEN = re.compile(
    r"'(?P<quoted>(?:[^']|'')*)'|(?P<field>([A-Za-z])\3*)|(?P<reserved>[%'\[\]{}#])|(?P<text>.)", re.DOTALL
)
_POSTGRES_TOKEN = re.compile(
    rf'"(?P<quoted>[^"\\]*)"|(?P<padded>Month|Day)|(?P<field>{"|".join(sorted(POSTGRES, key=len, reverse=True))})'
    r'|(?P<reserved>[A-Za-z]+|["\\])|(?P<text>.)',
    re.DOTALL,
)
_STRFTIME_TOKEN = re.compile(r"(?P<percent>%%)|(?P<field>%-?.?)|(?P<text>.)", re.DOTALL)
FORMAT_TOKEN = re.compile(r"%-?.|[^%]+", re.DOTALL)  # of what is in the checked tree


def _reader(name: str, read: Callable[[str], Iterator[str]]) -> Build:
    def build(arguments: list[exp.Expression]) -> exp.Expression:
        pattern = text_of(name, arguments, 1)
        if len(pattern) > LONGEST:
            raise BadArgument(1, f"the pattern has {len(pattern)} characters, at most {LONGEST} are allowed")
        parts = list(read(pattern))
        if not any(part in STRFTIME for part in parts):
            raise BadArgument(1, "the pattern names no part of the time", "write the text itself")
        return exp.TimeToStr(this=arguments[0], format=exp.Literal.string("".join(parts)))

    return build


def _refused(what: str, fields: Mapping[str, str]) -> BadArgument:
    hint = _HINTS.get(what) or _HINTS.get(what[:1]) or f"there are {' '.join(fields)}"
    return BadArgument(1, f"{what} is not supported in a pattern", hint)


def _of_strftime(pattern: str) -> Iterator[str]:
    for token in _STRFTIME_TOKEN.finditer(pattern):
        field = token["field"]
        if field and field not in STRFTIME:
            hint = _OF_STRFTIME.get(field) or f"there are {' '.join(sorted(STRFTIME))} and %%"
            raise BadArgument(1, f"{field} is not supported in a pattern", hint)
        yield token[0]


def _of_java(pattern: str) -> Iterator[str]:
    for token in _JAVA_TOKEN.finditer(pattern):
        if token["reserved"] or (token["field"] and token["field"] not in JAVA):
            raise _refused(token[0], JAVA)
        if token["field"]:
            yield JAVA[token["field"]]
        else:
            # Two quotes are one, inside of quotes and outside.
            text = token["text"] or (token["quoted"] or "'").replace("''", "'")
            yield text.replace("%", "%%")


def _of_postgres(pattern: str) -> Iterator[str]:
    tokens = list(_POSTGRES_TOKEN.finditer(pattern))
    for token in tokens:
        if token["reserved"] or token["padded"]:
            raise _refused(token[0], POSTGRES)
        text = token["text"] or token["quoted"] or ""
        yield POSTGRES[token["field"]] if token["field"] else text.replace("%", "%%")
    fields = {token["field"] for token in tokens if token["field"]}
    if fields and not fields & _NOT_JAVA:
        message = "the pattern may mean another thing in Spark than in PostgreSQL"
        raise BadArgument(1, message, "strftime has one meaning, as in strftime(t, '%m-%d')")


strftime = _reader("strftime", _of_strftime)
date_format = _reader("date_format", _of_java)
to_char = _reader("to_char", _of_postgres)
