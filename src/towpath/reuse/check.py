"""Can an allocation run? Every way in which it cannot, at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from towpath.placement.check import TOLERANCE
from towpath.placement.violation import Resource, Violation
from towpath.reuse.allocation import Allocation, held, use
from towpath.reuse.plans import Plans, UnfoundedError, conditions
from towpath.reuse.system import System


def check(system: System, allocation: Allocation) -> list[Violation]:
    return [*_requests(system, allocation), *_streams(system, allocation), *resources(system, allocation)]


def places(system: System, allocation: Allocation) -> Iterator[tuple[str, str]]:
    """The streams that admitted requests want, and the nodes at which they must be."""
    for name in sorted(allocation.admitted):
        request = system.request[name]
        for stream in request.streams:
            node = request.sink if request.sink is not None else allocation.provides.get(stream)
            if node is not None:
                yield stream, node


def _requests(system: System, allocation: Allocation) -> Iterator[Violation]:
    """Each has a plan for what it asks for, and the plan keeps to C1 to C4."""
    for name in sorted(allocation.admitted):
        request = system.request[name]
        for stream in request.streams if request.sink is None else ():
            if stream not in allocation.provides:
                yield Violation("query plan", f"query {name}", f"is admitted, but no node hands out {stream}")
    plans = Plans(system, allocation)
    for stream, node in dict.fromkeys(places(system, allocation)):
        try:
            yield from conditions(system, plans.extract(stream, node), stream)
        except UnfoundedError as fault:
            yield Violation("query plan", f"node {node}", str(fault))


def _streams(system: System, allocation: Allocation) -> Iterator[Violation]:
    """Whatever runs has its inputs, whatever is sent is there, and nothing comes from itself (III.5, III.7)."""
    at, plans = held(system, allocation), Plans(system, allocation)
    wanted = [(flow.source, flow.stream) for flow in sorted(allocation.flows)]
    for run in sorted(allocation.runs):
        operator = system.operator[run.operator]
        wanted += [(run.node, stream) for stream in operator.inputs]
        if operator.nodes is not None and run.node not in operator.nodes:
            yield Violation("pinned", f"operator {run.operator}", f"runs on {run.node}, where it may not")
    for node, stream in dict.fromkeys(wanted):
        if node not in at[stream]:
            yield Violation("input", f"node {node}", f"needs {stream}, which is not there")
            continue
        try:
            plans.extract(stream, node)
        except UnfoundedError as fault:
            yield Violation("input", f"node {node}", str(fault))


def resources(system: System, allocation: Allocation) -> Iterator[Violation]:
    nodes = system.cluster.nodes
    used = use(system, allocation)
    columns: tuple[tuple[Resource, np.ndarray, list[float]], ...] = (
        ("cpu", used.load, [node.cpu for node in nodes]),
        ("memory", used.state_bytes, [node.memory for node in nodes]),
        ("bandwidth in", used.bytes_in, [node.bandwidth_in for node in nodes]),
        ("bandwidth out", used.bytes_out, [node.bandwidth_out for node in nodes]),
    )
    for kind, taken, limits in columns:
        for node, amount, limit in zip(nodes, taken.tolist(), limits, strict=True):
            if amount > limit * (1 + TOLERANCE):
                yield Violation(kind, f"node {node.name}", f"{kind}: {amount:,.6g}, but it has {limit:,.6g}")
    for (a, b), amount in sorted(used.links.items()):
        source, target = nodes[a].name, nodes[b].name
        limit = system.cluster.bandwidth(source, target)
        if amount > limit * (1 + TOLERANCE):
            yield Violation("link", f"link {source} -> {target}", f"{amount:,.6g}, but it has {limit:,.6g}")
