"""What runs where and which streams flow between nodes: the answer to a System."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from towpath.placement.index import Floats
from towpath.reuse.system import System


@dataclass(frozen=True, order=True, slots=True)
class AllocatedRun:
    """A node runs an operator [z_ho = 1]."""

    node: str
    operator: str


@dataclass(frozen=True, order=True, slots=True)
class AllocatedFlow:
    """A node hands a stream on to another, be it its own or one that it got itself: then it relays [x_hms = 1]."""

    source: str
    target: str
    stream: str


@dataclass(frozen=True)
class Allocation:
    runs: frozenset[AllocatedRun] = frozenset()
    flows: frozenset[AllocatedFlow] = frozenset()
    provides: Mapping[str, str] = field(default_factory=dict)  # stream -> node, of requests without a sink [d_hs = 1]
    admitted: frozenset[str] = frozenset()  # requests

    @cached_property
    def origin(self) -> Mapping[tuple[str, str], str]:
        """By target and stream, the node from which it comes."""
        return {(flow.target, flow.stream): flow.source for flow in self.flows}

    def changed(self, before: Allocation) -> list[str]:
        """The nodes whose operators, or whose streams to others, are not the same: they have to be notified."""
        runs, flows = self.runs ^ before.runs, self.flows ^ before.flows
        return sorted({run.node for run in runs} | {flow.source for flow in flows})


@dataclass(frozen=True, eq=False)
class Use:
    """What an allocation takes of every node, by position in the cluster; and of links, by their two positions."""

    load: Floats
    state_bytes: Floats
    bytes_in: Floats
    bytes_out: Floats
    links: Mapping[tuple[int, int], float]


def use(system: System, allocation: Allocation) -> Use:
    position = system.cluster.position
    nodes = system.cluster.nodes
    load, state, bytes_in, bytes_out = (np.zeros(len(nodes)) for _ in range(4))
    links: dict[tuple[int, int], float] = {}
    for run in allocation.runs:
        operator, at = system.operator[run.operator], position[run.node]
        load[at] += operator.load
        state[at] += operator.state_bytes
    for flow in allocation.flows:
        stream, source, target = system.stream[flow.stream], position[flow.source], position[flow.target]
        bytes_out[source] += stream.bytes
        bytes_in[target] += stream.bytes
        links[source, target] = links.get((source, target), 0.0) + stream.bytes
        for end in (source, target):
            load[end] += nodes[end].transfer_cost * stream.tuples
    if system.delivery:
        for name, node in allocation.provides.items():
            bytes_out[position[node]] += system.stream[name].bytes
    return Use(load, state, bytes_in, bytes_out, links)


def held(system: System, allocation: Allocation) -> dict[str, set[str]]:
    """The nodes that have each stream [y_hs = 1]: it enters there, is made there or comes from another node."""
    found = {stream.name: set(stream.nodes) for stream in system.streams}
    for run in allocation.runs:
        for stream in system.operator[run.operator].outputs:
            found[stream].add(run.node)
    for flow in allocation.flows:
        found[flow.stream].add(flow.target)
    return found


def placed(at: Mapping[str, str]) -> frozenset[AllocatedRun]:
    """Operators, each on the node that it is given with."""
    return frozenset(AllocatedRun(node, name) for name, node in at.items())


def routed(system: System, runs: Iterable[AllocatedRun], admitted: frozenset[str]) -> Allocation:
    """Every stream goes straight from where it is made, once to each node that wants it."""
    runs = frozenset(runs)
    source = {stream.name: min(stream.nodes) for stream in system.streams if stream.nodes}
    made = [(stream, run.node) for run in sorted(runs) for stream in system.operator[run.operator].outputs]
    source |= dict(reversed(made))
    wanted = {(run.node, stream) for run in runs for stream in system.operator[run.operator].inputs}
    requests = [system.request[name] for name in admitted]
    wanted |= {(r.sink, stream) for r in requests if r.sink is not None for stream in r.streams}
    there = {(node, stream) for stream, node in made}
    flows = frozenset(
        AllocatedFlow(source[stream], node, stream)
        for node, stream in wanted
        if stream in source and (node, stream) not in there and node not in system.stream[stream].nodes
    )
    provides = {stream: source[stream] for r in requests if r.sink is None for stream in r.streams}
    return Allocation(runs, flows, provides, admitted)


def pruned(system: System, allocation: Allocation) -> Allocation:
    """Without what no admitted request needs; of several ways in which a node gets a stream, one stays.

    A search that is stopped before its end may leave such things behind.
    """
    made = {
        (run.node, stream): run for run in sorted(allocation.runs) for stream in system.operator[run.operator].outputs
    }
    origin = {(flow.target, flow.stream): flow for flow in sorted(allocation.flows)}
    requests = [system.request[name] for name in sorted(allocation.admitted)]
    provides = {s: allocation.provides[s] for r in requests if r.sink is None for s in r.streams}
    waiting = [(node, stream) for stream, node in provides.items()]
    waiting += [(r.sink, s) for r in requests if r.sink is not None for s in r.streams]
    runs, flows = _needed(system, waiting, made, origin)
    return Allocation(frozenset(runs), frozenset(flows), provides, allocation.admitted)


def _needed(
    system: System,
    waiting: Iterable[tuple[str, str]],
    made: Mapping[tuple[str, str], AllocatedRun],
    origin: Mapping[tuple[str, str], AllocatedFlow],
) -> tuple[set[AllocatedRun], set[AllocatedFlow]]:
    runs: set[AllocatedRun] = set()
    flows: set[AllocatedFlow] = set()
    left, seen = list(waiting), set(waiting)
    while left:
        node, stream = left.pop()
        if node in system.stream[stream].nodes:
            continue
        inputs: list[tuple[str, str]] = []
        if (run := made.get((node, stream))) is not None:
            runs.add(run)
            inputs = [(node, name) for name in system.operator[run.operator].inputs]
        elif (flow := origin.get((node, stream))) is not None:
            flows.add(flow)
            inputs = [(flow.source, stream)]
        fresh = [wanted for wanted in inputs if wanted not in seen]
        seen.update(fresh)
        left += fresh
    return runs, flows
