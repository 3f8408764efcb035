"""Templates: what one carrier can run.

Pipelines of one family differ only in data, or in slots that a template can hold side by side. A pipeline fits a
template that *covers* it. Templates of one family can be merged, so a handful of carriers runs a workload of many
shapes; a carrier that runs is never changed, a wider one is started beside it.

A *universal* template has no slots: its carrier reads the shapes of its fragments from its table (plan/slots.py), and
covers all that its fixed columns suffice for, of one class of streams or, for joins, of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from towpath.lang.query import SESSIONS
from towpath.plan import CarrierKinds
from towpath.plan.boxes import Box
from towpath.plan.join_class import reach
from towpath.plan.operators import ColumnRef
from towpath.plan.pipeline import Bound, Output, Pipeline, PipelineSource, Ranking, Slot
from towpath.plan.slots import has_columns, has_long_pattern, merges_texts
from towpath.schema import SchemaClass, base_class

Probe = tuple[ColumnRef, ...]  # the columns one lookup compares by equality

# Beyond these sizes one plan costs more than two: generated code grows past what the JVM compiles.
MOST_PROBES, MOST_SLOTS, MOST_AGGREGATES = 8, 24, 12
ANY, ANY_WITH_TEXTS = "any", "any with texts"  # windows of universal families; the latter have least and greatest texts
KEPT = 4_096  # answers to whether a template can be universal


@dataclass(frozen=True)
class Family:
    """What cannot be data: schema classes, join columns, the kind of window, and the magnitude of the join window."""

    classes: tuple[tuple[tuple[str, str], ...], ...]
    times: tuple[str, ...]
    keys: tuple[tuple[ColumnRef, ColumnRef], ...]
    window: str  # "" | "tumbling" | "hopping" | "session"; of a universal family "" | ANY | ANY_WITH_TEXTS
    reach_us: int  # upper bound of the join windows in this family, 0 without a join and where windows are data
    universal: bool = False  # shapes are data, too
    ranked: bool = False  # whether the first rows of its windows are chosen

    @property
    def read(self) -> tuple[SchemaClass, ...]:
        """The classes of streams that the inputs read, whatever tables they are joined with."""
        return tuple(map(base_class, self.classes))

    @property
    def stateful(self) -> bool:
        """Whether it keeps tuples or windows, and so has to know when no more can come for them."""
        return bool(self.window) or len(self.classes) > 1

    @property
    def carriers(self) -> CarrierKinds:
        """Which kind of carrier runs it."""
        return CarrierKinds.UNIVERSAL if self.universal else CarrierKinds.COMPILED

    @property
    def kind(self) -> str:
        join = f"{len(self.classes)}-way join" if len(self.classes) > 1 else ""
        window = f"{self.window} aggregate" if self.window and not self.universal else self.window and "aggregate"
        ranking = "first rows" if self.ranked else ""
        kind = " + ".join(filter(None, [join, window, ranking])) or "filter"
        return f"universal {kind}" if self.universal else kind


@dataclass(frozen=True)
class Template:
    family: Family
    probes: tuple[Probe, ...]
    ranges: tuple[ColumnRef, ...]
    residuals: tuple[Slot, ...]
    columns: tuple[ColumnRef, ...]
    computed: tuple[Slot, ...]
    groups: tuple[Slot, ...]
    aggregates: tuple[Slot, ...]
    having: tuple[Slot, ...]

    def covers(self, other: Template) -> bool:
        return self.family == other.family and all(
            set(theirs) <= set(ours) for ours, theirs in zip(self._parts, other._parts, strict=True)
        )

    def merge(self, other: Template) -> Template:
        parts = (
            (*ours, *(x for x in theirs if x not in set(ours)))
            for ours, theirs in zip(self._parts, other._parts, strict=True)
        )
        return Template(self.family, *parts)

    @property
    def fits(self) -> bool:
        """Small enough to be one plan."""
        slots = len(self.residuals) + len(self.computed) + len(self.having) + len(self.groups)
        return len(self.probes) <= MOST_PROBES and slots <= MOST_SLOTS and len(self.aggregates) <= MOST_AGGREGATES

    @property
    def slots(self) -> tuple[Slot, ...]:
        return (*self.residuals, *self.computed, *self.groups, *self.aggregates, *self.having)

    @property
    def _parts(self) -> tuple[Sequence, ...]:
        return (
            self.probes,
            self.ranges,
            self.residuals,
            self.columns,
            self.computed,
            self.groups,
            self.aggregates,
            self.having,
        )


def template_of(pipeline: Pipeline) -> Template:
    """The narrowest template that covers a pipeline."""
    return Template(
        family=_family(pipeline),
        probes=_unique(tuple(c for c, _ in box.equals) for box in pipeline.boxes),
        ranges=_unique(c for box in pipeline.boxes for c, _ in box.ranges),
        residuals=numbered(b.slot for b in pipeline.residuals),
        columns=_unique(o.column for o in pipeline.outputs if o.column is not None),
        computed=numbered(b.slot for b in pipeline.computed),
        groups=pipeline.groups,
        aggregates=pipeline.aggregates,
        having=numbered(b.slot for b in pipeline.having),
    )


def universal_for(pipeline: Pipeline) -> Template | None:
    """The universal template that a pipeline can run in; None if it has to have a plan of its own."""
    return None if has_long_pattern(pipeline) else universal(template_of(pipeline))


@lru_cache(KEPT)
def universal(template: Template) -> Template | None:
    """The same for what all pipelines of a narrow template have in common."""
    family = template.family
    pipeline = _some_pipeline(template)
    if family.window == SESSIONS or not has_columns(pipeline):
        return None
    window = (ANY_WITH_TEXTS if merges_texts(pipeline) else ANY) if family.window else ""
    made = Family(family.classes, family.times, (), window, 0, universal=True, ranked=family.ranked)
    return Template(made, *[()] * len(template._parts))


def _some_pipeline(template: Template) -> Pipeline:
    """One that puts out what all pipelines of a narrow template do."""
    sources = (PipelineSource(f"i{n}", "", c, "", 0) for n, c in enumerate(template.family.classes))
    columns = (Output("column", column=column) for column in template.columns)
    computed = (Output("computed", bound=Bound(slot)) for slot in template.computed)
    groups, aggregates = template.groups, template.aggregates
    keys = template.family.keys
    ranking = Ranking(1, "row_number", (), ()) if template.family.ranked else None
    return Pipeline(
        *(tuple(sources), keys, (Box(),), (), (*columns, *computed)),
        groups=groups,
        aggregates=aggregates,
        ranking=ranking,
    )


def numbered(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """Slots that can be distinguished: a shape used twice with other constants needs two places."""
    seen: dict[Slot, int] = {}
    result = []
    for slot in slots:
        seen[slot] = seen.get(slot, 0) + 1
        result.append(slot if seen[slot] == 1 else Slot(slot.expr, slot.type, slot.params, seen[slot]))
    return tuple(result)


def merge_all(templates: Iterable[Template]) -> list[Template]:
    """As few templates as possible that cover all given ones, first fit in the given order."""
    merged: list[Template] = []
    for template in dict.fromkeys(templates):
        for n, existing in enumerate(merged):
            if existing.family == template.family and (wider := existing.merge(template)).fits:
                merged[n] = wider
                break
        else:
            merged.append(template)
    return merged


def _family(pipeline: Pipeline) -> Family:
    window = pipeline.window
    return Family(
        classes=tuple(s.schema_class for s in pipeline.sources),
        times=tuple(s.time for s in pipeline.sources),
        keys=pipeline.keys,
        window="" if window is None else window.kind,
        reach_us=reach(max(s.range_us for s in pipeline.sources)) if len(pipeline.sources) > 1 else 0,
        ranked=pipeline.ranking is not None,
    )


def _unique(values: Iterable) -> tuple:
    return tuple(dict.fromkeys(values))
