"""Aggregates in two halves: what the rows of one batch add to a window, and what comes out when it closes.

Between the two, values are merged by column, each with the one function that the column has (plan/slots.py). Sums of
BIGINTs travel as two halves, so that they are exact whatever the order, and NULL if they do not fit in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow.compute as pc
from sqlglot import exp

from towpath.plan.pipeline import Slot
from towpath.plan.slots import HALF_BITS, Layout, Measure, Merge
from towpath.schema import Type

LOW_HALF = 2**HALF_BITS - 1
INT64 = np.iinfo(np.int64)
BEYOND_RANKS = 2**62  # there is room behind it: ranks are counted on from one expression to the next


@dataclass(frozen=True)
class Contribution:
    """What every row of a batch adds to a column, if it is in the group: a value, or nothing."""

    values: np.ndarray
    valid: np.ndarray | None = None  # None: every row adds something
    texts: pl.Series | None = None  # in order, if the values stand for them


def measured(measure: Measure, merge: Merge, argument: pl.Series | None, height: int) -> Contribution:
    if argument is None:
        return Contribution(np.ones(height))
    given = argument.to_arrow()
    valid = pc.is_valid(given).to_numpy(zero_copy_only=False) if given.null_count else None
    if measure == "count":
        return Contribution(np.ones(height) if valid is None else valid.astype(np.float64))
    if argument.dtype == pl.String:
        return _ranked(argument, merge, valid)
    values = (given if valid is None else pc.fill_null(given, _nothing(merge, argument.dtype))).to_numpy()
    if measure == "high":
        values = values >> HALF_BITS
    elif measure == "low":
        values = values & LOW_HALF
    return Contribution(values.astype(np.float64) if merge == "sum" else values, valid)


def _nothing(merge: Merge, dtype: pl.DataType) -> int | float:
    """The value that changes nothing."""
    if merge == "sum":
        return 0
    if dtype == pl.Float64:
        # NaN is the largest, so of two values the smaller is the one that is a number.
        return float("nan") if merge == "min" else float("-inf")
    return INT64.max if merge == "min" else INT64.min


def _ranked(texts: pl.Series, merge: Merge, valid: np.ndarray | None) -> Contribution:
    """Numbers in the order of the texts."""
    ranks = texts.rank("dense").cast(pl.Int64) - 1
    nothing = BEYOND_RANKS if merge == "min" else -BEYOND_RANKS
    return Contribution(ranks.fill_null(nothing).to_numpy(), valid, texts.drop_nulls().unique().sort())


def reduced(merge: Merge, type_: Type, values: np.ndarray, cells: np.ndarray, size: int) -> np.ndarray:
    """The values of each cell in one."""
    if merge == "sum":
        total = np.bincount(cells, weights=values, minlength=size)
        return total if type_ is Type.DOUBLE else total.astype(np.int64)
    function = _FUNCTIONS[merge, values.dtype == np.float64]
    found = np.full(size, _nothing(merge, pl.Float64() if values.dtype == np.float64 else pl.Int64()), values.dtype)
    with np.errstate(invalid="ignore"):  # NaN is a value
        function.at(found, cells, values)
    return found


_FUNCTIONS = {
    ("min", False): np.minimum,
    ("max", False): np.maximum,
    ("min", True): np.fmin,
    ("max", True): np.maximum,
}


def final(slot: Slot, layout: Layout) -> pl.Expr:
    """An aggregate of the values that were merged, as expressions calculate with it."""
    call, merged = slot.expr, [pl.col(name) for name in layout.merged(slot)]
    if isinstance(call, exp.Count):
        return merged[0]
    if isinstance(call, exp.Min | exp.Max):
        return restored(merged[0], slot.type)
    if isinstance(call, exp.Sum):
        return merged[0] if len(merged) == 1 else _whole(*merged).cast(pl.Int64, strict=False)
    *sums, count = merged
    total = sums[0] if len(sums) == 1 else _whole(*sums)
    return pl.when(count > 0).then(total.cast(pl.Float64) / count.cast(pl.Float64))


def _whole(high: pl.Expr, low: pl.Expr) -> pl.Expr:
    return high.cast(pl.Int128) * pl.lit(2**HALF_BITS, pl.Int128) + low.cast(pl.Int128)


def restored(value: pl.Expr, type_: Type) -> pl.Expr:
    """A value that has travelled through the aggregate, as expressions calculate with it."""
    match type_:
        case Type.TIMESTAMP:
            return value.cast(pl.Datetime("us"))
        case Type.DATE:
            return value.cast(pl.Int32).cast(pl.Date)
        case Type.BOOLEAN:
            return value.cast(pl.Boolean)
    return value
