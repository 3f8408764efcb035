"""From an allocation to the columns of a model, to start the search with, and back."""

from __future__ import annotations

import numpy as np

from towpath.placement.index import Floats, Ints
from towpath.reuse.allocation import AllocatedFlow, AllocatedRun, Allocation, pruned, use
from towpath.reuse.model import Model


def encode(model: Model, allocation: Allocation) -> Floats:
    """The values of the columns. The allocation is as the model's current one in all that is not free."""
    system, position = model.system, model.system.cluster.position
    values = np.zeros(model.program.size[1])
    number = {operator.name: n for n, operator in enumerate(model.operators)}
    for run in allocation.runs:
        if run.operator in number:
            values[model.z[number[run.operator], position[run.node]]] = 1.0
    free = [flow for flow in allocation.flows if flow.stream in model.at]
    for flow in free:
        stream, source, target = model.at[flow.stream], position[flow.source], position[flow.target]
        values[model.sent[stream, source]] += 1.0
        values[model.received[stream, target]] = 1.0
        if model.with_links:
            values[model.x[stream, source, target]] = 1.0
    for name, d in model.d.items():
        if name in allocation.provides:
            values[d[position[allocation.provides[name]]]] = 1.0
    values[model.admitted] = [request.name in allocation.admitted for request in model.requests]
    values[model.in_all] = use(system, allocation).load.max(initial=0.0)
    if model.with_links:
        values[model.p] = _potentials(model, free)
    elif model.rules.relays:
        has = model.enters + _made(model, values)
        first = np.where(has > 0, values[model.sent], 0.0)
        values[model.first] = first
        values[model.sum_first] = first.sum(axis=1)
        values[model.sum_made] = has.sum(axis=1)
    return values


def _made(model: Model, values: Floats) -> Floats:
    made = np.zeros(model.enters.shape)
    for stream, makers in enumerate(model.makers):
        made[stream] = values[model.z[makers]].sum(axis=0) if makers else 0.0
    return made


def _potentials(model: Model, flows: list[AllocatedFlow]) -> Floats:
    """High where a stream comes from, lower by one with every hand-over."""
    position = model.system.cluster.position
    potential = np.full(model.enters.shape, float(len(model.nodes)))
    origin = {(flow.stream, flow.target): flow.source for flow in flows}
    for stream, target in origin:
        node, hops = target, 0
        while (stream, node) in origin and hops < len(model.nodes):
            node, hops = origin[stream, node], hops + 1
        potential[model.at[stream], position[target]] -= hops
    return potential


def decode(model: Model, values: Floats) -> Allocation:
    chosen = values > 0.5
    names = [node.name for node in model.nodes]
    runs = {AllocatedRun(names[h], model.operators[o].name) for o, h in zip(*np.nonzero(chosen[model.z]), strict=True)}
    if model.with_links:
        chosen_x = zip(*np.nonzero(chosen[model.x]), strict=True)
        flows = {AllocatedFlow(names[a], names[b], model.streams[s].name) for s, a, b in chosen_x}
    else:
        flows = {flow for stream in range(len(model.streams)) for flow in _joined(model, values, stream)}
    provides = {name: names[int(np.argmax(values[d]))] for name, d in model.d.items() if chosen[d].any()}
    admitted = {r.name for r, yes in zip(model.requests, chosen[model.admitted], strict=True) if yes}
    fixed = model.fixed
    return pruned(
        model.system,
        Allocation(fixed.runs | runs, fixed.flows | flows, {**fixed.provides, **provides}, fixed.admitted | admitted),
    )


def _joined(model: Model, values: Floats, stream: int) -> list[AllocatedFlow]:
    """Receivers of a stream joined to senders, those that send it on first."""
    made = model.enters[stream] + (values[model.z[model.makers[stream]]] > 0.5).sum(axis=0)
    sent = np.rint(values[model.sent[stream]]).astype(int)
    receivers = np.flatnonzero((values[model.received[stream]] > 0.5) & (made == 0))
    places: list[int] = [int(h) for h in np.flatnonzero(made > 0) for _ in range(sent[h])]
    flows = []
    for target in _by_sent(receivers, sent):
        source = places.pop(0)
        flows.append(AllocatedFlow(model.nodes[source].name, model.nodes[target].name, model.streams[stream].name))
        places += [target] * int(sent[target])
    return flows


def _by_sent(receivers: Ints, sent: Ints) -> list[int]:
    return sorted(map(int, receivers), key=lambda node: -sent[node])
