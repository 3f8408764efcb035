"""A universal carrier as one streaming DataFrame: the shapes of its fragments are rows of its table, too.

    input -> vectorised: match, and outputs or partial aggregates -> [one aggregate for all -> vectorised: outputs]

The plan is the same whatever runs in it. The vectorised steps (towpath.vector) are done by Spark's Python workers, on
Arrow batches (spark/universal_worker.py). A micro-batch is told one version of the table, and its workers read exactly
that one: the version is a column of the input, and observed as in other carriers. All that has state is Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from towpath.plan.slots import GROUPS, MERGED, OUTPUTS, Merge
from towpath.plan.templates import ANY_WITH_TEXTS, Family, Template
from towpath.schema import BEFORE_1970_US, Type
from towpath.spark.carrier import EVENT_TIME
from towpath.spark.types import ddl
from towpath.spark.universal_worker import closed, filtered, partials

# In the order in which towpath.vector gives them.
LOG = {"_fragment": Type.INT, "_time": Type.TIMESTAMP, "_born": Type.TIMESTAMP, **OUTPUTS}
KEYS = {"_fragment": Type.INT, "_post": Type.STRING, **GROUPS}
PARTIALS = {"_fragment": Type.INT, "_end": Type.BIGINT, **KEYS, **{name: type_ for name, (_, type_) in MERGED.items()}}
MERGE: dict[Merge, Callable[[str], Column]] = {"sum": F.sum, "min": F.min, "max": F.max}


def build(
    template: Template, rows: DataFrame, versions: DataFrame, table: Path, banned: Sequence[int] = ()
) -> DataFrame:
    """As `carrier.build`; `versions` has the table's version of now, and `table` is its folder."""
    told = versions.observe("version_table", F.max("_version").alias("version"))
    given = rows.drop("_event").crossJoin(F.broadcast(told))
    if not template.family.window:
        return given.mapInArrow(partial(filtered, str(table)), ddl(LOG))
    tagged = given.mapInArrow(partial(partials, str(table)), ddl(PARTIALS))
    # What is needed when a window closes is part of the key: its fragment may have left the table by then.
    event = F.timestamp_micros(F.col("_end") + F.lit(BEFORE_1970_US)).alias("_event", metadata=EVENT_TIME)
    values = merged_by(template.family)
    merged = (
        tagged.select(event, *KEYS, *values)
        .groupBy("_event", *KEYS)
        .agg(*(MERGE[merge](name).alias(name) for name, merge in values.items()))
    )
    end = (F.unix_micros("_event") - F.lit(BEFORE_1970_US)).alias("_end")
    ended = merged.select(end, *KEYS, *values)
    return ended.mapInArrow(partial(closed, tuple(banned)), ddl(LOG))


def merged_by(family: Family) -> dict[str, Merge]:
    """The columns of the aggregate, and how each is merged.

    An aggregate that keeps a text is sorted instead of hashed, and Spark then generates code in every task, which takes
    longer than all the rest. So those that need one have carriers of their own.
    """
    texts = family.window == ANY_WITH_TEXTS
    return {name: merge for name, (merge, type_) in MERGED.items() if texts or type_ is not Type.STRING}
