"""Aggregates of more than one value: the row of the greatest, quantiles, texts one behind the other."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from towpath.lang.arguments import BadArgument, Build, text_of

MOST_LITERAL = 40  # characters


class StringAgg(exp.Expression, exp.AggFunc):
    """The texts of a group one behind the other, in the order of another value and then their own."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "separator": True, "order": True, "descending": False}


def fraction(value: exp.Expression) -> float | None:
    """The number from 0 to 1 that a literal is."""
    if not isinstance(value, exp.Literal) or value.is_string or len(value.name) > MOST_LITERAL:
        return None
    number = float(value.name)
    return number if 0 <= number <= 1 else None


def quantile(name: str) -> Build:
    """Of a value and the share of values that are at most the quantile."""

    def build(arguments: list[exp.Expression]) -> exp.Expression:
        value, share = arguments
        if fraction(share) is None:
            raise BadArgument(1, f"{name} needs a number from 0 to 1, such as 0.95", "")
        return exp.Quantile(this=value, quantile=share)

    return build


def median(arguments: list[exp.Expression]) -> exp.Expression:
    return exp.Quantile(this=arguments[0], quantile=exp.Literal.number("0.5"))


def percentile_cont(arguments: list[exp.Expression]) -> exp.Expression:
    """Of the share, and then the values with the direction in which they are counted."""
    share, value, *descending = arguments
    number = fraction(share)
    if number is None:
        raise BadArgument(0, "percentile_cont needs a number from 0 to 1, such as 0.95", "")
    if descending:
        share = exp.Literal.number(repr(1 - number))
    return exp.Quantile(this=value, quantile=share)


def string_agg(arguments: list[exp.Expression]) -> exp.Expression:
    """Of the text, the separator, what it is ordered by, and the direction."""
    value, separator, order, *descending = arguments
    text_of("string_agg", arguments, 1, empty=True)
    return StringAgg(this=value, separator=separator, order=order, descending=bool(descending))
