"""What the nodes of a job run, carrier by carrier, as a placement problem: for whoever has to find a place.

A job may have a hundred thousand fragments and has a few dozen carriers. Carriers are what costs a node something, and
what is new on a node is a carrier or joins one. So this problem stays small where that of situation.py does not.

A carrier costs what was measured; until then as much as its fragments are estimated to cost by their kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from towpath.control.observe.measures import Measures
from towpath.control.observe.topology import Topology
from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import CarrierRecord, State
from towpath.placement.cluster import Cluster, Node, Property
from towpath.placement.problem import (
    EVERYWHERE,
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
from towpath.schema import LINK, Catalog
from towpath.schema import Stream as SchemaStream

ESTIMATED = CostsEntry.model_validate({})


@dataclass(frozen=True)
class Wanted:
    """Something that needs a node, or as many as it wants copies."""

    name: str
    family: Family
    fragments: int = 1
    copies: int = 1
    carrier: str | None = None  # where it is now, if anywhere: what was measured there says what it costs
    reads: frozenset[str] = frozenset()  # derived streams
    makes: frozenset[str] = frozenset()


@dataclass
class Capacities:
    """What is known of the nodes besides what runs there."""

    cores: Mapping[str, int] = field(default_factory=dict)
    more_cores: int = 1  # of a node that is not among these: one that scaling started
    properties: Mapping[str, Mapping[str, Property]] = field(default_factory=dict)
    measures: Measures = field(default_factory=Measures)
    topology: Topology = field(default_factory=Topology)

    def node(self, name: str) -> Node:
        return Node(name, float(self.cores.get(name, self.more_cores)), properties=self.properties.get(name, {}))

    def entry(self, stream: str, nodes: Sequence[str]) -> str:
        node = self.topology.entries.get(stream, EVERYWHERE)
        return node if node in nodes else EVERYWHERE


def problem(
    known: ControllerState, catalog: Catalog, capacities: Capacities, nodes: Sequence[str], wanted: Iterable[Wanted]
) -> Problem:
    """What is wanted is free, everything else that runs on the nodes is pinned."""
    asked = list(wanted)
    names = {w.name for w in asked}
    carriers = [c for c in known.state.carriers.values() if c.node in nodes and c.id not in names]
    here = [c for c in carriers if known.present.get(c.id)]
    builder = _OperatorBuilder(known, catalog, capacities, _makers(known.state, asked, here))
    running = [Fragment(c.id, c.id, (builder.running(c),)) for c in here]
    free = [Fragment(w.name, w.name, (builder.wanted(w),)) for w in asked]
    return Problem(
        Cluster(tuple(map(capacities.node, nodes)), capacities.topology.network(nodes)),
        tuple(
            PlacementStream(s.name, capacities.entry(s.name, nodes), s.rate, width(s))
            for s in catalog.values()
            if not s.is_table
        ),
        (*running, *free),
        (
            *(PlacementQuery(c.id, (c.id,)) for c in here),
            *(PlacementQuery(w.name, (w.name,), copies=w.copies) for w in asked),
        ),
        pinned={c.id: c.node for c in here},
        current=Placement.single({w.name: known.state.carriers[w.carrier].node for w in asked if w.carrier}),
    )


class _OperatorBuilder:
    def __init__(
        self, known: ControllerState, catalog: Catalog, capacities: Capacities, makers: Mapping[str, str]
    ) -> None:
        self._known = known
        self._catalog = catalog
        self._measures = capacities.measures
        self._makers = makers

    def running(self, carrier: CarrierRecord) -> Operator:
        fragments = len(self._known.present[carrier.id])
        return self._operator(carrier.id, carrier.template.family, fragments, self._busy(carrier.id), [])

    def wanted(self, wanted: Wanted) -> Operator:
        busy, there = None, len(self._known.present.get(wanted.carrier or "", {}))
        if wanted.carrier is not None and (measured := self._busy(wanted.carrier)) is not None:
            busy = measured * wanted.fragments / max(there, wanted.fragments)
        makers = {self._makers[link] for link in wanted.reads if link in self._makers}
        return self._operator(wanted.name, wanted.family, wanted.fragments, busy, sorted(makers - {wanted.name}))

    def _busy(self, carrier: str) -> float | None:
        measured = self._measures.carrier(carrier)
        return None if measured is None else measured.busy

    def _operator(
        self, name: str, family: Family, fragments: int, busy: float | None, makers: Sequence[str]
    ) -> Operator:
        """`makers` are the carriers whose links it reads."""
        read = [s for s in self._catalog.values() if s.schema_class in family.read]
        rate, kind = sum(s.rate for s in read), kind_of(family)
        estimated = getattr(ESTIMATED, kind) * fragments
        cost = estimated if busy is None or not rate else busy / rate
        inputs = (*(s.name for s in read), *(f"{maker}.all" for maker in makers))
        return Operator(f"{name}.all", inputs, kind, cost, tuple_bytes=sum(map(width, read)))


def _makers(state: State, asked: Sequence[Wanted], here: Iterable[CarrierRecord]) -> dict[str, str]:
    """By derived stream that is asked for, who makes it: a carrier that runs, or one that is asked for too."""
    links = frozenset[str]().union(*(w.reads for w in asked))
    new = {link: w.name for w in asked for link in w.makes}
    if links <= new.keys():  # as it is for nearly all: going through everything that runs would take a while
        return new
    numbers = {q.id: q.name for q in state.queries.values() if q.running and q.origin == LINK and q.name in links}
    carriers = {carrier.id for carrier in here}
    made = (
        (numbers[part.query], state.fragments[part.fragment].carrier)
        for part in state.parts.values()
        if part.query in numbers and part.handed_over_us is None
    )
    return {link: carrier for link, carrier in made if carrier in carriers} | new


def kind_of(family: Family) -> OperatorKind:
    if len(family.classes) > 1:
        return "join"
    return "aggregate" if family.window else "filter"


def width(stream: SchemaStream) -> float:
    """Bytes of a tuple."""
    return float(sum(c.type.width for c in stream.columns))
