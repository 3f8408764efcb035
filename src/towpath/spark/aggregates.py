"""Aggregate calls of the language -> Spark columns.

What is out of range is NULL, or NaN for doubles, whatever the order in which tuples are added and merged.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

from towpath.schema import Type

HALF_BITS = 32
LOW_HALF = 2**HALF_BITS - 1
HIGH_BOUNDS = (-(2**31), 2**31 - 1)
# The squares of larger values, and sums of them, are beyond what a double can hold.
LARGEST_DEVIATION = 1e150

AGGREGATES: dict[type[exp.Expression], Callable[[Column], Column]] = {
    exp.Count: F.count,
    exp.Sum: F.sum,
    exp.Avg: F.avg,
    exp.Min: F.min,
    exp.Max: F.max,
}


def argument(call: exp.Expression) -> exp.Expression:
    """What is aggregated."""
    return call.this.expressions[0] if isinstance(call.this, exp.Distinct) else call.this


def aggregate(call: exp.Expression, value: Column, type_: Type) -> Column:
    """`value` is the argument's column, of the type given."""
    if isinstance(call.this, exp.Distinct):
        # Spark has no streaming count(distinct); the set of values is the same thing said differently.
        return F.size(F.collect_set(value)).cast("bigint")
    if isinstance(call, exp.StddevSamp):
        return F.stddev_samp(F.when(F.abs(value) >= F.lit(LARGEST_DEVIATION), F.lit(float("nan"))).otherwise(value))
    if isinstance(call, exp.Sum) and type_ is Type.BIGINT:
        return _sum(value)
    if isinstance(call, exp.Avg) and type_ is Type.BIGINT:
        return _average(value)
    return AGGREGATES[type(call)](value)


def _halves(value: Column) -> tuple[Column, Column]:
    """The exact sum as high * 2^32 + low with 0 <= low < 2^32.

    The sums of the two halves of a BIGINT hold 2^31 tuples; decimals, which hold more, take six times as long.
    """
    high = F.sum(F.shiftright(value, HALF_BITS))
    low = F.sum(value.bitwiseAND(F.lit(LOW_HALF)))
    return high + F.shiftright(low, HALF_BITS), low.bitwiseAND(F.lit(LOW_HALF))


def _sum(value: Column) -> Column:
    high, low = _halves(value)
    return F.when(high.between(*HIGH_BOUNDS), F.shiftleft(high, HALF_BITS) + low)


def _average(value: Column) -> Column:
    high, low = _halves(value)
    return (high.cast("double") * F.lit(2.0**HALF_BITS) + low.cast("double")) / F.count(value)
