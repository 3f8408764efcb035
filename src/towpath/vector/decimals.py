"""Conversions of decimals, which are whole numbers of units of 10^-scale."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import polars as pl
from sqlglot import exp

from towpath.schema import INTEGERS, Type
from towpath.vector.texts import ACCEPTED_DECIMAL

_DIGITS = Context(prec=400)  # more than any number has


def rescaled(value: pl.Expr, node: exp.Expression) -> pl.Expr:
    scale, places, digits = (node.args[name] for name in ("scale", "places", "digits"))
    rounding = ROUND_DOWN if node.args["cut"] else ROUND_HALF_UP
    return _each(
        value, lambda units: _units(Decimal(units).scaleb(-scale, _DIGITS), places, digits, rounding), pl.Int64
    )


def of_text(value: pl.Expr, node: exp.Expression) -> pl.Expr:
    accepted = value.str.extract(ACCEPTED_DECIMAL, 1)
    return _each(accepted, lambda text: _units(Decimal(text), node.args["places"], node.args["digits"]), pl.Int64)


def of_double(value: pl.Expr, node: exp.Expression) -> pl.Expr:
    """NaN and infinities are no number."""
    finite = pl.when(value.is_finite()).then(value)
    return _each(finite, lambda x: _units(Decimal(repr(x)), node.args["places"], node.args["digits"]), pl.Int64)


def as_text(value: pl.Expr, node: exp.Expression) -> pl.Expr:
    scale = node.args["scale"]
    return _each(value, lambda units: f"{Decimal(units).scaleb(-scale, _DIGITS):f}", pl.String)


def _units(number: Decimal, places: int, digits: int, rounding: str = ROUND_HALF_UP) -> int | None:
    units = int(number.quantize(Decimal(1).scaleb(-places), rounding, _DIGITS).scaleb(places, _DIGITS))
    fits = abs(units) < 10**digits if digits else units in INTEGERS[Type.BIGINT]
    return units if fits else None


def _each(value: pl.Expr, function: Callable[[Any], Any], dtype: Any) -> pl.Expr:
    def of_batch(values: pl.Series) -> pl.Series:
        return pl.Series(values.name, [None if v is None else function(v) for v in values], dtype)

    return value.map_batches(of_batch, return_dtype=dtype, is_elementwise=True)
