"""The fixed columns of universal carriers, and which of them each value of a pipeline goes to.

A universal carrier runs pipelines of any shape, so no column of it may depend on one. There are three sets of columns:

| columns  | where                                                       | names              |
|----------|-------------------------------------------------------------|--------------------|
| OUTPUTS  | the results log: every value that a fragment puts out       | `l0`: first BIGINT |
| GROUPS   | the key of the aggregate, beside fragment and window        | `g_l0`             |
| MERGED   | the values of the aggregate, each with one merge function   | `sum_l0`           |

In the log each type has columns of its own, since readers take the types as they find them. Inside of the aggregate
integers, booleans, timestamps (microseconds) and dates (days) all travel as BIGINT.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

from sqlglot import exp

from towpath.lang import infer
from towpath.lang.query import RANK, WINDOW
from towpath.plan.boxes import Box
from towpath.plan.expressions import form
from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Bound, Output, Pipeline, PipelineSource, Slot
from towpath.schema import TABLES, Type, is_link

Merge = Literal["sum", "min", "max"]
Measure = Literal["rows", "count", "value", "high", "low"]

# A sum of BIGINTs is kept exactly, as high * 2^32 + low: the sums of both halves hold 2^31 tuples.
HALF_BITS = 32
# Rust's regular expressions have a bound on their size, which `_` fills most: any character has many byte sequences.
LONGEST_PATTERN = 1_000
# A join of more has a step for each, and so a plan for each number of them.
MOST_SOURCES = 2

_OUTPUTS = {
    Type.BOOLEAN: ("b", 4),
    Type.INT: ("i", 6),
    Type.BIGINT: ("l", 8),
    Type.DOUBLE: ("d", 8),
    Type.STRING: ("s", 8),
    Type.TIMESTAMP: ("t", 4),
    Type.DATE: ("y", 3),
}
_KINDS = {Type.BIGINT: "l", Type.DOUBLE: "d", Type.STRING: "s"}
_GROUPS = {Type.BIGINT: 4, Type.DOUBLE: 2, Type.STRING: 4}
_MERGED: dict[tuple[Merge, Type], int] = {
    ("sum", Type.BIGINT): 8,
    ("sum", Type.DOUBLE): 4,
    ("min", Type.BIGINT): 2,
    ("max", Type.BIGINT): 2,
    ("min", Type.DOUBLE): 2,
    ("max", Type.DOUBLE): 2,
    ("min", Type.STRING): 1,
    ("max", Type.STRING): 1,
}

OUTPUTS: Mapping[str, Type] = {f"{p}{n}": t for t, (p, count) in _OUTPUTS.items() for n in range(count)}
GROUPS: Mapping[str, Type] = {f"g_{_KINDS[t]}{n}": t for t, count in _GROUPS.items() for n in range(count)}
MERGED: Mapping[str, tuple[Merge, Type]] = {
    f"{merge}_{_KINDS[t]}{n}": (merge, t) for (merge, t), count in _MERGED.items() for n in range(count)
}


def carried(type_: Type) -> Type:
    """The type in which a value travels through the aggregate."""
    return type_ if type_ in (Type.DOUBLE, Type.STRING) else Type.BIGINT


@dataclass(frozen=True)
class Partial:
    """A value that a window's tuples are merged into: of a tuple it is `measure`, of several it is merged."""

    merge: Merge
    type: Type
    measure: Measure
    argument: exp.Expression | None = None  # None: the tuple itself counts


# An output of a fragment, whoever reads it: a plain column, what is computed, a group or an aggregate, or the rank.
Item = ColumnRef | Bound | Slot
RANKED: ColumnRef = (WINDOW, RANK)
_T = TypeVar("_T", bound=Hashable)
_K = TypeVar("_K", bound=Hashable)


class Layout:
    """The columns of one pipeline's values. Only what `fits` has a layout.

    Pipelines of equal signatures that put out the same plain columns have the same layout.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    @cached_property
    def types(self) -> dict[ColumnRef, Type]:
        return column_types(self.pipeline)

    @cached_property
    def outputs(self) -> dict[Item, str]:
        """The log's column of everything that the fragment puts out."""
        return _allotted(_items(self.pipeline, self.types), {t: _named(p, n) for t, (p, n) in _OUTPUTS.items()})

    @cached_property
    def groups(self) -> dict[Slot, str]:
        names = {t: _named(f"g_{_KINDS[t]}", count) for t, count in _GROUPS.items()}
        return _allotted(((s, carried(s.type)) for s in _sorted(self.pipeline.groups)), names)

    @cached_property
    def partials(self) -> dict[Partial, str]:
        names = {key: _named(f"{key[0]}_{_KINDS[key[1]]}", count) for key, count in _MERGED.items()}
        found = dict.fromkeys(p for s in _sorted(self.pipeline.aggregates) for p in partials(s, self.types))
        return _allotted(((p, (p.merge, p.type)) for p in found), names)

    def check(self) -> None:
        """Raises NoColumn if one of the pipeline's values has none."""
        for part in ("outputs", "groups", "partials"):
            getattr(self, part)

    def merged(self, slot: Slot) -> tuple[str, ...]:
        """The columns that an aggregate is made of, in the order of its partials."""
        return tuple(self.partials[p] for p in partials(slot, self.types))


