"""What comes out when windows close: aggregates of what was merged, HAVING, and computed outputs.

Fragments that differ in their constants alone are calculated together: their constants are columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl
import pyarrow as pa
from sqlglot import exp

from towpath.errors import FragmentFailed
from towpath.plan.pipeline import Bound, Pipeline
from towpath.plan.ranking import RankedBy, ranked_by
from towpath.plan.slots import OUTPUTS, RANKED, Layout
from towpath.plan.trees import Grouped
from towpath.schema import Type
from towpath.vector.aggregates import final, restored
from towpath.vector.evaluate import RESULTS, arrow, numbered, table_of
from towpath.vector.expressions import DTYPES, NotVectorised, plain_value
from towpath.vector.fragments import SlotCompiler, shown
from towpath.vector.texts import TIMESTAMP

POSTS_KEPT = 65_536
RANGE = "_range"
PipelineOf = Callable[[str], Pipeline]


def results(merged: pa.Table, pipeline_of: PipelineOf) -> pa.Table:
    """The rows of the results log of windows that have closed. `pipeline_of` reads a fragment's post."""
    frame = pl.DataFrame(pl.from_arrow(merged))
    posts = numbered(frame.select("_post"))
    closings = [_closing(post, pipeline_of) for post in posts.values["_post"]]
    shapes: dict[str, list[int]] = {}
    for number, closing in enumerate(closings):
        shapes.setdefault(closing.shape, []).append(number)
    # One shape behind the other, so that each is a slice.
    order = np.empty(len(closings), np.int64)
    order[[n for numbers in shapes.values() for n in numbers]] = np.arange(len(closings))
    rows = np.argsort(order[posts.numbers], kind="stable")
    frame, places = frame[rows], order[posts.numbers][rows]
    made, first = [], 0
    for numbers in shapes.values():
        start, end = np.searchsorted(places, (first, first + len(numbers)))
        mine = frame.slice(start, end - start)
        made.append(_closed(mine, places[start:end] - first, [closings[n] for n in numbers]))
        first += len(numbers)
    if not made:
        return RESULTS.empty_table()
    together = pl.concat(made, how="diagonal")
    return table_of({c.name: arrow(c) for c in together.get_columns()}, RESULTS, together.height)


def rankings(merged: pa.Table, pipeline_of: PipelineOf) -> dict[int, RankedBy]:
    """How the fragments choose the first rows of their windows."""
    distinct = merged.group_by(["_fragment", "_post"]).aggregate([])
    posts = zip(distinct["_fragment"].to_pylist(), distinct["_post"].to_pylist(), strict=True)
    return {fragment: _ranking(post, pipeline_of) for fragment, post in posts}


@lru_cache(POSTS_KEPT)
def _ranking(post: str, pipeline_of: PipelineOf) -> RankedBy:
    pipeline = pipeline_of(post)
    return ranked_by(pipeline, Layout(pipeline).outputs)


@dataclass(frozen=True)
class Closing:
    """What is calculated of the merged values of a fragment. Those of one shape calculate the same."""

    shape: str
    used: tuple[str, ...]  # columns of the merged values
    values: tuple[pl.Expr, ...]
    having: tuple[pl.Expr, ...]
    computed: tuple[pl.Expr, ...]
    shown: tuple[pl.Expr, ...]
    constants: tuple[tuple[str, Type, object], ...]

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        values = rows.lazy().select(*self.values, *(name for name, _, _ in self.constants))
        if self.having:
            values = values.filter(*self.having)
        if self.computed:
            values = values.with_columns(*self.computed)
        return values.select(*self.shown).collect(optimizations=pl.QueryOptFlags.none())


def _closed(rows: pl.DataFrame, places: np.ndarray, closings: Sequence[Closing]) -> pl.DataFrame:
    """The results of closings of one shape; each row belongs to the closing at its place."""
    first = closings[0]
    constants = pl.DataFrame(
        [
            pl.Series(name, [c.constants[n][2] for c in closings], DTYPES[type_])
            for n, (name, type_, _) in enumerate(first.constants)
        ]
    )
    given = rows.select(first.used).hstack(constants[places])
    try:
        return first(given)
    except Exception as error:
        raise _blamed(first, given, error) from error


