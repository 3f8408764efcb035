"""What a planner reads (Problem) and what it answers (Placement).

All quantities are per second, seconds or bytes. Names are unique within their kind; streams and operators share one
space of names, because an operator's input is either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from towpath import html
from towpath.placement.cluster import Cluster

MOST_SHOWN = 20  # fragments of a node, in a notebook
EVERYWHERE = ""  # in place of a node: every node reads the stream by itself, and nothing flows for it

OperatorKind = Literal["filter", "project", "join", "aggregate", "union"]


@dataclass(frozen=True, slots=True)
class PlacementStream:
    name: str
    node: str  # the delegation node: where it enters the cluster and is handed on from; or EVERYWHERE
    rate: float  # tuples per second
    tuple_bytes: float = 100.0


@dataclass(frozen=True, slots=True)
class Operator:
    name: str
    inputs: tuple[str, ...]  # streams or operators
    kind: OperatorKind = "filter"
    cost: float = 0.0  # seconds per input tuple on a node of cpu 1.0
    selectivity: float = 1.0  # tuples out per tuple in, from whichever input
    state_bytes: float = 0.0
    tuple_bytes: float = 100.0  # of what it emits
    signature: str | None = None  # operators of equal signature on one node run as one


@dataclass(frozen=True, slots=True)
class Fragment:
    """Operators of one query that always sit on one node."""

    name: str
    query: str
    operators: tuple[Operator, ...]  # inputs first
    native: str | None = None  # the stream whose delegation node is its native node


@dataclass(frozen=True, slots=True)
class PlacementQuery:
    name: str
    fragments: tuple[str, ...]
    sink: str | None = None  # the node that wants its results
    copies: int = 1  # on as many different nodes each of its fragments runs


@dataclass(frozen=True)
class Placement:
    """Which nodes run a fragment. A fragment that is not in it runs nowhere: its query was not admitted."""

    nodes: Mapping[str, tuple[str, ...]]  # by fragment
    refused: Mapping[str, str] = field(default_factory=dict)  # query -> why it was not admitted

    @staticmethod
    def single(nodes: Mapping[str, str]) -> Placement:
        return Placement({fragment: (node,) for fragment, node in nodes.items()})

    def _repr_html_(self) -> str:
        """For notebooks: what each node runs."""
        on: dict[str, list[str]] = {}
        for fragment, places in self.nodes.items():
            for node in places:
                on.setdefault(node, []).append(fragment)
        rows = [(node, f"{len(names):,}", _listed(names)) for node, names in sorted(on.items())]
        refused = [("refused", query, reason) for query, reason in self.refused.items()]
        return html.table(("node", "number", "fragments"), [*rows, *refused], right=(1,))

    def moved(self, fragment: str, source: str, target: str) -> Placement:
        kept = tuple(target if node == source else node for node in self.nodes[fragment])
        return Placement({**self.nodes, fragment: kept}, self.refused)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more


@dataclass(frozen=True)
class Problem:
    cluster: Cluster
    streams: tuple[PlacementStream, ...]
    fragments: tuple[Fragment, ...]
    queries: tuple[PlacementQuery, ...]
    pinned: Mapping[str, str] = field(default_factory=dict)  # fragment -> the one node that may run it
    current: Placement | None = None
    migration_cost: float = 0.0  # seconds of work on both nodes per byte of state moved

    @cached_property
    def stream(self) -> Mapping[str, PlacementStream]:
        return {s.name: s for s in self.streams}

    @cached_property
    def fragment(self) -> Mapping[str, Fragment]:
        return {f.name: f for f in self.fragments}

    @cached_property
    def query(self) -> Mapping[str, PlacementQuery]:
        return {q.name: q for q in self.queries}

    @cached_property
    def operator(self) -> Mapping[str, Operator]:
        return {o.name: o for o in self.operators()}

    @cached_property
    def home(self) -> Mapping[str, str]:
        """The fragment of each operator."""
        return {o.name: f.name for f in self.fragments for o in f.operators}

    def operators(self) -> Iterator[Operator]:
        for fragment in self.fragments:
            yield from fragment.operators

    def native_node(self, fragment: Fragment) -> str | None:
        return None if fragment.native is None else self.stream[fragment.native].node or None
