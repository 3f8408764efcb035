"""Values in texts of JSON: the path to one, in its one form, and the calls that different systems have for it."""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import exp

from towpath.lang.arguments import BadArgument, Build, text_of
from towpath.lang.literals import is_string, whole_number

LONGEST_JSON = 1_000_000  # characters; a longer text has no values
DEEPEST_JSON = 999  # levels of a text that has values
LONGEST_NUMBER = 1_000  # characters of a number in one
MOST_STEPS = 50
MOST_ITEMS = 2**31 - 1  # of an array

Step = str | int  # the key of an object, or the place in an array, from 0 on

_PLAIN = "[^\\W\\d][\\w-]*"
_STEP = re.compile(
    rf"""\.(?P<plain>{_PLAIN})|\."(?P<quoted>[^"]+)"|\['(?P<single>[^']+)'\]|\["(?P<double>[^"]+)"\]|\[(?P<place>\d{{1,10}})\]"""
)
_ODD = set("'\"\\?*")  # Spark has no way to write some of these in a path
NEEDS_PATH = "write it like '$.user.name', with [0] for the first of a list"


class JsonValue(exp.Expression, exp.Func):
    """A text, number or boolean in a text of JSON, as a text; NULL if there is none at the path."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "path": True}


def steps(path: str) -> list[Step]:
    """The steps of a path that `written` has made, or that a query has. Raises ValueError with what is wrong."""
    if not path.startswith("$"):
        raise ValueError(f"'{path}' is no path of JSON: it begins with $")
    found: list[Step] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise ValueError(f"'{path[at:]}' cannot be read in a path of JSON")
        at = match.end()
        key = next(filter(None, match.group("plain", "quoted", "single", "double")), None)
        found.append(_key(key) if key is not None else _place(int(match["place"])))
    if not found:
        raise ValueError("the path leads to the text as a whole, and names no value in it")
    if len(found) > MOST_STEPS:
        raise ValueError(f"the path has {len(found)} steps, at most {MOST_STEPS} are allowed")
    return found


def _key(key: str) -> str:
    if odd := sorted(_ODD & set(key)):
        raise ValueError(f"keys with {' or '.join(odd)} are missing in paths of JSON")
    if not key.isprintable():
        raise ValueError("a key in a path of JSON has no control characters")
    return key


def _place(place: int) -> int:
    if place > MOST_ITEMS:
        raise ValueError(f"no list has {place:,} items")
    return place


def written(path: list[Step]) -> str:
    """The one form of a path."""
    return "$" + "".join(map(_written, path))


def _written(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if re.fullmatch(_PLAIN, step) else f'["{step}"]'


def json_value(name: str) -> Build:
    def build(arguments: list[exp.Expression]) -> exp.Expression:
        return _value(arguments[0], _read(text_of(name, arguments, 1), 1))

    return build


def arrow(arguments: list[exp.Expression]) -> exp.Expression:
    """`text ->> key` and `text -> key ->> key`: each is a path, or the key or the place itself."""
    return _value(arguments[0], [step for place in range(1, len(arguments)) for step in _after(arguments, place)])


def _after(arguments: list[exp.Expression], place: int) -> list[Step]:
    number = whole_number(arguments[place])
    if number is not None and 0 <= number <= MOST_ITEMS:
        return [number]
    if not is_string(arguments[place]):
        hint = "parentheses go around a -> and ->> that is part of something: (s ->> 'key') || 'more'"
        raise BadArgument(place, "behind -> and ->> stands a key or a path in quotes, or a place from 0 on", hint)
    text = text_of("->>", arguments, place)
    if text.startswith("$"):
        return _read(text, place)
    if text.startswith("/"):
        raise BadArgument(place, "a path with slashes is not supported", NEEDS_PATH)
    try:
        return [_key(text)]
    except ValueError as error:
        raise BadArgument(place, str(error)) from None


def _read(path: str, place: int) -> list[Step]:
    try:
        return steps(path)
    except ValueError as error:
        raise BadArgument(place, str(error), NEEDS_PATH) from None


def _value(text: exp.Expression, path: list[Step]) -> exp.Expression:
    return JsonValue(this=text, path=exp.Literal.string(written(path)))
