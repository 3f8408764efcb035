"""A pipeline as rows of its carrier's assignment table, and the table's columns.

| column          | meaning                                                              |
|-----------------|----------------------------------------------------------------------|
| _fragment       | the fragment's number                                                |
| _probe          | which of the template's equality lookups this row answers to         |
| s_<i>           | stream of source i                                                   |
| e_<i>_<column>  | the value an equality asks for                                       |
| lo_/hi_...      | bounds of a range                                                    |
| d_<i>           | RANGE of source i in microseconds                                    |
| w_range, w_slide| the aggregate's window in microseconds                               |
| *_mask<m>       | which of the template's slots the fragment uses, one bit each        |
| <slot>_p<k>     | constant k of a slot: r residual, x computed, h having               |
| ranking         | how the fragment chooses the first rows of its windows (ranking.py)  |
| shape, constants| of a universal carrier instead of all that: the pipeline (serial.py) |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import lru_cache

from sqlglot import exp

from towpath.lang.like import pattern
from towpath.lang.query import RANK, Window
from towpath.plan.boxes import Box
from towpath.plan.constants import Value
from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Bound, Output, Pipeline, Slot
from towpath.plan.ranking import RANKING, ranked_by
from towpath.plan.serial import dump_pipeline
from towpath.plan.slots import RANKED, Item, Layout, item_of
from towpath.plan.templates import Probe, Template, numbered, template_of
from towpath.schema import Type, internal

Row = dict[str, Value | None]
START = "start"
NOBODY = -1  # the fragment of no query


@dataclass(frozen=True)
class TableChange:
    """What a new version of an assignment table brings: rows that come, and fragments that leave for good."""

    added: Sequence[Row]
    removed: Sequence[int] = ()
    since: int | None = None  # the version that is changed; None: there is none, the rows are the whole table


SLOTS_KEPT = 4_096  # of which it is known where LIKE is; alike fragments have the same
SWITCHES = 62  # of a mask, which is a BIGINT
PREFIXES = {"residuals": "r", "computed": "x", "having": "h"}
WINDOW_COLUMNS = tuple(f"w_{field.name.removesuffix('_us')}" for field in fields(Window))  # w_range, w_slide
UNIVERSAL = {
    "_fragment": Type.INT,
    "s_i0": Type.STRING,
    **dict.fromkeys(WINDOW_COLUMNS, Type.BIGINT),
    "shape": Type.STRING,
    "constants": Type.STRING,
}


def columns(template: Template, types: dict[ColumnRef, Type]) -> dict[str, Type]:
    """The assignment table's columns. Integers are BIGINT, so that a constant never needs to fit the column's width."""
    if template.family.universal:
        return UNIVERSAL
    result = {"_fragment": Type.INT, "_probe": Type.INT}
    for n in range(len(template.family.classes)):
        result[f"s_i{n}"] = Type.STRING
        if template.family.reach_us:
            result[f"d_i{n}"] = Type.BIGINT
    for column in dict.fromkeys(c for probe in template.probes for c in probe):
        result[name("e", column)] = widened(types[column])
    for column in template.ranges:
        result[name("lo", column)] = result[name("hi", column)] = widened(types[column])
    if template.family.window:
        result |= dict.fromkeys(WINDOW_COLUMNS, Type.BIGINT)
        result |= dict.fromkeys(masks("groups", template.groups), Type.BIGINT)
        result |= dict.fromkeys(masks("aggregates", template.aggregates), Type.BIGINT)
    if template.family.ranked:
        result[RANKING] = Type.STRING
    for part, prefix in PREFIXES.items():
        slots: tuple[Slot, ...] = getattr(template, part)
        result |= dict.fromkeys(masks(part, slots), Type.BIGINT)
        result |= {f"{prefix}{n}_p{k}": t for n, slot in enumerate(slots) for k, t in enumerate(slot.params)}
    return result


def name(prefix: str, column: ColumnRef) -> str:
    return f"{prefix}_{column[0]}_{internal(column[1])}"


def input_column(alias: str, column: str) -> str:
    """The name of a source's column in its carrier."""
    return f"{alias}_{internal(column)}"


def widened(type_: Type) -> Type:
    return Type.BIGINT if type_.integral else type_


def rows(fragment: int, pipeline: Pipeline, template: Template) -> list[Row]:
    """One row for every box of the pipeline; in a universal carrier, one row."""
    common: Row = {"_fragment": fragment}
    for source in pipeline.sources:
        common[f"s_{source.alias}"] = source.stream
        if template.family.reach_us:
            common[f"d_{source.alias}"] = source.range_us
    if pipeline.window is not None:
        common |= zip(WINDOW_COLUMNS, astuple(pipeline.window), strict=True)
    if template.family.universal:
        shape, constants = dump_pipeline(pipeline)
        return [common | {"shape": shape, "constants": constants}]
    if pipeline.window is not None:
        common |= _switches("groups", pipeline.groups, template.groups)
        common |= _switches("aggregates", pipeline.aggregates, template.aggregates)
    if pipeline.ranking is not None:
        common[RANKING] = ranked_by(pipeline, output_places(pipeline, template)).dump()
    for part, prefix in PREFIXES.items():
        common |= _constants(getattr(pipeline, part), getattr(template, part), part, prefix)
    return [common | _box(box, template.probes) for box in pipeline.boxes]


