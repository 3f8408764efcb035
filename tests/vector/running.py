"""Fragments over batches without Spark: what filters put out, and windows with their partial aggregates merged."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from towpath.lang import parse
from towpath.lang.query import Query
from towpath.plan.assignment import input_column, log_columns
from towpath.plan.cut import plan
from towpath.plan.join_class import CLASS, KEPT, KEYS, PARTNERS
from towpath.plan.pipeline import Pipeline
from towpath.plan.serial import dump_pipeline, load_pipeline
from towpath.plan.slots import GROUPS, MERGED, after_aggregate
from towpath.plan.templates import universal_for
from towpath.schema import Catalog, Stream
from towpath.vector.closing import rankings, results
from towpath.vector.evaluate import RESULTS, Filters, OneStream, Origin
from towpath.vector.fragments import VectorFragment
from towpath.vector.joins import Side
from towpath.vector.ranking import first_rows, numbered_rows
from towpath.vector.windows import PARTIALS, Windows

BETWEEN = "\n"


def pipelines(sql: str, catalog: Catalog) -> tuple[Query, tuple[Pipeline, ...]]:
    query = parse(sql, catalog)
    return query, plan(query, catalog).pipelines


def as_input(rows: pa.Table, stream: Stream, alias: str = "i0") -> pa.Table:
    """Rows of a stream as its carrier gets them."""
    named = rows.rename_columns([input_column(alias, name) for name in rows.column_names])
    us = rows[stream.time].cast(pa.int64())
    return named.append_column(f"{alias}__us", us).append_column(
        f"{alias}__stream", pa.array([stream.name] * rows.num_rows, pa.string())
    )


def fragment(number: int, pipeline: Pipeline) -> VectorFragment:
    post = "" if pipeline.window is None else BETWEEN.join(dump_pipeline(after_aggregate(pipeline)))
    return VectorFragment(number, pipeline, post)


def pipeline_of(post: str) -> Pipeline:
    return load_pipeline(*post.split(BETWEEN))


def filtered(
    fragments: Sequence[VectorFragment], batches: Sequence[pa.Table], origin: type[Origin] = OneStream
) -> pa.Table:
    program = Filters(fragments, origin)
    return pa.concat_tables([RESULTS.empty_table(), *(program.results(batch) for batch in batches)])


def windowed(
    fragments: Sequence[VectorFragment], batches: Sequence[pa.Table], origin: type[Origin] = OneStream
) -> pa.Table:
    program = Windows(fragments, origin)
    rows = merged([program.partials(batch) for batch in batches])
    if all(f.pipeline.ranking is None for f in fragments):
        return results(rows, pipeline_of)
    kept, known = RESULTS.empty_table(), rankings(rows, pipeline_of)
    for part in (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2)):
        kept = first_rows(pa.concat_tables([kept, results(part, pipeline_of)]), known)
    return numbered_rows(kept, known)


def kept(fragments: Sequence[VectorFragment], sides: Sequence[Sequence[pa.Table]]) -> list[pa.Table]:
    """What a join keeps of the batches of its two inputs."""
    programs = [Side(fragments, n) for n in range(2)]
    return [
        pa.concat_tables([program.kept(batch) for batch in batches])
        for program, batches in zip(programs, sides, strict=True)
    ]


def met(left: pa.Table, right: pa.Table) -> pa.Table:
    """The pairs of what is kept, as Spark's join makes them (spark/universal.py)."""
    key = [CLASS, "_until", *KEYS]
    pairs = pl.DataFrame(pl.from_arrow(left)).join(
        pl.DataFrame(pl.from_arrow(right)), on=key, how="inner", nulls_equal=True
    )
    ahead = pl.col("i1__us") - pl.col("i0__us")
    latest = pl.max_horizontal("i0__us", "i1__us")
    wanted = (ahead <= pl.col("_keep")) & (-ahead <= pl.col("_keep_right")) & (latest >= pl.col("_from"))
    met = pairs.filter(wanted).filter(_partners("_partners", "_of_right"), _partners("_partners_right", "_of"))
    streams = {"_of": "i0__of", "_of_right": "i1__of"}
    return met.select(CLASS, *_tuples(left, right), *streams).rename(streams).to_arrow()


def _partners(of_one: str, other: str) -> pl.Expr:
    """Whether the bit of the other's stream is set."""
    known = pl.struct(of_one, other)
    return known.map_elements(lambda row: bool(row[of_one] >> row[other] % PARTNERS & 1), pl.Boolean)


def _tuples(*sides: pa.Table) -> list[str]:
    return [name for side in sides for name in side.column_names if name not in KEPT]


def merged(partials: Sequence[pa.Table]) -> pa.Table:
    """As Spark merges them, each column with its function."""
    rows = pl.DataFrame(pl.from_arrow(pa.concat_tables([PARTIALS.empty_table(), *partials])))
    functions = [_merged(name) for name in MERGED]
    return rows.group_by("_fragment", "_end", "_post", *GROUPS).agg(*functions).to_arrow().select(PARTIALS.names)


def _merged(name: str) -> pl.Expr:
    merge, _ = MERGED[name]
    column = pl.col(name)
    if merge == "sum":
        return pl.when(column.count() > 0).then(column.sum())
    # Polars passes over NaN, which Spark takes for the largest.
    largest = column.nan_max() if "_d" in name else column.max()
    return column.min() if merge == "min" else largest


def answer(log: pa.Table, number: int, pipeline: Pipeline) -> pa.Table:
    """The output columns of a fragment."""
    mine = log.filter(pa.compute.equal(log["_fragment"], number))
    template = universal_for(pipeline)
    assert template is not None, "it runs in a universal carrier"
    columns = list(log_columns(pipeline, template))
    return pa.table([mine[column] for column in columns], names=[f"c{n}" for n in range(len(columns))])
