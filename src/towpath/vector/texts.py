"""Texts of values: those casts accept, how doubles and timestamps are written, and rounding, which goes by them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import polars as pl

from towpath.schema import Type

TIMESTAMP = pl.Datetime("us")  # all are in UTC

_BLANKS = r"[ \t\n\r\f\x0B]*"
_DATE = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
_OFFSET = "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
_WHOLE = "[+-]?[0-9]+"
ACCEPTED = {
    Type.BOOLEAN: "(?i:true|t|yes|y|1|false|f|no|n|0)",
    Type.INT: _WHOLE,
    Type.BIGINT: _WHOLE,
    Type.DOUBLE: r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity))|(?i:nan)",
    Type.TIMESTAMP: f"{_DATE}(?:[ T]{_CLOCK}{_OFFSET})?",
    Type.DATE: _DATE,
}
"""What a text must look like to be cast; blanks around it do not count."""
ACCEPTED_DECIMAL = rf"\A{_BLANKS}([+-]?(?:[0-9]{{1,100}}\.?[0-9]{{0,100}}|\.[0-9]{{1,100}})){_BLANKS}\z"

TRUE = ["true", "t", "yes", "y", "1"]
# From here on all doubles are further apart than 10^-digits, so that rounding leaves them as they are.
COARSE = 2.0**55
# Below, no two decimal numbers of one digit more are the same double, so that a half is one by comparison.
EXACT = 2.0**49
ENOUGH_DIGITS = Context(prec=400)


def read(text: pl.Expr, target: Type) -> pl.Expr:
    """The value of a text; NULL if it does not look like one, or is out of range."""
    accepted = text.str.extract(rf"\A{_BLANKS}({ACCEPTED[target]}){_BLANKS}\z", 1)
    return _READERS[target](accepted)


def _boolean(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().is_in(TRUE)


def _date(text: pl.Expr) -> pl.Expr:
    return text.str.to_date("%Y-%m-%d", strict=False)


def _timestamp(text: pl.Expr) -> pl.Expr:
    def number(pattern: str) -> pl.Expr:
        return text.str.extract(pattern, 1).cast(pl.Int64).fill_null(0)

    day = _date(text.str.extract(f"^({_DATE})", 1)).cast(TIMESTAMP).cast(pl.Int64)
    fraction = text.str.extract(r"\.([0-9]{1,6})", 1).str.pad_end(6, "0").cast(pl.Int64).fill_null(0)
    clock = (number("[ T]([0-9]{2}):") * 60 + number("[ T][0-9]{2}:([0-9]{2})")) * 60
    clock += number("[ T][0-9]{2}:[0-9]{2}:([0-9]{2})")
    offset = number("[+-]([0-9]{2}):[0-9]{2}$") * 60 + number("[+-][0-9]{2}:([0-9]{2})$")
    offset = pl.when(text.str.contains(r"-[0-9]{2}:[0-9]{2}$")).then(-offset).otherwise(offset)
    return (day + (clock - offset * 60) * 1_000_000 + fraction).cast(TIMESTAMP)


_READERS: dict[Type, Callable[[pl.Expr], pl.Expr]] = {
    Type.BOOLEAN: _boolean,
    Type.INT: lambda text: text.cast(pl.Int32, strict=False).cast(pl.Int64),
    Type.BIGINT: lambda text: text.cast(pl.Int64, strict=False),
    Type.DOUBLE: lambda text: text.cast(pl.Float64, strict=False),
    Type.TIMESTAMP: _timestamp,
    Type.DATE: _date,
}


def of_timestamp(value: pl.Expr) -> pl.Expr:
    """Without zeros behind the last digit."""
    return value.dt.strftime("%Y-%m-%d %H:%M:%S%.6f").str.strip_chars_end("0").str.replace(r"([^.]{17})\.?$", "$1")


def of_double(value: pl.Expr) -> pl.Expr:
    return value.map_batches(_texts, return_dtype=pl.String, is_elementwise=True)


def _texts(values: pl.Series) -> pl.Series:
    return pl.Series(values.name, [None if v is None else double_text(v) for v in values], pl.String)


def double_text(value: float) -> str:
    """The fewest digits that identify a double, two at least; 1.0E7 and 1.0E-4 are beyond plain digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value + 0.0)
    # Of two digits the nearest, although one digit may be enough to identify it: 4.9E-324.
    mantissa, _, power = f"{value:.1e}".partition("e")
    if float(f"{value:.1e}") != value:
        mantissa, _, power = f"{Decimal(repr(value)):e}".partition("e")
        whole, _, digits = mantissa.partition(".")
        mantissa = f"{whole}.{digits.rstrip('0') or '0'}"
    return f"{mantissa}E{int(power)}"


def md5(text: pl.Expr) -> pl.Expr:
    return _digest(text, hashlib.md5)


def sha256(text: pl.Expr) -> pl.Expr:
    return _digest(text, hashlib.sha256)


def _digest(text: pl.Expr, function: Callable[[bytes], Any]) -> pl.Expr:
    def of_batch(values: pl.Series) -> pl.Series:
        digests = [None if v is None else function(v.encode()).hexdigest() for v in values]
        return pl.Series(values.name, digests, pl.String)

    return text.map_batches(of_batch, return_dtype=pl.String, is_elementwise=True)


def rounded(value: pl.Expr, digits: int) -> pl.Expr:
    """Halves go away from zero, of the decimal number that is shown: 2.675 is a half, although the double is less."""

    def of_batch(values: pl.Series) -> pl.Series:
        return pl.Series(values.name, _rounded(values.to_numpy(), digits)).set(values.is_null(), None)

    return value.map_batches(of_batch, return_dtype=pl.Float64, is_elementwise=True)


def _rounded(values: np.ndarray, digits: int) -> np.ndarray:
    scale = 10.0**digits
    with np.errstate(all="ignore"):
        size = np.abs(values)
        scaled = size * scale
        down = np.floor(scaled)
        # The double next to the half between both candidates: exactly those that are shown as the half are equal to it.
        up = size >= (down + 0.5) / scale
        found = np.copysign((down + up) / scale, values)
    exact = scaled < EXACT
    found[~exact] = values[~exact]
    for n in np.flatnonzero(~exact & (scaled < COARSE)):
        text = Decimal(repr(float(values[n])))
        found[n] = float(text.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, ENOUGH_DIGITS))
    return found
