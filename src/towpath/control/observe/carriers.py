"""What the nodes of a job run, carrier by carrier, as a placement problem: for whoever has to find a place.

A job may have a hundred thousand fragments and has a few dozen carriers. Carriers are what costs a node something, and
what is new on a node is a carrier or joins one. So this problem stays small where that of situation.py does not.

A carrier costs what was measured; until then as much as its fragments are estimated to cost by their kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from towpath.control.observe.measures import Measures
from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import CarrierRecord
from towpath.placement.cluster import Cluster, Node, Property
from towpath.placement.problem import (
    Fragment,
    Operator,
    OperatorKind,
    Placement,
    PlacementQuery,
    PlacementStream,
    Problem,
)
from towpath.plan.templates import Family
from towpath.problems.entries import CostsEntry
from towpath.schema import Catalog
from towpath.schema import Stream as SchemaStream

ESTIMATED = CostsEntry.model_validate({})


@dataclass(frozen=True)
class Wanted:
    """Something that needs a node, or as many as it wants copies."""

    name: str
    family: Family
    fragments: int = 1
    copies: int = 1
    carrier: str | None = None  # where it is now, if anywhere: what was measured there tells what it costs


@dataclass
class Capacities:
    """What is known of the nodes besides what runs there."""

    cores: Mapping[str, int] = field(default_factory=dict)
    more_cores: int = 1  # of a node that is not among these: one that scaling started
    properties: Mapping[str, Mapping[str, Property]] = field(default_factory=dict)
    measures: Measures = field(default_factory=Measures)

    def node(self, name: str) -> Node:
        return Node(name, float(self.cores.get(name, self.more_cores)), properties=self.properties.get(name, {}))


def problem(
    known: ControllerState, catalog: Catalog, capacities: Capacities, nodes: Sequence[str], wanted: Iterable[Wanted]
) -> Problem:
    """What is wanted is free, everything else that runs on the nodes is pinned."""
    builder = _Builder(known, catalog, capacities)
    asked = list(wanted)
    names = {w.name for w in asked}
    carriers = [c for c in known.state.carriers.values() if c.node in nodes and c.id not in names]
    here = [c for c in carriers if known.present.get(c.id)]
    running = [Fragment(c.id, c.id, (builder.running(c),)) for c in here]
    free = [Fragment(w.name, w.name, (builder.wanted(w),)) for w in asked]
    return Problem(
        Cluster(tuple(map(capacities.node, nodes))),
        tuple(PlacementStream(s.name, nodes[0], s.rate, width(s)) for s in catalog.values()),
        (*running, *free),
        (
            *(PlacementQuery(c.id, (c.id,)) for c in here),
            *(PlacementQuery(w.name, (w.name,), copies=w.copies) for w in asked),
        ),
        pinned={c.id: c.node for c in here},
        current=Placement.single({w.name: known.state.carriers[w.carrier].node for w in asked if w.carrier}),
    )


class _Builder:
    def __init__(self, known: ControllerState, catalog: Catalog, capacities: Capacities) -> None:
        self._known = known
        self._catalog = catalog
        self._measures = capacities.measures

    def running(self, carrier: CarrierRecord) -> Operator:
        fragments = len(self._known.present[carrier.id])
        return self._operator(carrier.id, carrier.template.family, fragments, self._busy(carrier.id))

    def wanted(self, wanted: Wanted) -> Operator:
        busy, there = None, len(self._known.present.get(wanted.carrier or "", {}))
        if wanted.carrier is not None and (measured := self._busy(wanted.carrier)) is not None:
            busy = measured * wanted.fragments / max(there, wanted.fragments)
        return self._operator(wanted.name, wanted.family, wanted.fragments, busy)

    def _busy(self, carrier: str) -> float | None:
        measured = self._measures.carrier(carrier)
        return None if measured is None else measured.busy

    def _operator(self, name: str, family: Family, fragments: int, busy: float | None) -> Operator:
        """Links are left out: they are made on every node that needs them, or read wherever they are."""
        read = [s for s in self._catalog.values() if s.schema_class in family.classes]
        rate, kind = sum(s.rate for s in read), kind_of(family)
        estimated = getattr(ESTIMATED, kind) * fragments
        cost = estimated if busy is None or not rate else busy / rate
        inputs = tuple(s.name for s in read)
        return Operator(f"{name}.all", inputs, kind, cost, tuple_bytes=sum(map(width, read)))


def kind_of(family: Family) -> OperatorKind:
    if len(family.classes) > 1:
        return "join"
    return "aggregate" if family.window else "filter"


def width(stream: SchemaStream) -> float:
    """Bytes of a tuple."""
    return float(sum(c.type.width for c in stream.columns))
