"""Constants of the language as Python values: int, float, str, bool, datetime (UTC) and date."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from sqlglot import exp

from towpath.lang.literals import cast
from towpath.schema import Type

Value = bool | int | float | str | dt.datetime | dt.date

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
LAST_TIMESTAMP = dt.datetime.max.replace(tzinfo=dt.UTC)


def constant(expr: exp.Expr) -> tuple[Value, Type] | None:
    """The value and type of a constant expression, None for anything else."""
    if isinstance(expr, exp.Boolean):
        return bool(expr.this), Type.BOOLEAN
    if isinstance(expr, exp.Literal):
        return _literal(expr)
    if isinstance(expr, exp.Neg):
        inner = constant(expr.this)
        if inner is not None and isinstance(inner[0], int | float) and inner[1].numeric:
            # The smallest BIGINT has no positive counterpart: its negation is NULL, and not a constant.
            return None if inner == (INT64_MIN, Type.BIGINT) else (-inner[0], inner[1])
    if isinstance(expr, exp.Cast) and isinstance(expr.this, exp.Literal) and expr.this.is_string:
        return _temporal(expr)
    return None


def _literal(expr: exp.Literal) -> tuple[Value, Type]:
    if expr.is_string:
        return expr.this, Type.STRING
    if expr.is_int:
        return int(expr.this), Type.BIGINT
    return float(expr.this), Type.DOUBLE


def _temporal(expr: exp.Cast) -> tuple[Value, Type] | None:
    text = expr.this.this
    if expr.to.this == exp.DataType.Type.DATE:
        return dt.date.fromisoformat(text), Type.DATE
    if expr.to.this == exp.DataType.Type.TIMESTAMP:
        parsed = dt.datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=dt.UTC)).astimezone(dt.UTC), Type.TIMESTAMP
    return None


def node_of(value: Value) -> exp.Expression:
    """The constant expression of a value: `constant` gives it back."""
    match value:
        case bool():
            return exp.Boolean(this=value)
        case int() | float():
            return exp.Literal.number(repr(value))
        case str():
            return exp.Literal.string(value)
        case _:
            return cast(
                exp.Literal.string(value.isoformat()), Type.TIMESTAMP if isinstance(value, dt.datetime) else Type.DATE
            )


def successor(value: Value) -> Value | None:
    """The smallest value above `value` in its type's order; None where there is none."""
    match value:
        case bool():
            return None
        case int():
            return value + 1 if value < INT64_MAX else None
        case float():
            return None if math.isnan(value) or value == math.inf else math.nextafter(value, math.inf)
        case str():
            return value + "\0"  # nothing lies between a string and itself followed by the smallest character
        case dt.datetime():
            return value + dt.timedelta(microseconds=1) if value < LAST_TIMESTAMP else None
        case dt.date():
            return value + dt.timedelta(days=1) if value < dt.date.max else None


def dump_value(value: Value | None) -> Any:
    """As JSON, for the journal and for tables."""
    match value:
        case dt.datetime():
            return {"timestamp": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case float():
            return {"double": value.hex()}  # infinities and every bit survive
        case _:
            return value


def load_value(data: Any) -> Value | None:
    match data:
        case {"timestamp": str(text)}:
            return dt.datetime.fromisoformat(text)
        case {"date": str(text)}:
            return dt.date.fromisoformat(text)
        case {"double": str(text)}:
            return float.fromhex(text)
        case _:
            return data