def fits(pipeline: Pipeline) -> bool:
    """Whether a universal carrier can run a pipeline."""
    is_session = pipeline.window is not None and pipeline.window.is_session
    return not is_session and has_columns(pipeline) and not has_long_pattern(pipeline)


def has_long_pattern(pipeline: Pipeline) -> bool:
    return any(len(like.expression.name) > LONGEST_PATTERN for like in _patterns(pipeline))


def has_columns(pipeline: Pipeline) -> bool:
    """Whether it is of one stream or joins two, with enough columns and aggregates to merge: a matter of its shape."""
    if len(pipeline.sources) > MOST_SOURCES or any(is_link(source.schema_class) for source in pipeline.sources):
        return False
    try:
        Layout(pipeline).check()
    except NoColumn:
        return False
    return True


def merges_texts(pipeline: Pipeline) -> bool:
    """Whether one of its aggregates is the least or the greatest of texts."""
    return any(partial.type is Type.STRING for partial in Layout(pipeline).partials)


class NoColumn(Exception):
    """A pipeline needs more columns of a type than there are, or an aggregate that cannot be merged."""


def after_aggregate(pipeline: Pipeline) -> Pipeline:
    """What is needed of a windowed pipeline once its windows have closed: the same layout, and no conditions."""
    used = {(c.table, c.name) for slot in pipeline.aggregates + pipeline.groups for c in slot.columns}
    return replace(
        pipeline,
        sources=tuple(_narrowed(source, used) for source in pipeline.sources),
        keys=(),
        boxes=(Box(),),
        residuals=(),
        outputs=tuple(o for o in pipeline.outputs if o.bound is not None),
    )


def _narrowed(source: PipelineSource, used: Collection[ColumnRef]) -> PipelineSource:
    kept = tuple(
        (name, type_)
        for name, type_ in source.schema_class
        if (source.alias, name) in used or not (name or type_.startswith(TABLES))
    )
    return replace(source, schema_class=kept, stream="")


def column_types(pipeline: Pipeline) -> dict[ColumnRef, Type]:
    return {
        (source.alias, column): Type(type_)
        for source in pipeline.sources
        for column, type_ in source.schema_class
        if column
    }


def partials(slot: Slot, types: Mapping[ColumnRef, Type]) -> tuple[Partial, ...]:
    """What an aggregate is made of when its window closes."""
    call = slot.expr
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Star):
        return (Partial("sum", Type.BIGINT, "rows"),)
    if isinstance(call.this, exp.Distinct) or not isinstance(call, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
        raise NoColumn(f"{form(call)} cannot be merged")
    argument: exp.Expression = call.this
    count = Partial("sum", Type.BIGINT, "count", argument)
    if isinstance(call, exp.Count):
        return (count,)
    type_ = infer(argument, lambda alias, column: types[alias, column])
    if isinstance(call, exp.Min | exp.Max):
        return (Partial("min" if isinstance(call, exp.Min) else "max", carried(type_), "value", argument),)
    sums = tuple(_sums(argument, type_))
    return (*sums, count) if isinstance(call, exp.Avg) else sums


def _sums(argument: exp.Expression, type_: Type) -> Iterator[Partial]:
    if type_ is Type.BIGINT:
        yield Partial("sum", Type.BIGINT, "high", argument)
        yield Partial("sum", Type.BIGINT, "low", argument)
    else:
        yield Partial("sum", carried(type_), "value", argument)


def _patterns(pipeline: Pipeline) -> Iterator[exp.Like]:
    bounds = (*pipeline.residuals, *pipeline.having, *pipeline.computed)
    slots = (*(b.slot for b in bounds), *pipeline.groups, *pipeline.aggregates)
    if any(slot.matches_patterns for slot in slots):
        for expr in (*(b.expr for b in bounds), *(s.expr for s in slots)):
            yield from expr.find_all(exp.Like)


def _items(pipeline: Pipeline, types: Mapping[ColumnRef, Type]) -> Iterator[tuple[Item, Type]]:
    """Plain columns come last, so that what else is put out stays where it is, whichever columns are read."""
    yield from ((bound, bound.slot.type) for bound in pipeline.computed)
    for slots in (pipeline.groups, pipeline.aggregates):
        yield from ((slot, slot.type) for slot in _sorted(slots))
    if pipeline.ranking is not None:
        yield RANKED, Type.BIGINT
    columns = sorted({o.column for o in pipeline.outputs if o.column is not None})
    yield from ((column, types[column]) for column in columns)


def item_of(output: Output) -> Item:
    if output.kind == "rank":
        return RANKED
    found = output.column or output.slot or output.bound
    assert found is not None, f"an output of kind {output.kind} says what it is"
    return found


def _sorted(slots: Iterable[Slot]) -> list[Slot]:
    return sorted(dict.fromkeys(slots), key=lambda slot: slot.text)


def _named(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{n}" for n in range(count)]


def _allotted(wanted: Iterable[tuple[_T, _K]], names: Mapping[_K, list[str]]) -> dict[_T, str]:
    free = {key: iter(listed) for key, listed in names.items()}
    found = {}
    for value, key in wanted:
        name = next(free[key], None) if key in free else None
        if name is None:
            raise NoColumn(f"no column is left for {value}")
        found[value] = name
    return found
