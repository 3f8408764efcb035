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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from towpath.lang.like import pattern
from towpath.plan.boxes import Box
from towpath.plan.constants import Value
from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Bound, Pipeline, Slot
from towpath.plan.templates import Probe, Template, numbered
from towpath.schema import Type, internal

Row = dict[str, Value | None]
NOBODY = -1  # the fragment of no query


@dataclass(frozen=True)
class TableChange:
    """What a new version of an assignment table brings: rows that come, and fragments that leave for good."""

    added: Sequence[Row]
    removed: Sequence[int] = ()
    since: int | None = None  # the version that is changed; None: there is none, the rows are the whole table


SWITCHES = 62  # of a mask, which is a BIGINT
PREFIXES = {"residuals": "r", "computed": "x", "having": "h"}


def columns(template: Template, types: dict[ColumnRef, Type]) -> dict[str, Type]:
    """The assignment table's columns. Integers are BIGINT, so that a constant never needs to fit the column's width."""
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
        result |= {"w_range": Type.BIGINT, "w_slide": Type.BIGINT}
        result |= dict.fromkeys(masks("groups", template.groups), Type.BIGINT)
        result |= dict.fromkeys(masks("aggregates", template.aggregates), Type.BIGINT)
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
    """One row for every box of the pipeline."""
    common: Row = {"_fragment": fragment}
    for source in pipeline.sources:
        common[f"s_{source.alias}"] = source.stream
        if template.family.reach_us:
            common[f"d_{source.alias}"] = source.range_us
    if pipeline.window is not None:
        common |= {"w_range": pipeline.window.range_us, "w_slide": pipeline.window.slide_us}
        common |= _switches("groups", pipeline.groups, template.groups)
        common |= _switches("aggregates", pipeline.aggregates, template.aggregates)
    for part, prefix in PREFIXES.items():
        common |= _constants(getattr(pipeline, part), getattr(template, part), part, prefix)
    return [common | _box(box, template.probes) for box in pipeline.boxes]


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
    likes = {
        int(e.expression.name) for e in bound.slot.expr.find_all(exp.Like) if isinstance(e.expression, exp.Parameter)
    }
    return [pattern(str(value)) if k in likes else value for k, value in enumerate(bound.values)]


def _box(box: Box, probes: tuple[Probe, ...]) -> Row:
    row: Row = {"_probe": probes.index(tuple(c for c, _ in box.equals))}
    row |= {name("e", column): value for column, value in box.equals}
    for column, interval in box.ranges:
        row |= {name("lo", column): interval.lo, name("hi", column): interval.hi}
    return row


def group_columns(pipeline: Pipeline, template: Template) -> Iterator[str]:
    """The results log's column for every group of an aggregate, in order."""
    for slot in pipeline.groups:
        yield f"g{template.groups.index(slot)}"


def log_columns(pipeline: Pipeline, template: Template) -> Iterator[str]:
    """The results log's column for every output of a pipeline, in order."""
    computed = dict(zip(pipeline.computed, numbered(b.slot for b in pipeline.computed), strict=True))
    computed_at, groups_at, aggregates_at = map(_places, (template.computed, template.groups, template.aggregates))
    for output in pipeline.outputs:
        match output.kind:
            case "column":
                assert output.column is not None
                yield name("c", output.column)
            case "computed":
                assert output.bound is not None
                yield f"x{computed_at[computed[output.bound]]}"
            case "group":
                assert output.slot is not None
                yield f"g{groups_at[output.slot]}"
            case "aggregate":
                assert output.slot is not None
                yield f"a{aggregates_at[output.slot]}"
            case "window_start":
                yield "_born"
            case _:
                yield "_time"