def window_of(row: Row) -> Window:
    return Window(*(int(str(row[column])) for column in WINDOW_COLUMNS))


def switch(part: str, n: int) -> tuple[str, int]:
    """The column and the bit that say whether a fragment uses slot n of a part."""
    return f"{part}_mask{n // SWITCHES}", 1 << n % SWITCHES


def masks(part: str, available: Sequence[Slot]) -> list[str]:
    return list(dict.fromkeys(switch(part, n)[0] for n in range(len(available))))


def _switches(part: str, used: Sequence[Slot], available: Sequence[Slot]) -> Row:
    found: dict[str, int] = dict.fromkeys(masks(part, available), 0)
    places = _places(available)
    for slot in used:
        column, bit = switch(part, places[slot])
        found[column] |= bit
    return dict(found)


def _places(slots: Sequence[Slot]) -> dict[Slot, int]:
    return {slot: n for n, slot in enumerate(slots)}


def _constants(bounds: tuple[Bound, ...], available: tuple[Slot, ...], part: str, prefix: str) -> Row:
    slots, places = numbered(b.slot for b in bounds), _places(available)
    row = _switches(part, slots, available)
    for slot, bound in zip(slots, bounds, strict=True):
        row |= {f"{prefix}{places[slot]}_p{k}": v for k, v in enumerate(in_table(bound))}
    return row


def in_table(bound: Bound) -> list[Value]:
    """A bound's constants as its carrier needs them: of LIKE the pattern that Spark is to look for."""
    likes = _patterns(bound.slot)
    return [pattern(str(value)) if k in likes else value for k, value in enumerate(bound.values)]


@lru_cache(SLOTS_KEPT)
def _patterns(slot: Slot) -> frozenset[int]:
    """Which of a slot's constants are the right side of LIKE."""
    found = (e.expression for e in slot.expr.find_all(exp.Like))
    return frozenset(int(right.name) for right in found if isinstance(right, exp.Parameter))


def _box(box: Box, probes: tuple[Probe, ...]) -> Row:
    row: Row = {"_probe": probes.index(tuple(c for c, _ in box.equals))}
    row |= {name("e", column): value for column, value in box.equals}
    for column, interval in box.ranges:
        row |= {name("lo", column): interval.lo, name("hi", column): interval.hi}
    return row


def group_columns(pipeline: Pipeline, template: Template) -> Iterator[str]:
    """The results log's column for every group of an aggregate, in order."""
    places = output_places(pipeline, template)
    return (places[slot] for slot in pipeline.groups)


def renamed_columns(pipeline: Pipeline, source: Template, target: Template) -> dict[str, str]:
    """The results log's columns of all that a fragment puts out, in the log of one template and in that of another.

    Those who share the fragment pick other columns and in another order than this pipeline does.
    """
    here, there = output_places(pipeline, source), output_places(pipeline, target)
    return {here[item]: there[item] for item in here}


def with_plain_columns(pipeline: Pipeline, template: Template, read: Iterable[str]) -> Pipeline:
    """A fragment's pipeline that puts out those plain columns that are among some columns of its carrier's results log.

    In a universal carrier it has those that it has.
    """
    if template.family.universal:
        return pipeline
    columns = {name("c", column): column for column in template.columns}
    plain = (Output("column", column=columns[c]) for c in dict.fromkeys(read) if c in columns)
    return replace(pipeline, outputs=(*(o for o in pipeline.outputs if o.kind != "column"), *plain))


def log_columns(pipeline: Pipeline, template: Template) -> Iterator[str]:
    """The results log's column for every output of a pipeline, in order."""
    places = output_places(pipeline, template)
    for output in pipeline.outputs:
        match output.kind:
            case "window_start":
                yield window_start(pipeline.window)
            case "window_end":
                yield "_time"
            case _:
                yield places[item_of(output)]


def window_start(window: Window | None) -> str:
    """The results log's column with the beginning of a window. A session is born a gap before its first tuple."""
    return START if window is not None and window.is_session else "_born"


def output_places(pipeline: Pipeline, template: Template) -> dict[Item, str]:
    """The results log's column of everything that a fragment puts out."""
    if template.family.universal:
        return Layout(pipeline).outputs
    computed_at, groups_at, aggregates_at = map(_places, (template.computed, template.groups, template.aggregates))
    slots = numbered(b.slot for b in pipeline.computed)
    places: dict[Item, str] = {o.column: name("c", o.column) for o in pipeline.outputs if o.column is not None}
    places |= {bound: f"x{computed_at[slot]}" for bound, slot in zip(pipeline.computed, slots, strict=True)}
    places |= {slot: f"g{groups_at[slot]}" for slot in pipeline.groups}
    places |= {slot: f"a{aggregates_at[slot]}" for slot in pipeline.aggregates}
    return places | ({RANKED: RANK} if pipeline.ranking else {})


def has_outputs(fragment: Pipeline, template: Template, wanted: Pipeline) -> bool:
    """Whether a fragment in a carrier puts out what a pipeline of the same signature does.

    It has everything but plain columns: a compiled carrier puts out all that its template has, and a universal one
    those of the pipeline that the fragment was made for, in places that depend on all of them.
    """
    if template.family.universal:
        return _plain_columns(fragment) == _plain_columns(wanted)
    return template.covers(template_of(wanted))


def _plain_columns(pipeline: Pipeline) -> set[ColumnRef]:
    return {o.column for o in pipeline.outputs if o.column is not None}
