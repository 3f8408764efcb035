"""A running job as a placement problem: what planners, policies and metrics read, with measured rates and costs.

Nothing here runs or remembers: a situation is made from the controller's records and what was measured, at a moment.

- A fragment keeps its name in whatever carriers it has been: when it moves, the copy that takes over inherits it.
- A fragment that several queries use belongs to the first of them; the others go wherever it goes.
- Copies of a query are fragments of their own; that they stay on different nodes is seen to when one is to move.
- A stream flows from the node that the job file names for it; without one, every node reads it by itself. Derived
  streams flow over links: the fragment that makes one is part of the first query that reads it, and an input of the
  fragments that do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from towpath.control.observe.carriers import kind_of, width
from towpath.control.observe.measures import CarrierMeasure, Measures
from towpath.control.observe.topology import Topology
from towpath.control.state.records import CarrierRecord, FragmentRecord, FragmentStatus, PartRecord, State
from towpath.placement.cluster import Cluster, Node, Property
from towpath.placement.problem import (
    EVERYWHERE,
    Fragment,
    Operator,
    Placement,
    PlacementQuery,
    PlacementStream,
    Problem,
)
from towpath.placement.statistics import NodeStatistics, OperatorStatistics, Statistics
from towpath.plan.templates import Family
from towpath.schema import LINK, Catalog, is_link, stream_of
from towpath.schema import Stream as SchemaStream

PRESENT = (FragmentStatus.JOINING, FragmentStatus.LIVE)


@dataclass(frozen=True)
class LinkFlow:
    """What a carrier reads from another node."""

    stream: str
    source: str  # nodes
    target: str
    bytes: float  # per second


@dataclass(frozen=True)
class Situation:
    """The fragments that answer queries now, by the names under which they are placed; those of `cores`' nodes."""

    state: State
    catalog: Catalog
    cores: Mapping[str, int]  # by node
    measures: Measures
    properties: Mapping[str, Mapping[str, Property]] = field(default_factory=dict)  # by node
    topology: Topology = field(default_factory=Topology)

    @cached_property
    def fragments(self) -> Mapping[str, FragmentRecord]:
        roots = _Roots(self.state)
        records = (self.state.fragments[number] for number in self.users)
        here = [record for record in records if self._carrier(record).node in self.cores]
        made = {self.state.queries[part.query].name for record in here for part in self.users[record.id]}
        fed = (r for r in here if all(stream in self.catalog or stream in made for stream in self._inputs(r)))
        return {f"f{roots.of(record.id)}": record for record in fed}

    @cached_property
    def users(self) -> Mapping[int, list[PartRecord]]:
        """By fragment, the parts of running queries whose turn it is."""
        found: dict[int, list[PartRecord]] = {}
        for part in self.state.parts.values():
            if part.until_us is None and part.handed_over_us is None and self.state.queries[part.query].running:
                found.setdefault(part.fragment, []).append(part)
        return found

    @cached_property
    def operators(self) -> Mapping[str, OperatorStatistics]:
        """What was measured of each fragment."""
        return {name: self._measured(record) for name, record in self.fragments.items()}

    def node_of(self, name: str) -> str:
        return self._carrier(self.fragments[name]).node

    def outdated(self, name: str, source: str) -> str | None:
        """Why a fragment cannot leave a node on which a plan has it; None if it is there."""
        if name not in self.fragments:
            return "no query uses it any more, or its node is lost or drained"
        node = self.node_of(name)
        return None if node == source else f"it is on {node} by now"

    def family_of(self, name: str) -> Family:
        return self._carrier(self.fragments[name]).template.family

    @cached_property
    def problem(self) -> Problem:
        """With the placement of now as `current`."""
        rates = self.stream_rates
        known = (s for s in self.catalog.values() if not s.is_table)
        streams = (PlacementStream(s.name, self._entry(s.name), rates[s.name], width(s)) for s in known)
        fragments = tuple(self._fragment(name, record) for name, record in self.fragments.items())
        owned: dict[str, list[str]] = {}
        for fragment in fragments:
            owned.setdefault(fragment.query, []).append(fragment.name)
        return Problem(
            self.cluster,
            tuple(streams),
            fragments,
            tuple(PlacementQuery(name, tuple(names)) for name, names in owned.items()),
            current=Placement.single({name: self.node_of(name) for name in self.fragments}),
        )

    def statistics(self, node: str, at: float, seconds: float) -> Statistics:
        """What was measured on a node."""
        return Statistics(
            at,
            seconds,
            self.stream_rates,
            {operator(name): self.operators[name] for name in self._on(node)},
            {node: self._node(node)},
        )

    @cached_property
    def cluster(self) -> Cluster:
        return Cluster(tuple(self._described(name) for name in self.cores), self.topology.network([*self.cores]))

    def _entry(self, stream: str) -> str:
        """A node that is lost or being drained hands on nothing: whoever reads the stream then does so by itself."""
        node = self.topology.entries.get(stream, EVERYWHERE)
        return node if node in self.cores else EVERYWHERE

    def _described(self, node: str) -> Node:
        return Node(node, float(self.cores[node]), properties=self.properties.get(node, {}))

    # --- nodes and streams -------------------------------------------------------------------------------------------

    def load(self, node: str) -> float:
        """The share of a node's cores that its carriers' micro-batches kept busy, each counted as one core."""
        return sum(m.busy for m in self._carriers_of(node)) / self.cores[node]

    def work(self, node: str) -> float:
        """The part of its load that goes where fragments go: what a policy can change, and so all that it hears of."""
        return sum(m.work for m in self._carriers_of(node)) / self.cores[node]

    def _carriers_of(self, node: str) -> list[CarrierMeasure]:
        measured = (self.measures.carrier(c.id) for c in self.state.carriers.values() if c.node == node)
        return [m for m in measured if m is not None]

    def _node(self, node: str) -> NodeStatistics:
        kept = sum(self.operators[name].state_bytes for name in self._on(node))
        into = sum(flow.bytes for flow in self.flows if flow.target == node)
        out = sum(flow.bytes for flow in self.flows if flow.source == node)
        return NodeStatistics(self.work(node), memory=kept, bytes_in=into, bytes_out=out)

    @cached_property
    def flows(self) -> list[LinkFlow]:
        """What really goes from node to node: each carrier that reads a stream counts."""
        made = {link: self.node_of(name) for link, name in self._makers.items()}
        present = {f.carrier for f in self.state.fragments.values() if f.status in PRESENT}
        found: list[LinkFlow] = []
        for carrier in (self.state.carriers[name] for name in sorted(present)):
            rates = self.measures.link_rates(carrier.id)
            if self.measures.carrier(carrier.id) is None:
                continue
            entering = {s.name: self.stream_rates[s.name] * width(s) for s in self._read_by(carrier)}
            places = {**{s: self._entry(s) for s in entering}, **made}
            for name, size in (*entering.items(), *rates.items()):
                source = places.get(name, EVERYWHERE)
                if source not in (EVERYWHERE, carrier.node):
                    found.append(LinkFlow(name, source, carrier.node, size))
        return found

    def _on(self, node: str) -> list[str]:
        return [name for name in self.fragments if self.node_of(name) == node]

    @cached_property
    def stream_rates(self) -> dict[str, float]:
        """Measured tuples per second. A carrier counts all it reads together; streams have the shares they declare."""
        found: dict[str, list[float]] = {name: [] for name in self.catalog}
        for carrier in self.state.carriers.values():
            measured = self.measures.carrier(carrier.id)
            read = self._read_by(carrier)
            declared = sum(s.rate for s in read)
            for stream in read if measured is not None and declared else ():
                found[stream.name].append(measured.rows * stream.rate / declared if measured else 0.0)
        return {name: sum(r) / len(r) if r else self.catalog[name].rate for name, r in found.items()}

    def _read_by(self, carrier: CarrierRecord) -> list[SchemaStream]:
        return [s for c in carrier.template.family.read for s in self.catalog.values() if s.schema_class == c]

    # --- fragments ---------------------------------------------------------------------------------------------------

    def _fragment(self, name: str, record: FragmentRecord) -> Fragment:
        seen = self.operators[name]
        read = (stream if stream in self.catalog else operator(self._makers[stream]) for stream in self._inputs(record))
        made = Operator(
            operator(name),
            tuple(read),
            kind_of(self._carrier(record).template.family),
            seen.cost,
            seen.selectivity,
            seen.state_bytes,
            self._width_out(record),
            record.signature,
        )
        return Fragment(name, self.state.queries[self._owner(record)].name, (made,))

    def _owner(self, record: FragmentRecord) -> int:
        first = min(part.query for part in self.users[record.id])
        query = self.state.queries[first]
        return first if query.origin != LINK else self._readers.get(query.name, first)

    @cached_property
    def _makers(self) -> Mapping[str, str]:
        """By derived stream, the fragment that makes it."""
        return {
            self.state.queries[part.query].name: name
            for name, record in self.fragments.items()
            for part in self.users[record.id]
        }

    @cached_property
    def _readers(self) -> Mapping[str, int]:
        """By derived stream, the first query that reads it."""
        found: dict[str, int] = {}
        for record in self.fragments.values():
            for stream in self._inputs(record):
                first = min(part.query for part in self.users[record.id])
                found[stream] = min(first, found.get(stream, first))
        return found

    def _measured(self, record: FragmentRecord) -> OperatorStatistics:
        carrier = self.measures.carrier(record.carrier)
        rate = sum(self._rate(stream) for stream in self._inputs(record))
        if carrier is None or not rate:
            return OperatorStatistics(rate, 0.0, 0.0)
        share = self._shares[record.id]
        kept = carrier.state_rows * share
        return OperatorStatistics(
            rate, self._given(record) / rate, carrier.work * share / rate, kept * self._width(record), kept
        )

    def _rate(self, stream: str) -> float:
        if stream in self.catalog:
            return self.stream_rates[stream]
        return self._given(self.fragments[self._makers[stream]])

    def _given(self, record: FragmentRecord) -> float:
        """Results per second."""
        carrier = self.measures.carrier(record.carrier)
        return 0.0 if carrier is None else self.measures.selectivity(record.id) * carrier.rows

    def _width(self, record: FragmentRecord) -> float:
        """Bytes of one tuple of each input together."""
        classes = self._carrier(record).template.family.classes
        derived = [width(stream_of(c)) for c in classes if is_link(c)]
        return sum([width(self.catalog[i]) for i in self._inputs(record) if i in self.catalog] + derived)

    def _width_out(self, record: FragmentRecord) -> float:
        """Bytes of a result, as those measured who read it over a link; else as much as its inputs together."""
        read, given = self._read_rates.get(record.id), self._given(record)
        return read / given if read and given else self._width(record)

    @cached_property
    def _read_rates(self) -> dict[int, float]:
        """By fragment, the bytes per second that one carrier reads of what it makes."""
        found: dict[int, float] = {}
        for carrier in self.state.carriers:
            for link, rate in self.measures.link_rates(carrier).items():
                if (name := self._makers.get(link)) is not None:
                    made = self.fragments[name].id
                    found[made] = max(rate, found.get(made, 0.0))
        return found

    @cached_property
    def _shares(self) -> dict[int, float]:
        """Of each fragment in the cost of its carrier; copies that warm up or drain have a part in it."""
        present: dict[str, list[int]] = {}
        for fragment in self.state.fragments.values():
            if fragment.status in PRESENT:
                present.setdefault(fragment.carrier, []).append(fragment.id)
        return {f: share for ids in present.values() for f, share in self.measures.shares(ids).items()}

    def _inputs(self, record: FragmentRecord) -> tuple[str, ...]:
        if (known := self._streams.get(record.id)) is None:
            sources = record.pipeline.sources
            known = self._streams[record.id] = tuple(dict.fromkeys(source.stream for source in sources))
        return known

    @cached_property
    def _streams(self) -> dict[int, tuple[str, ...]]:
        """What fragments read, as far as anybody has asked."""
        return {}

    def _carrier(self, record: FragmentRecord) -> CarrierRecord:
        return self.state.carriers[record.carrier]


class _Roots:
    """The fragment that a query was first given, of each copy that a move made of it."""

    def __init__(self, state: State) -> None:
        self._original = {part.fragment for part in state.parts.values() if part.turn == 0}
        self._made_from: dict[int, int] = {}
        for part in state.parts.values():
            before = state.parts.get((part.query, part.branch, part.turn - 1))
            if before is not None:
                self._made_from.setdefault(part.fragment, before.fragment)

    def of(self, fragment: int) -> int:
        while fragment not in self._original and fragment in self._made_from:
            fragment = self._made_from[fragment]
        return fragment


def operator(fragment: str) -> str:
    """The name of a fragment's one operator; no stream's name has a dot."""
    return f"{fragment}.all"
