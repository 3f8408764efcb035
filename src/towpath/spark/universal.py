"""A universal carrier as one streaming DataFrame: the shapes of its fragments are rows of its table, too.

    input -> vectorised: match, and outputs or partial aggregates -> [one aggregate for all -> vectorised: outputs]

With two inputs there is one join for all before that, of any classes of joins (plan/join_class.py):

    each input -> vectorised: tuples that some fragment wants, once for each class -> join by class, key and span

The plan is the same whatever runs in it. The vectorised steps (towpath.vector) are done by Spark's Python workers, on
Arrow batches (spark/universal_worker.py). A step is given one version of the table, and its workers read exactly that
one: the version is a column of its rows, and observed as in other carriers; of several steps the oldest one counts. All
that has state is Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from towpath.plan.assignment import input_column
from towpath.plan.join_class import CLASS, KEPT, PARTNERS
from towpath.plan.join_class import KEYS as LOOKUP
from towpath.plan.slots import GROUPS, MERGED, Merge
from towpath.plan.templates import ANY_WITH_TEXTS, Family, Template
from towpath.schema import BEFORE_1970_US, Type
from towpath.spark.carrier import EVENT_TIME
from towpath.spark.inputs import read_once
from towpath.spark.types import ddl
from towpath.spark.universal_worker import WRITTEN, closed, filtered, kept, partials

# In the order in which towpath.vector gives them.
KEYS = {"_fragment": Type.INT, "_post": Type.STRING, **GROUPS}
PARTIALS = {"_fragment": Type.INT, "_end": Type.BIGINT, **KEYS, **{name: type_ for name, (_, type_) in MERGED.items()}}
# A micro-batch of few rows in wide plans costs what is done for it, not for the rows.
SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    # Small files are one task: each asks every fragment, whatever its rows are. Large ones are divided.
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": "16m",
}
# Code is written for every task, looked up by its text, and becomes machine code after a minute of running. A join
# looks at each pair of tuples that may meet, so it gains more than that.
SETTINGS_OF_ONE_INPUT = SETTINGS | {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
JOINED_BY = ("_event", CLASS, "_key")
KEPT_OF_BOTH = ("_from", "_keep", "_of", "_partners")
MERGE: dict[Merge, Callable[[str], Column]] = {"sum": F.sum, "min": F.min, "max": F.max}


def build(
    template: Template,
    inputs: Sequence[DataFrame],
    versions: DataFrame,
    table: Path,
    folder: Path,
    banned: Sequence[int] = (),
) -> DataFrame:
    """What a micro-batch writes into `folder`, by files; `versions` has the version of now of the table in `table`."""
    joined = len(inputs) > 1
    rows = _pairs(template, inputs, versions, str(table)) if joined else inputs[0].drop("_event")
    given = _with_version(rows, versions, "matched")
    if not template.family.window:
        return given.mapInArrow(partial(filtered, str(table), joined, tuple(banned), str(folder)), ddl(WRITTEN))
    tagged = given.mapInArrow(partial(partials, str(table), joined), ddl(PARTIALS))
    # What is needed when a window closes is part of the key: its fragment may have left the table by then.
    values = merged_by(template.family)
    merged = (
        tagged.select(_event("_end"), *KEYS, *values)
        .groupBy("_event", *KEYS)
        .agg(*(MERGE[merge](name).alias(name) for name, merge in values.items()))
    )
    end = (F.unix_micros("_event") - F.lit(BEFORE_1970_US)).alias("_end")
    ended = merged.select(end, *KEYS, *values)
    if template.family.ranked:
        ended = ended.repartition("_fragment", "_end")  # a window's rows have to be together
    return ended.mapInArrow(partial(closed, template.family.ranked, tuple(banned), str(folder)), ddl(WRITTEN))


def merged_by(family: Family) -> dict[str, Merge]:
    """The columns of the aggregate, and how each is merged.

    An aggregate that keeps a text is sorted instead of hashed, and Spark then generates code in every task: 40% of the
    samples of a profile (docs/design/any_shape.md). So those that need one have carriers of their own.
    """
    texts = family.window == ANY_WITH_TEXTS
    return {name: merge for name, (merge, type_) in MERGED.items() if texts or type_ is not Type.STRING}


@contextmanager
def settings(spark: SparkSession, template: Template) -> Iterator[None]:
    """What is started within this keeps the settings of universal carriers."""
    wanted = SETTINGS if len(template.family.classes) > 1 else SETTINGS_OF_ONE_INPUT
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, known in before.items():
            spark.conf.unset(key) if known is None else spark.conf.set(key, known)


def _with_version(rows: DataFrame, versions: DataFrame, step: str) -> DataFrame:
    """Rows with the version that a step is to read; every step reports it."""
    observed = versions.observe(f"version_{step}", F.max("_version").alias("version"))
    return rows.withColumn("_version", read_once(observed, F.col("_version")))


def _event(us: str) -> Column:
    return F.timestamp_micros(F.col(us) + F.lit(BEFORE_1970_US)).alias("_event", metadata=EVENT_TIME)


def _pairs(template: Template, inputs: Sequence[DataFrame], versions: DataFrame, table: str) -> DataFrame:
    """The pairs of tuples that some fragment may want, with their class.

    The end of the span is part of what is joined by: Spark forgets tuples when event time has passed the end of theirs.
    A pair that is kept in two spans is made in that of its later tuple.
    """
    left, right = (_side(template, rows, versions, table, n) for n, rows in enumerate(inputs))
    right = right.withColumnsRenamed({name: f"{name}_right" for name in (*JOINED_BY, *KEPT_OF_BOTH)})
    ahead = F.col("i1__us") - F.col("i0__us")
    terms = [F.col(name) == F.col(f"{name}_right") for name in JOINED_BY]
    terms += [ahead <= F.col("_keep"), -ahead <= F.col("_keep_right")]
    terms += [F.greatest("i0__us", "i1__us") >= F.col("_from")]
    terms += [_partners("_partners", "_of_right"), _partners("_partners_right", "_of")]
    return left.join(right, reduce(Column.__and__, terms), "inner").select(
        CLASS,
        F.col("_of").alias("i0__of"),
        F.col("_of_right").alias("i1__of"),
        *(name for n in range(2) for name in _tuple(template, n)),
    )


def _partners(of_one: str, other: str) -> Column:
    return F.getbit(of_one, F.pmod(F.col(other), F.lit(PARTNERS)).cast("int")) == 1


def _side(template: Template, rows: DataFrame, versions: DataFrame, table: str, n: int) -> DataFrame:
    given = _with_version(rows.select(*_tuple(template, n), f"i{n}__stream"), versions, f"i{n}")
    wanted = given.mapInArrow(partial(kept, table, n), ddl({**_tuple(template, n), **KEPT}))
    return wanted.select(
        _event("_until"), CLASS, F.xxhash64(*LOOKUP).alias("_key"), *KEPT_OF_BOTH, *_tuple(template, n)
    )


def _tuple(template: Template, n: int) -> dict[str, Type]:
    """The columns of an input's tuples that a join keeps."""
    columns = {input_column(f"i{n}", c): Type(type_) for c, type_ in template.family.classes[n] if c}
    return {**columns, f"i{n}__us": Type.BIGINT}
