"""The heuristic planner of section V-A: a query on one node, with what others already make.

For every abstract plan (which operators, not where) and every node: the node gets the plan's streams from nodes that
have them, whole partial results before base streams, and runs the operators that are left. The cheapest way that fits
is taken. Nothing that runs is moved, and no query is spread over several nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import product

import numpy as np

from towpath.placement.check import TOLERANCE
from towpath.placement.costs.sqpr import weights_for
from towpath.placement.index import Floats
from towpath.reuse.allocation import AllocatedFlow, AllocatedRun, Allocation, Use, held, use
from towpath.reuse.model import Rules, links_can_bind
from towpath.reuse.system import SharedOperator, StreamRequest, System

SLACK = 1 + TOLERANCE / 2  # what check() forgives, with something to spare for another order of adding
Abstract = Mapping[str, SharedOperator]  # the operator that makes each stream


@dataclass(frozen=True)
class _Limits:
    """Of the nodes."""

    cpu: Floats
    memory: Floats
    bandwidth_in: Floats
    bandwidth_out: Floats


@dataclass
class _Try:
    """What a plan on one node takes in addition."""

    node: str
    runs: list[AllocatedRun] = field(default_factory=list)
    flows: list[AllocatedFlow] = field(default_factory=list)
    there: set[str] = field(default_factory=set)


def abstract_plans(system: System, streams: tuple[str, ...]) -> Iterator[Abstract]:
    """Every choice of operators that makes the streams from base streams."""
    for parts in product(*(list(_plans_for(system, stream)) for stream in streams)):
        yield {stream: operator for part in parts for stream, operator in part.items()}


def _plans_for(system: System, stream: str) -> Iterator[Abstract]:
    if system.stream[stream].nodes:
        yield {}
        return
    for operator in system.makers[stream]:
        for below in abstract_plans(system, operator.inputs):
            yield {**below, stream: operator}


class Heuristic:
    """Admits one request after another."""

    def __init__(self, system: System, current: Allocation | None = None, rules: Rules | None = None) -> None:
        self.system = system
        self.allocation = current or Allocation()
        self._rules = rules or Rules()
        self._weights = self._rules.weights or weights_for(system.cluster)
        self._held, self._use = held(system, self.allocation), use(system, self.allocation)
        self._roots = held(system, Allocation(self.allocation.runs))
        self._running = {run.operator for run in self.allocation.runs}
        self._links_can_bind = links_can_bind(system.cluster)
        self._highest = float(self._use.load.max(initial=0.0))
        nodes = system.cluster.nodes
        self._limits = _Limits(*(np.array([getattr(n, f.name) for n in nodes]) * SLACK for f in fields(_Limits)))

    def submit(self, request: StreamRequest) -> bool:
        """Whether the request is admitted now, or was before."""
        now = self.allocation
        if request.name in now.admitted:
            return True
        if (chosen := self._best(request)) is None:
            return False
        added = self._added(request, chosen)
        self.allocation = Allocation(
            now.runs | added.runs,
            now.flows | added.flows,
            {**now.provides, **added.provides},
            now.admitted | {request.name},
        )
        self._count(added)
        return True

    def _added(self, request: StreamRequest, chosen: _Try) -> Allocation:
        provides = {} if request.sink is not None else dict.fromkeys(self._undelivered(request), chosen.node)
        return Allocation(frozenset(chosen.runs), frozenset(chosen.flows), provides)

    def _count(self, added: Allocation) -> None:
        """What runs in addition."""
        more, now = use(self.system, added), self._use
        links = {**now.links, **{pair: now.links.get(pair, 0.0) + size for pair, size in more.links.items()}}
        self._use = Use(
            now.load + more.load,
            now.state_bytes + more.state_bytes,
            now.bytes_in + more.bytes_in,
            now.bytes_out + more.bytes_out,
            links,
        )
        self._highest = float(self._use.load.max(initial=0.0))
        for run in added.runs:
            self._running.add(run.operator)
            for stream in self.system.operator[run.operator].outputs:
                self._held[stream].add(run.node)
                self._roots[stream].add(run.node)
        for flow in added.flows:
            self._held[flow.stream].add(flow.target)

    def _undelivered(self, request: StreamRequest) -> list[str]:
        return [stream for stream in request.streams if stream not in self.allocation.provides]

    def _best(self, request: StreamRequest) -> _Try | None:
        if request.sink is None and not self._undelivered(request):
            return _Try("")
        self._senders: dict[str, list[str]] = {}
        best, least = None, np.inf
        for plan in abstract_plans(self.system, request.streams):
            for node in self.system.cluster.nodes:
                tried = _Try(node.name)
                if not all(self._get(stream, tried, plan) for stream in request.streams):
                    continue
                if self._deliver(request, tried) and self._at_least(tried) < least:
                    price = self._price(request, tried)
                    if price < least:
                        best, least = tried, price
        return best

    def _get(self, stream: str, tried: _Try, plan: Abstract) -> bool:
        """Has the node get a stream: it is there, it is sent by another node, or it is made of what the node gets."""
        if tried.node in self._held[stream] or stream in tried.there:
            return True
        if (source := self._sender(stream, tried.node)) is not None:
            tried.flows.append(AllocatedFlow(source, tried.node, stream))
            tried.there.add(stream)
            return True
        operator = plan.get(stream)
        if operator is None or not self._may_run(operator, tried.node):
            return False
        if not all(self._get(name, tried, plan) for name in operator.inputs):
            return False
        tried.runs.append(AllocatedRun(tried.node, operator.name))
        tried.there.update(operator.outputs)
        return True

    def _may_run(self, operator: SharedOperator, node: str) -> bool:
        if operator.nodes is not None and node not in operator.nodes:
            return False
        return not (self._rules.once and operator.name in self._running)

    def _sender(self, stream: str, target: str) -> str | None:
        """Of the nodes that have a stream and can send it, the one with most bandwidth left."""
        if stream not in self._senders:
            self._senders[stream] = self._by_room(stream)
        size = self.system.stream[stream].bytes
        return next((name for name in self._senders[stream] if self._link_has_room(name, target, size)), None)

    def _by_room(self, stream: str) -> list[str]:
        position, size = self.system.cluster.position, self.system.stream[stream].bytes
        having = self._held[stream] if self._rules.relays else self._roots[stream]
        room = self._limits.bandwidth_out - self._use.bytes_out
        able = [name for name in sorted(having) if room[position[name]] >= size]
        return sorted(able, key=lambda name: -room[position[name]])

    def _link_has_room(self, source: str, target: str, size: float) -> bool:
        cluster = self.system.cluster
        if not self._links_can_bind:
            return True
        taken = self._use.links.get((cluster.position[source], cluster.position[target]), 0.0)
        return taken + size <= cluster.bandwidth(source, target)

    def _deliver(self, request: StreamRequest, tried: _Try) -> bool:
        """Has the sink get the streams from the node, if it may hand them on."""
        sink = request.sink
        if sink is None or sink == tried.node:
            return True
        wanted = [stream for stream in request.streams if sink not in self._held[stream]]
        tried.flows += [AllocatedFlow(tried.node, sink, stream) for stream in wanted]
        made = {stream for run in tried.runs for stream in self.system.operator[run.operator].outputs}
        return self._rules.relays or all(s in made or tried.node in self._roots[s] for s in wanted)

    def _at_least(self, tried: _Try) -> float:
        """What it costs, but for the rise of the highest load and for handling what is sent."""
        w, system = self._weights, self.system
        load = sum(system.operator[run.operator].load for run in tried.runs)
        sent = sum(system.stream[flow.stream].bytes for flow in tried.flows)
        return w.network * sent + w.cpu * load + w.highest * self._highest

    def _price(self, request: StreamRequest, tried: _Try) -> float:
        """lambda_2 O_2 + lambda_3 O_3 + lambda_4 O_4 with it; infinite if a node or link has no room for it."""
        more, now = use(self.system, self._added(request, tried)), self._use
        columns = (
            (more.load, now.load, self._limits.cpu),
            (more.state_bytes, now.state_bytes, self._limits.memory),
            (more.bytes_in, now.bytes_in, self._limits.bandwidth_in),
            (more.bytes_out, now.bytes_out, self._limits.bandwidth_out),
        )
        if any(((extra > 0) & (extra + taken > limit)).any() for extra, taken, limit in columns):
            return np.inf
        nodes, bandwidth = self.system.cluster.nodes, self.system.cluster.bandwidth
        for (a, b), size in more.links.items():
            if now.links.get((a, b), 0.0) + size > bandwidth(nodes[a].name, nodes[b].name):
                return np.inf
        w = self._weights
        sent = sum(more.links.values())
        return float(w.network * sent + w.cpu * more.load.sum() + w.highest * (more.load + now.load).max())
