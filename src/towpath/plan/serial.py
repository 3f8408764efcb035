"""Pipelines, templates and constants as JSON: what comes back is exactly what was written down.

A carrier goes on from its checkpoint with the plan it was started with, and a fragment is what it was when its query
was planned, whatever is made of the same SQL later.

A pipeline is two texts: its *shape*, which queries have in common that differ in streams of one class, constants and
lengths of windows alone, and the *values* in the shape's places.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

from towpath.lang.query import RankFunction, Window
from towpath.plan.boxes import Box, Interval
from towpath.plan.constants import Value, dump_value, load_value
from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Bound, Output, OutputKind, Pipeline, PipelineSource, Ranking, RankKey, Slot
from towpath.plan.templates import Family, Template
from towpath.plan.trees import dump_tree, load_tree
from towpath.schema import Type

SHAPES_KEPT = 4_096  # that were read last: alike pipelines have their expressions in common

FAMILY = ("classes", "times", "keys", "window", "reach_us", "universal", "ranked")
PLAIN = ("probes", "ranges", "columns")
SLOTS = ("residuals", "computed", "groups", "aggregates", "having")


def dump_template(template: Template) -> dict[str, Any]:
    return {
        "family": {key: getattr(template.family, key) for key in FAMILY},
        **{part: getattr(template, part) for part in PLAIN},
        **{part: [_dump_slot(slot) for slot in getattr(template, part)] for part in SLOTS},
    }


def load_template(data: dict[str, Any]) -> Template:
    parts: dict[str, Any] = {part: _tuples(data[part]) for part in PLAIN}
    parts |= {part: tuple(_load_slot(slot) for slot in data[part]) for part in SLOTS}
    return Template(Family(**{key: _tuples(data["family"][key]) for key in FAMILY if key in data["family"]}), **parts)


class PipelineText(NamedTuple):
    """A pipeline that is written down."""

    shape: str  # one object in memory, however many pipelines have it
    values: str


def dump_pipeline(pipeline: Pipeline) -> PipelineText:
    """Pipelines that are the same have the same texts."""
    slots = _Slots()
    shape = {
        "sources": [[s.alias, s.schema_class, s.time] for s in pipeline.sources],
        "keys": pipeline.keys,
        "boxes": [[[c for c, _ in box.equals], [c for c, _ in box.ranges]] for box in pipeline.boxes],
        "residuals": [slots.number(b.slot) for b in pipeline.residuals],
        "outputs": [_dump_output(o, slots) for o in pipeline.outputs],
        "windowed": pipeline.window is not None,
        "groups": [slots.number(g) for g in pipeline.groups],
        "aggregates": [slots.number(a) for a in pipeline.aggregates],
        "having": [slots.number(b.slot) for b in pipeline.having],
        **({"ranking": _dump_ranking(pipeline.ranking, slots)} if pipeline.ranking else {}),
        "slots": slots.dumped,
    }
    return PipelineText(sys.intern(_text(shape)), _text([dump_value(v) for v in _values(pipeline)]))


def load_pipeline(shape: str, values: str) -> Pipeline:
    return _load_shape(shape).filled([load_value(v) for v in json.loads(values)])


def _values(pipeline: Pipeline) -> Iterator[Value | None]:
    """In the order in which `_Shape.filled` takes them."""
    for source in pipeline.sources:
        yield from (source.stream, source.range_us)
    for box in pipeline.boxes:
        yield from (value for _, value in box.equals)
        yield from (end for _, interval in box.ranges for end in (interval.lo, interval.hi))
    computed = (o.bound for o in pipeline.outputs if o.bound is not None)
    for bound in (*pipeline.residuals, *computed, *pipeline.having):
        yield from bound.values
    if pipeline.window is not None:
        yield from astuple(pipeline.window)
    if pipeline.ranking is not None:
        yield pipeline.ranking.most
        for output in pipeline.ranking.outputs:
            yield from () if output.bound is None else output.bound.values


class _Slots:
    """The distinct slots of a pipeline; the rest of the shape has their numbers."""

    def __init__(self) -> None:
        self.dumped: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def number(self, slot: Slot) -> int:
        dumped = _dump_slot(slot)
        number = self._numbers.setdefault(_text(dumped), len(self.dumped))
        if number == len(self.dumped):
            self.dumped.append(dumped)
        return number


def _dump_output(output: Output, slots: _Slots) -> list[Any]:
    slot = None if output.slot is None else slots.number(output.slot)
    bound = None if output.bound is None else slots.number(output.bound.slot)
    return [output.kind, output.column, slot, bound]


def _dump_ranking(ranking: Ranking, slots: _Slots) -> list[Any]:
    return [
        ranking.function,
        [_dump_output(output, slots) for output in ranking.partition],
        [[_dump_output(key.value, slots), key.descending, key.nulls_first] for key in ranking.order],
        [_dump_output(output, slots) for output in ranking.ties],
        None if ranking.counted is None else slots.number(ranking.counted),
    ]


@dataclass(frozen=True)
class _OutputShape:
    kind: OutputKind
    column: ColumnRef | None
    slot: Slot | None
    bound: Slot | None


@dataclass(frozen=True)
class _RankingShape:
    function: RankFunction
    partition: tuple[_OutputShape, ...]
    order: tuple[tuple[_OutputShape, bool, bool], ...]
    ties: tuple[_OutputShape, ...]
    counted: Slot | None


@dataclass(frozen=True)
class _Shape:
    sources: tuple[tuple[str, tuple[tuple[str, str], ...], str], ...]  # alias, class, time
    keys: tuple[tuple[ColumnRef, ColumnRef], ...]
    boxes: tuple[tuple[tuple[ColumnRef, ...], tuple[ColumnRef, ...]], ...]  # columns of equalities, and of ranges
    residuals: tuple[Slot, ...]
    outputs: tuple[_OutputShape, ...]
    windowed: bool
    groups: tuple[Slot, ...]
    aggregates: tuple[Slot, ...]
    having: tuple[Slot, ...]
    ranking: _RankingShape | None

    def filled(self, values: list[Any]) -> Pipeline:
        rest = iter(values)

        def bound(slot: Slot) -> Bound:
            return Bound(slot, tuple(next(rest) for _ in slot.params))

        def output(shape: _OutputShape) -> Output:
            return Output(shape.kind, shape.column, shape.slot, None if shape.bound is None else bound(shape.bound))

        def ranking(shape: _RankingShape) -> Ranking:
            return Ranking(
                next(rest),
                shape.function,
                tuple(map(output, shape.partition)),
                tuple(RankKey(output(value), *how) for value, *how in shape.order),
                tuple(map(output, shape.ties)),
                shape.counted,
            )

        # Arguments are evaluated in the order in which they stand here: that of `_values`.
        pipeline = Pipeline(
            sources=tuple(
                PipelineSource(alias, next(rest), columns, time, next(rest)) for alias, columns, time in self.sources
            ),
            keys=self.keys,
            boxes=tuple(
                Box(
                    tuple((c, next(rest)) for c in equals), tuple((c, Interval(next(rest), next(rest))) for c in ranges)
                )
                for equals, ranges in self.boxes
            ),
            residuals=tuple(map(bound, self.residuals)),
            outputs=tuple(map(output, self.outputs)),
            groups=self.groups,
            aggregates=self.aggregates,
            having=tuple(map(bound, self.having)),
            window=Window(*(next(rest) for _ in fields(Window))) if self.windowed else None,
            ranking=ranking(self.ranking) if self.ranking else None,
        )
        assert next(rest, rest) is rest, "a value for every place of the shape, and no other"
        return pipeline


@lru_cache(SHAPES_KEPT)
def _load_shape(text: str) -> _Shape:
    data = json.loads(text)
    slots = [_load_slot(slot) for slot in data["slots"]]

    def numbered(part: str) -> tuple[Slot, ...]:
        return tuple(slots[n] for n in data[part])

    def place(number: int | None) -> Slot | None:
        return None if number is None else slots[number]

    def output(dumped: list[Any]) -> _OutputShape:
        kind, column, slot, bound = dumped
        return _OutputShape(kind, _tuples(column), place(slot), place(bound))

    def ranking(dumped: list[Any]) -> _RankingShape:
        function, partition, order, ties, counted = dumped
        return _RankingShape(
            function,
            tuple(map(output, partition)),
            tuple((output(value), descending, nulls_first) for value, descending, nulls_first in order),
            tuple(map(output, ties)),
            place(counted),
        )

    return _Shape(
        sources=_tuples(data["sources"]),
        keys=_tuples(data["keys"]),
        boxes=_tuples(data["boxes"]),
        residuals=numbered("residuals"),
        outputs=tuple(map(output, data["outputs"])),
        windowed=data["windowed"],
        groups=numbered("groups"),
        aggregates=numbered("aggregates"),
        having=numbered("having"),
        ranking=ranking(data["ranking"]) if "ranking" in data else None,
    )


def _dump_slot(slot: Slot) -> dict[str, Any]:
    return {
        "expr": dump_tree(slot.expr),
        "type": slot.type.value,
        "params": [p.value for p in slot.params],
        "copy": slot.copy,
    }


def _load_slot(data: dict[str, Any]) -> Slot:
    return Slot(load_tree(data["expr"]), Type(data["type"]), tuple(Type(p) for p in data["params"]), data["copy"])


def _text(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
