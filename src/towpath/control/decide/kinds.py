"""Which kind of carrier fragments go to: with a plan for their shapes, or universal. Decides; does nothing.

By what a node has to run, and only by what the journal knows: so it is the same after a restart, and can be explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import CarrierRecord
from towpath.errors import MoveRefused
from towpath.plan import CarrierKinds
from towpath.plan.pipeline import Pipeline
from towpath.plan.templates import Template, template_of, universal_for

# Measured: docs/design/any_shape.md, "Which carrier".
FEW_SHAPES = 1  # so many among queries over the same streams are worth a plan of their own
MANY_ALIKE = 2_000  # so many of a shape that come together are worth a plan of their own

Node = str | None  # None: wherever there is room
Key = tuple[Template, Template | None, Node]  # its own template, the universal one, and where it goes


@dataclass(frozen=True)
class Kind:
    """What a carrier has to cover that is to run a pipeline, and why; no reason where there was no choice."""

    template: Template
    why: str = ""


def key_of(pipeline: Pipeline, node: Node) -> Key:
    return template_of(pipeline), universal_for(pipeline), node


def choose(known: ControllerState, wanted: Iterable[tuple[Pipeline, Node]]) -> dict[Key, Kind]:
    """For all that come together."""
    groups: dict[tuple[Template | None, Node], dict[Template, set[str]]] = {}
    for pipeline, node in wanted:
        narrow, wide, _ = key_of(pipeline, node)
        groups.setdefault((wide, node), {}).setdefault(narrow, set()).add(pipeline.signature)
    found: dict[Key, Kind] = {}
    for (wide, node), shapes in groups.items():
        if wide is None or known.kinds is CarrierKinds.COMPILED:
            kinds = {narrow: Kind(narrow) for narrow in shapes}
        elif known.kinds is CarrierKinds.UNIVERSAL:
            kinds = dict.fromkeys(shapes, Kind(wide))
        else:
            kinds = _cheapest(known, wide, node, {narrow: len(alike) for narrow, alike in shapes.items()})
        found |= {(narrow, wide, node): kind for narrow, kind in kinds.items()}
    return found


def for_move(known: ControllerState, pipeline: Pipeline, node: str, source: CarrierRecord) -> Kind:
    """What was universal stays so, unless its shape has a plan there: fragments set out one by one, however many."""
    key = narrow, wide, _ = key_of(pipeline, node)
    if known.kinds is CarrierKinds.AUTO and wide is not None and source.template.family.universal:
        return _with_a_plan(known, narrow, node) or Kind(wide, "it was before")
    return choose(known, [(pipeline, node)])[key]


def asked_for(pipeline: Pipeline, carriers: CarrierKinds) -> Kind:
    """Of the kind that somebody names. Raises MoveRefused if it cannot run in that."""
    narrow, wide, _ = key_of(pipeline, None)
    if carriers is CarrierKinds.COMPILED:
        return Kind(narrow)
    if wide is None:
        raise MoveRefused(
            "it needs a plan of its own: no universal carrier runs joins of more than two streams, derived streams, "
            "sessions, count(DISTINCT x), stddev, aggregates that go by an order, or so many columns"
        )
    return Kind(wide)


def _cheapest(
    known: ControllerState, wide: Template, node: Node, shapes: Mapping[Template, int]
) -> dict[Template, Kind]:
    """With how many there are of each shape."""
    found, rest = dict[Template, Kind](), list[Template]()
    for narrow, alike in shapes.items():
        if (kind := _with_a_plan(known, narrow, node)) is not None:
            found[narrow] = kind
        elif alike >= MANY_ALIKE:
            found[narrow] = Kind(narrow, f"{alike:,} of its shape came together")
        else:
            rest.append(narrow)
    if (runs := _used(known, known.covering(wide, node))) is not None:
        return found | dict.fromkeys(rest, Kind(wide, f"{runs.id} runs any shape already"))
    where = "a node" if node is None else node
    own = {replace(n, columns=()) for n in shapes if known.covering(n, node) is None}  # a plan puts out any column
    count = _plans(known, wide, node) + len(own)
    if count <= FEW_SHAPES:
        return found | {n: Kind(n, f"{where} has few shapes of such queries") for n in rest}
    return found | dict.fromkeys(rest, Kind(wide, f"{where} would have {count} shapes of such queries"))


def _with_a_plan(known: ControllerState, narrow: Template, node: Node) -> Kind | None:
    runs = _used(known, known.covering(narrow, node))
    return None if runs is None else Kind(narrow, f"{runs.id} has a plan for it")


def _used(known: ControllerState, carrier: CarrierRecord | None) -> CarrierRecord | None:
    return carrier if carrier is not None and known.present.get(carrier.id) else None


def _plans(known: ControllerState, wide: Template, node: Node) -> int:
    """How many carriers with plans of their own read the same streams for such queries; where most of them are."""
    nodes: Sequence[str] = known.open_nodes if node is None else [node]
    runs = [carrier.node for carrier in _compiled(known, wide)]
    return max(map(runs.count, nodes), default=0)


def _compiled(known: ControllerState, wide: Template) -> Iterator[CarrierRecord]:
    asked = wide.family
    for carrier in known.state.carriers.values():
        family = carrier.template.family
        alike = (family.classes, family.times, bool(family.window)) == (asked.classes, asked.times, bool(asked.window))
        if alike and not family.universal and not carrier.past and _used(known, carrier):
            yield carrier
