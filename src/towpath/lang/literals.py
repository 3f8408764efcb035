"""Literals in the one form the checked tree holds, and the SQL types."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

from sqlglot import exp

from towpath.schema import INTEGERS, Type

_TYPES = {exp.DType[type_.sql]: type_ for type_ in Type} | {exp.DType.VARCHAR: Type.STRING}


def type_of_name(node: exp.Expr | None) -> Type | None:
    """The type a name in CAST stands for; None for a type the language does not have."""
    return _TYPES.get(node.this) if isinstance(node, exp.DataType) and not node.expressions else None


def cast(value: exp.Expression, to: Type) -> exp.Cast:
    return exp.Cast(this=value, to=exp.DataType(this=exp.DType[to.sql]))


def number(text: str, *, negated: bool = False) -> str | None:
    """An integer without leading zeros, or the shortest text of a double; None when neither can hold it.

    With a minus in front of it an integer reaches one further: the smallest bigint has no positive counterpart.
    """
    if text.isascii() and text.isdigit():
        value = int(text) if len(text) < 40 else 2**64
        return str(value) if (-value if negated else value) in INTEGERS[Type.BIGINT] else None
    try:
        fraction = float(text)
    except ValueError:
        return None
    return repr(fraction) if math.isfinite(fraction) else None


def whole_number(node: exp.Expr) -> int | None:
    """The value of an integer literal, with a minus or without; None for anything else."""
    if isinstance(node, exp.Neg):
        inner = node.this
        return -int(inner.this) if isinstance(inner, exp.Literal) and inner.is_int else None
    return int(node.this) if isinstance(node, exp.Literal) and node.is_int else None


def number_type(node: exp.Expr) -> Type:
    """The type of a number, with a minus or without: the smallest int and the smallest bigint are of their types."""
    value = whole_number(node)
    return Type.DOUBLE if value is None else Type.INT if value in INTEGERS[Type.INT] else Type.BIGINT


def moment(text: str, to: Type) -> str | None:
    """The text of a timestamp (in UTC) or a date in its one form; None when it is none."""
    try:
        if to is Type.DATE:
            return date.fromisoformat(text.strip()).isoformat()
        value = datetime.fromisoformat(text.strip())
        return (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat(sep=" ")
    except (ValueError, OverflowError):
        return None


def text_in_quotes(text: str) -> str:
    """As it is written in SQL."""
    return "'" + text.replace("'", "''") + "'"


def moment_example(to: Type) -> str:
    return "2026-01-31" if to is Type.DATE else "2026-01-31 12:00:00"


def is_string(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def is_constant(node: exp.Expr) -> bool:
    """A literal of any type, with a minus or as a typed literal (DATE '...') too."""
    if isinstance(node, exp.Neg | exp.Cast):
        return isinstance(node.this, exp.Literal)
    return isinstance(node, exp.Literal | exp.Boolean)
