"""Aggregate calls of the language -> Spark columns.

What is out of range is NULL, or NaN for doubles, whatever the order in which tuples are added and merged.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

from towpath.lang.aggregates import StringAgg
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


def orders(call: exp.Expression) -> exp.Expression | None:
    """What the values of a call go by; it stands in front of each in a pair, and pairs are compared."""
    if isinstance(call, exp.ArgMax | exp.ArgMin):
        return call.expression
    return call.args["order"] if isinstance(call, StringAgg) else None


def pair(call: exp.Expression, by: Column, value: Column) -> Column:
    """NULL of a tuple that does not count."""
    counts = value if isinstance(call, StringAgg) else by
    return F.when(counts.isNotNull(), F.struct(by.alias("by"), value.alias("value")))


def argument(call: exp.Expression) -> exp.Expression:
    """What is aggregated."""
    return call.this.expressions[0] if isinstance(call.this, exp.Distinct) else call.this


def aggregate(call: exp.Expression, value: Column, type_: Type) -> Column:
    """`value` is the argument's column, of the type given, or of pairs (above)."""
    if isinstance(call, exp.ArgMax | exp.ArgMin):
        return (F.max if isinstance(call, exp.ArgMax) else F.min)(value)["value"]
    if isinstance(call, exp.Quantile):
        return F.percentile(value.cast("double"), float(call.args["quantile"].name))
    if isinstance(call, StringAgg):
        return _joined(call, value)
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


def _joined(call: StringAgg, pairs: Column) -> Column:
    """One behind the other; NULL if there are none."""
    collected = F.collect_list(pairs)
    in_order = F.sort_array(collected, asc=not call.args.get("descending"))
    texts = F.transform(in_order, lambda pair: pair["value"])
    return F.when(F.size(collected) > 0, F.array_join(texts, call.args["separator"].name))


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
