"""Carriers over tables instead of streams: what a template makes of a complete input, in one Spark job.

The plan is the carrier's own, with the assignment table of all queries that share it. So what sharing could do to an
answer can be searched for with hundreds of queries in seconds, without starting a job for each set of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from towpath.arrow import arrow_schema
from towpath.lang import parse
from towpath.lang.query import Lookup, Query
from towpath.plan import CarrierKinds
from towpath.plan.assignment import TableChange, columns, input_column, log_columns, rows
from towpath.plan.cut import plan
from towpath.plan.lookups import lookups_of
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Template, merge_all, template_of, universal_for
from towpath.schema import Catalog, Type
from towpath.spark import universal, writers
from towpath.spark.assignments import publish, table_columns
from towpath.spark.carrier import build, column_types
from towpath.spark.lookups import join_tables
from towpath.spark.node import QUICK_JAVA, NodeSettings, open_session

Tables = Mapping[str, pa.Table]


def session(folder: Path) -> SparkSession:
    return open_session(NodeSettings(cores=2, memory="2g", spark=QUICK_JAVA), folder)


def answers(
    spark: SparkSession,
    queries: Sequence[str],
    catalog: Catalog,
    tables: Tables,
    carriers: CarrierKinds = CarrierKinds.COMPILED,
) -> list[pa.Table]:
    """What each query answers when all of them run together, on as few carriers as possible.

    Those of equal signatures share a fragment: the pipeline of the first of them is what runs.
    """

    def wanted(pipeline: Pipeline) -> Template:
        wide = universal_for(pipeline) if carriers is CarrierKinds.UNIVERSAL else None
        return template_of(pipeline) if wide is None else wide

    parsed = [parse(sql, catalog) for sql in queries]
    pipelines = [(n, p) for n, query in enumerate(parsed) for p in plan(query, catalog).pipelines]
    found: list[list[pa.Table]] = [[] for _ in parsed]
    for template in merge_all(wanted(p) for _, p in pipelines):
        mine = [(n, p) for n, p in pipelines if template.covers(wanted(p))]
        pipelines = [pair for pair in pipelines if pair not in mine]
        shared = {_shared_as(p, template): p for _, p in reversed(mine)}
        fragments = {key: fragment for fragment, key in enumerate(shared)}
        log = run(spark, template, list(shared.values()), catalog, tables)
        for n, pipeline in mine:
            found[n].append(_answer(log, fragments[_shared_as(pipeline, template)], pipeline, template, parsed[n]))
    return [pa.concat_tables(parts) for parts in found]


def _shared_as(pipeline: Pipeline, template: Template) -> Hashable:
    """Equal for those that share a fragment; a universal one has only the plain columns of its own pipeline."""
    plain = frozenset(o.column for o in pipeline.outputs if o.column is not None)
    return pipeline.signature, plain if template.family.universal else None


def run(
    spark: SparkSession, template: Template, pipelines: Sequence[Pipeline], catalog: Catalog, tables: Tables
) -> pa.Table:
    """The results log of one carrier; the fragments are numbered in order."""
    inputs = [_input(spark, template, n, catalog, tables) for n in range(len(template.family.classes))]
    made = columns(template, column_types(template))
    assigned = [row for number, pipeline in enumerate(pipelines) for row in rows(number, pipeline, template)]
    if template.family.universal:
        with TemporaryDirectory() as folder:
            publish(Path(folder), 1, made, TableChange(assigned), by_version=True)
            version = spark.createDataFrame([(1,)], "_version int")
            log, written = Path(folder) / "results", Path(folder) / "written"
            files = universal.build(template, inputs, version, Path(folder), written)
            writers.by_workers(log, written)(files, 0)
            return pa.concat_tables([pq.read_table(file, partitioning=None) for file in log.glob("*/*.parquet")])
    schema = arrow_schema(table_columns(made))
    table = pa.Table.from_pylist([{"_version": 0, **row} for row in assigned], schema)
    return build(template, inputs, spark.createDataFrame(table)).toArrow()


def _input(spark: SparkSession, template: Template, n: int, catalog: Catalog, tables: Tables) -> DataFrame:
    alias, streams = f"i{n}", [s for s in catalog.values() if s.schema_class == template.family.read[n]]
    frames = [spark.createDataFrame(tables[s.name]).withColumn("_stream", F.lit(s.name)) for s in streams]
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionByName(frame)
    time = _named(streams[0].time)
    tuples = together.select(
        *(_named(c.name).alias(input_column(alias, c.name)) for c in streams[0].columns),
        F.unix_micros(time).alias(f"{alias}__us"),
        F.col("_stream").alias(f"{alias}__stream"),
        time.alias("_event"),
    )
    types = {column: Type(type_) for column, type_ in template.family.classes[n] if column}

    def open_table(lookup: Lookup, columns: Sequence[str]) -> DataFrame:
        rows = tables[lookup.table].select(columns)
        named = rows.rename_columns([f"c{n}" for n in range(len(columns))])
        return spark.createDataFrame(named)

    return join_tables(tuples, alias, types, lookups_of(template.family.classes[n]), list(types), open_table)


def _named(column: str) -> Column:
    return F.col("`" + column.replace("`", "``") + "`")


def _answer(log: pa.Table, fragment: int, pipeline: Pipeline, template: Template, query: Query) -> pa.Table:
    mine = log.filter(pa.compute.field("_fragment") == fragment)
    named = [mine.column(name) for name in log_columns(pipeline, template)]
    return pa.table(named, names=[c.name for c in query.columns]).cast(
        arrow_schema({c.name: c.type for c in query.columns})
    )
