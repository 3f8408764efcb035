"""Functions of texts that take literals: parts, repetitions, replacements, and regular expressions.

What a text may become is bounded: by a multiple of its length, however functions are nested.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from towpath.lang.arguments import BadArgument, Build, number_of, text_of
from towpath.lang.literals import is_string
from towpath.lang.regexps import BadPattern, Regexp, regexp

LONGEST_PADDED = 1_000  # characters: a text that is filled up must not outgrow the tuple without measure
MOST_PARTS_OF_TEXT = 10_000
LARGEST_GROWTH = 100  # times as long as it was, however often a text is replaced and repeated


class SplitIndex(exp.Expression, exp.Func):
    """A part of a text, counted from 0; NULL if there is none."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "delimiter": True, "part_index": True}


def replace(arguments: list[exp.Expression]) -> exp.Expression:
    wanted, given = text_of("replace", arguments, 1), text_of("replace", arguments, 2, empty=True)
    return _grown(exp.Replace(this=arguments[0], expression=arguments[1], replacement=arguments[2]), wanted, given)


def _regexp(name: str, arguments: list[exp.Expression]) -> Regexp:
    try:
        return regexp(text_of(name, arguments, 1))
    except BadPattern as error:
        raise BadArgument(1, error.message, error.hint) from None


def regexp_like(arguments: list[exp.Expression]) -> exp.Expression:
    _regexp("regexp_like", arguments)
    return exp.RegexpLike(this=arguments[0], expression=arguments[1])


def regexp_extract(arguments: list[exp.Expression]) -> exp.Expression:
    pattern = _regexp("regexp_extract", arguments)
    if len(arguments) < 3:
        hint = "systems take different ones if it is left out; 0 is the whole match, 1 what the first ( ) holds"
        raise BadArgument(1, "regexp_extract needs the number of a group", hint)
    group = number_of("regexp_extract", arguments, 2, range(pattern.groups + 1))
    if group and group not in pattern.always:
        hint = "systems answer differently for a group that a match may not have, in an alternative or in front of ?"
        raise BadArgument(2, f"the group {group} is not part of every match", hint)
    return exp.RegexpExtract(this=arguments[0], expression=arguments[1], group=arguments[2])


def regexp_replace(arguments: list[exp.Expression]) -> exp.Expression:
    pattern, given = _regexp("regexp_replace", arguments), text_of("regexp_replace", arguments, 2, empty=True)
    if len(arguments) < 4 or not is_string(arguments[3]) or arguments[3].name != "g":
        hint = "write regexp_replace(x, 'pattern', 'text', 'g') to replace all matches"
        raise BadArgument(2, "systems differ in whether all matches are replaced, or the first", hint)
    if {"$", "\\"} & set(given):
        hint = "systems refer to groups differently"
        raise BadArgument(2, "$ and \\ are not supported in what replaces a match", hint)
    if not pattern.shortest:
        raise BadArgument(1, "the pattern matches the empty text", "systems replace it at different places")
    call = exp.RegexpReplace(this=arguments[0], expression=arguments[1], replacement=arguments[2])
    return _grown(call, " " * pattern.shortest, given)


def repeat(arguments: list[exp.Expression]) -> exp.Expression:
    times = number_of("repeat", arguments, 1, range(LARGEST_GROWTH + 1))
    return _grown(exp.Repeat(this=arguments[0], times=arguments[1]), " ", " " * times)


def _grown(call: exp.Expression, wanted: str, given: str) -> exp.Expression:
    growth = _growth(call.this) * max(1, -(-len(given) // len(wanted)))
    if growth > LARGEST_GROWTH:
        raise BadArgument(0, f"the text could become {growth:,} times as long, at most {LARGEST_GROWTH} is allowed")
    return call


def _growth(expr: exp.Expr) -> int:
    """How many times as long as its parts a text may be."""
    own = 1
    if isinstance(expr, exp.Replace):
        own = max(1, -(-len(expr.args["replacement"].name) // len(expr.expression.name)))
    elif isinstance(expr, exp.RegexpReplace):
        own = max(1, -(-len(expr.args["replacement"].name) // regexp(expr.expression.name).shortest))
    elif isinstance(expr, exp.Repeat):
        own = max(1, int(expr.args["times"].name))
    return own * max(map(_growth, expr.iter_expressions()), default=1)


def padded(name: str) -> Build:
    def build(arguments: list[exp.Expression]) -> exp.Expression:
        number_of(name, arguments, 1, range(LONGEST_PADDED + 1))
        fill = arguments[2] if len(arguments) > 2 else exp.Literal.string(" ")
        text_of(name, [*arguments[:2], fill], 2)
        return exp.Pad(this=arguments[0], expression=arguments[1], fill_pattern=fill, is_left=name == "lpad")

    return build


def split_part(arguments: list[exp.Expression]) -> exp.Expression:
    text_of("split_part", arguments, 1)
    if number_of("split_part", arguments, 2, range(-MOST_PARTS_OF_TEXT, MOST_PARTS_OF_TEXT + 1)) == 0:
        raise BadArgument(2, "split_part counts from 1, and from -1 at the end")
    return exp.SplitPart(this=arguments[0], delimiter=arguments[1], part_index=arguments[2])


def split_index(arguments: list[exp.Expression]) -> exp.Expression:
    text_of("split_index", arguments, 1)
    number_of("split_index", arguments, 2, range(MOST_PARTS_OF_TEXT + 1))
    return SplitIndex(this=arguments[0], delimiter=arguments[1], part_index=arguments[2])
