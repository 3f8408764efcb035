"""Load, transfer, duplication and migration of Hummer et al. (WS-Aggregation), section 4.

An input i of the paper is a fragment that reads a stream, source(i); a dependency is a flow between two fragments.
Rates are in kB/s as in the paper, so that its weights of 1 mean the same here. As printed, load(a) sums over all inputs
of a buffered source, also those that other nodes process; here over the inputs on the node, as the text means it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from towpath.placement.flows import flows, fragment_states, read_from
from towpath.placement.problem import Placement, Problem

KB = 1000.0


@dataclass(frozen=True, slots=True)
class HummerWeights:
    """w_L, w_T, w_D and w_M."""

    load: float = 1.0
    transfer: float = 1.0
    duplication: float = 1.0
    migration: float = 1.0


def load_differences(problem: Problem, placement: Placement, overhead: Mapping[str, float] | None = None) -> float:
    """L: the sum over the nodes of ldiff(a) = load(a) - minload, in kB/s; `overhead` is c(i) by fragment, else 1."""
    load = {node.name: 0.0 for node in problem.cluster.nodes if node.cpu > 0}
    for flow in flows(problem):
        if flow.producer in problem.stream:
            c = 1.0 if overhead is None else overhead.get(flow.consumer, 1.0)
            for node in placement.nodes.get(flow.consumer, ()):
                load[node] = load.get(node, 0.0) + flow.bytes / KB * c
    return sum(load.values()) - len(load) * min(load.values())


def transfer(problem: Problem, placement: Placement) -> float:
    """T: the sum of flow(i1, i2) over the dependencies between nodes (eq. 2), in kB/s."""
    total = 0.0
    for flow in flows(problem):
        if flow.producer not in problem.stream:
            for node in placement.nodes.get(flow.consumer, ()):
                if read_from(problem, placement, flow.producer, node) != node:
                    total += flow.bytes / KB
    return total


def duplication(problem: Problem, placement: Placement) -> float:
    """D: the sum of dupl(s) (eq. 3), the nodes beyond the first that buffer a stream."""
    return float(sum(max(len(nodes) - 1, 0) for nodes in _buffers(problem, placement).values()))


def migration(problem: Problem, placement: Placement) -> float:
    """M: the sum of migr(i) (eq. 1), the bytes of buffers moved to where their source is not buffered yet."""
    if problem.current is None:
        return 0.0
    buffered = _buffers(problem, problem.current)
    sources: dict[str, list[str]] = {}
    for flow in flows(problem):
        if flow.producer in problem.stream:
            sources.setdefault(flow.consumer, []).append(flow.producer)
    total = 0.0
    for fragment, size in fragment_states(problem).items():
        before = problem.current.nodes.get(fragment, ())
        arrived = [node for node in placement.nodes.get(fragment, ()) if before and node not in before]
        # A fragment that reads no stream has its buffer to itself, so it always travels.
        read = sources.get(fragment) or [""]
        total += sum(size / len(read) for node in arrived for s in read if node not in buffered.get(s, ()))
    return total


def objective(problem: Problem, placement: Placement, weights: HummerWeights | None = None) -> float:
    """F = w_L L + w_T T + w_D D + w_M M (eqs. 4 and 5)."""
    w = weights or HummerWeights()
    return (
        w.load * load_differences(problem, placement)
        + w.transfer * transfer(problem, placement)
        + w.duplication * duplication(problem, placement)
        + w.migration * migration(problem, placement)
    )


def _buffers(problem: Problem, placement: Placement) -> Mapping[str, set[str]]:
    """By stream, the nodes that buffer it: buf(a) the other way round."""
    found: dict[str, set[str]] = {}
    for flow in flows(problem):
        if flow.producer in problem.stream:
            found.setdefault(flow.producer, set()).update(placement.nodes.get(flow.consumer, ()))
    return found