def _blamed(closing: Closing, rows: pl.DataFrame, error: Exception) -> Exception:
    for (fragment,), mine in rows.group_by("_fragment"):
        try:
            closing(mine)
        except Exception as alone:
            return FragmentFailed(int(str(fragment)), alone)
    return error


@lru_cache(POSTS_KEPT)
def _closing(post: str, pipeline_of: PipelineOf) -> Closing:
    pipeline = pipeline_of(post)
    try:
        return closing_of(pipeline, apart=True)
    except NotVectorised:
        return closing_of(pipeline, apart=False)


def closing_of(pipeline: Pipeline, *, apart: bool) -> Closing:
    """`apart`: with the constants as columns, so that many can be calculated together. LIKE has to know its pattern."""
    assert pipeline.window is not None, "what closes is a window"
    layout = Layout(pipeline)
    end, compile_ = pl.col("_end"), _Compiler(layout, apart)
    groups = [(layout.outputs[s], restored(pl.col(layout.groups[s]), s.type)) for s in pipeline.groups]
    aggregates = [(layout.outputs[s], final(s, layout)) for s in pipeline.aggregates]
    having = tuple(compile_(bound, f"h{n}") for n, bound in enumerate(pipeline.having))
    computed = tuple(compile_(bound, f"x{n}").alias(layout.outputs[bound]) for n, bound in enumerate(pipeline.computed))
    bounds = [(b.slot.text, () if apart else b.values) for b in (*pipeline.having, *pipeline.computed)]
    calls = [(s.text, layout.merged(s), layout.outputs[s]) for s in pipeline.aggregates]
    return Closing(
        shape=repr((calls, [(s.text, layout.groups[s], layout.outputs[s]) for s in pipeline.groups], bounds)),
        used=("_fragment", "_end", *layout.groups.values(), *layout.partials.values()),
        values=(
            pl.col("_fragment"),
            end.cast(TIMESTAMP).alias("_time"),
            (end - pl.col(RANGE)).cast(TIMESTAMP).alias("_born"),
            *(value.alias(name) for name, value in (*groups, *aggregates)),
        ),
        having=having,
        computed=computed,
        shown=(
            pl.col("_fragment", "_time", "_born"),
            *(shown(pl.col(slot), OUTPUTS[slot]) for item, slot in layout.outputs.items() if item != RANKED),
        ),
        constants=((RANGE, Type.BIGINT, pipeline.window.range_us), *compile_.constants),
    )


class _Compiler:
    """For what is calculated of groups and aggregates, which have the names of their columns in the log."""

    def __init__(self, layout: Layout, apart: bool) -> None:
        pipeline = layout.pipeline
        known: dict[exp.Expression, pl.Expr] = {
            Grouped(this=s.expr.copy()): pl.col(layout.outputs[s]) for s in pipeline.groups
        }
        known |= {s.expr: pl.col(layout.outputs[s]) for s in pipeline.aggregates}
        self._layout, self._known, self._apart = layout, known, apart
        self.constants: list[tuple[str, Type, object]] = []

    def __call__(self, bound: Bound, prefix: str) -> pl.Expr:
        if not self._apart:
            return SlotCompiler(self._layout.types, self._known)(bound.expr)
        names = [f"_{prefix}_{k}" for k in range(len(bound.values))]
        given = zip(names, bound.slot.params, bound.values, strict=True)
        self.constants += [(name, type_, plain_value(value)) for name, type_, value in given]
        parameters: dict[exp.Expression, tuple[pl.Expr, Type]] = {
            exp.Parameter(this=exp.Literal.number(k)): (pl.col(name), type_)
            for k, (name, type_) in enumerate(zip(names, bound.slot.params, strict=True))
        }
        return SlotCompiler(self._layout.types, self._known, parameters)(bound.slot.expr)
