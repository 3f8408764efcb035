"""What SQPR plans for: hosts, streams, operators that make streams of streams, and the streams that are asked for.

A Problem has one plan for each query. Here a stream may be made by several operators (join orders), and whoever asks
for a stream gets it from wherever it is: equal streams have equal names. The symbols of the paper are in brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from towpath.placement.cluster import Cluster


@dataclass(frozen=True, slots=True)
class SharedStream:
    name: str
    bytes: float  # per second [rho_s]
    tuples: float = 0.0  # per second
    nodes: frozenset[str] = frozenset()  # where it enters the cluster [s is in S_h^0]; none: operators make it


@dataclass(frozen=True, slots=True)
class SharedOperator:
    name: str
    inputs: tuple[str, ...]  # streams [S_o]
    outputs: tuple[str, ...]  # streams; the paper's operators have one [s_o], a fragment of several may have more
    load: float  # seconds of work per second on a node of cpu 1 [gamma_o]
    state_bytes: float = 0.0
    nodes: frozenset[str] | None = None  # the only ones that may run it


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A query: streams that are to be had at its sink or, if it has none, at any node."""

    name: str
    streams: tuple[str, ...]
    sink: str | None = None


@dataclass(frozen=True)
class System:
    cluster: Cluster
    streams: tuple[SharedStream, ...]
    operators: tuple[SharedOperator, ...]
    requests: tuple[StreamRequest, ...]
    delivery: bool = True  # results without a sink leave the cluster through the network card of the node that has them

    @cached_property
    def stream(self) -> Mapping[str, SharedStream]:
        return {stream.name: stream for stream in self.streams}

    @cached_property
    def operator(self) -> Mapping[str, SharedOperator]:
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def request(self) -> Mapping[str, StreamRequest]:
        return {request.name: request for request in self.requests}

    @cached_property
    def makers(self) -> Mapping[str, tuple[SharedOperator, ...]]:
        """The operators that make each stream."""
        found: dict[str, list[SharedOperator]] = {stream.name: [] for stream in self.streams}
        for operator in self.operators:
            for stream in operator.outputs:
                found[stream].append(operator)
        return {stream: tuple(operators) for stream, operators in found.items()}

    def related(self, streams: Iterable[str]) -> tuple[list[str], list[str]]:
        """The streams and operators that can be part of a plan for these streams [S(q), O(q)], in a fixed order."""
        seen: dict[str, None] = dict.fromkeys(streams)
        operators: dict[str, None] = {}
        waiting = list(seen)
        while waiting:
            for operator in self.makers[waiting.pop()]:
                operators.setdefault(operator.name)
                fresh = [name for name in (*operator.inputs, *operator.outputs) if name not in seen]
                seen |= dict.fromkeys(fresh)
                waiting += fresh
        return list(seen), list(operators)
