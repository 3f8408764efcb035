"""The least network usage there is (SBON's OPTIMAL), for queries that are trees and share nothing with each other.

A fragment's best node depends on its neighbours' nodes only. So each tree is solved from its leaves to its root: for
every node that the fragment above may be on, the least that the tree below can use. That is exact and takes nodes^2 per
fragment, where trying everything takes nodes^fragments. What nodes and links can take is left aside, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from towpath.errors import Mistake, PlannerError
from towpath.placement.flows import flows, results
from towpath.placement.index import Floats, Ints, index, latencies
from towpath.placement.problem import EVERYWHERE, Placement, Problem

OBJECTIVE = "sbon.network_usage"
NEEDS_TREES = "the planner optimal is for queries that are trees and share nothing"


@dataclass(frozen=True)
class Options:
    pass


@dataclass
class _PullTree:
    """Fragments with what pulls at them: `own` is what each node would cost by streams and sinks alone."""

    own: dict[str, Floats]
    edges: dict[str, dict[str, float]] = field(default_factory=dict)  # neighbours, and bytes per second

    def connect(self, made: str, read: str, rate: float) -> None:
        for one, other in ((made, read), (read, made)):
            around = self.edges.setdefault(one, {})
            around[other] = around.get(other, 0.0) + rate


def plan(problem: Problem, options: Options) -> Placement:
    _refuse(problem)
    matrix = _latency_matrix(problem)
    tree = _pulls(problem, matrix)
    able = np.array([node.cpu > 0 for node in problem.cluster.nodes])
    for cost in tree.own.values():
        cost[~able] = np.inf
    position = problem.cluster.position
    for name, node in problem.pinned.items():
        kept = np.full(len(able), np.inf)
        kept[position[node]] = np.nan_to_num(tree.own[name][position[node]], posinf=0.0)
        tree.own[name] = kept
    chosen: dict[str, int] = {}
    for fragment in problem.fragments:
        if fragment.name not in chosen:
            _solve(tree, fragment.name, matrix, chosen)
    return Placement.single({name: problem.cluster.nodes[node].name for name, node in chosen.items()})


def _solve(tree: _PullTree, root: str, matrix: Floats, chosen: dict[str, int]) -> None:
    order, parent = [root], {root: (root, 0.0)}
    for name in order:
        for other, rate in tree.edges.get(name, {}).items():
            if other not in parent:
                parent[other] = (name, rate)
                order.append(other)
            elif parent[name][0] != other:
                mistake = Mistake(name, "there are two ways from it to another fragment", "use brute_force")
                raise PlannerError(NEEDS_TREES, [mistake])
    below = {name: tree.own[name].copy() for name in order}
    best: dict[str, Ints] = {}  # for each node of the parent, the node of the fragment
    for name in reversed(order[1:]):
        up, rate = parent[name]
        costs = below[name][None, :] + rate * matrix  # rows: nodes of the parent
        best[name] = np.argmin(costs, axis=1)
        below[up] += np.take_along_axis(costs, best[name][:, None], axis=1)[:, 0]
    chosen[root] = int(np.argmin(below[root]))
    for name in order[1:]:
        chosen[name] = int(best[name][chosen[parent[name][0]]])


def _latency_matrix(problem: Problem) -> Floats:
    """Both ways of a link count alike, so the matrix has the mean of the two."""
    count = len(problem.cluster.nodes)
    sources, targets = np.divmod(np.arange(count * count), count)
    matrix = latencies(problem.cluster, sources, targets).reshape(count, count)
    if not np.allclose(matrix, matrix.T, equal_nan=True):
        mistake = Mistake("network", "latencies differ by direction", "use brute_force for a small problem")
        raise PlannerError("the planner optimal needs the same latency both ways", [mistake])
    return np.where(np.isnan(matrix), np.inf, matrix)


def _pulls(problem: Problem, matrix: Floats) -> _PullTree:
    position = problem.cluster.position
    tree = _PullTree({f.name: np.zeros(len(matrix)) for f in problem.fragments})
    for flow in flows(problem):
        stream = problem.stream.get(flow.producer)
        if stream is not None and stream.node != EVERYWHERE:
            tree.own[flow.consumer] += flow.bytes * matrix[position[stream.node]]
        elif stream is None:
            tree.connect(problem.home[flow.producer], flow.consumer, flow.bytes)
    sizes = _bytes_out(problem)
    for query, operators in results(problem).items():
        sink = problem.query[query].sink
        for operator in operators if sink is not None else ():
            tree.own[problem.home[operator]] += sizes[operator] * matrix[position[sink or ""]]
    return tree


def _bytes_out(problem: Problem) -> Mapping[str, float]:
    columns = index(problem)
    return dict(zip(columns.points, columns.bytes_out.tolist(), strict=True))


def _refuse(problem: Problem) -> None:
    """What would make a fragment's cost depend on more than its neighbours."""
    mistakes = []
    read: dict[str, set[str]] = {}
    for flow in flows(problem):
        read.setdefault(flow.producer, set()).add(flow.consumer)
    if shared := [producer for producer, readers in read.items() if len(readers) > 1]:
        text = f"{len(shared):,} streams and results are read by several fragments, as {shared[0]}"
        mistakes.append(
            Mistake("streams", text, "what is sent once for several cannot be decided fragment by fragment")
        )
    if again := [q.name for q in problem.queries if q.copies > 1]:
        mistakes.append(Mistake("queries", f"{again[0]} wants copies", "ask for one copy"))
    signatures = [o.signature for o in problem.operators() if o.signature is not None]
    if len(set(signatures)) < len(signatures):
        mistakes.append(Mistake("operators", "some have equal signatures", "equal operators share what they send"))
    if mistakes:
        raise PlannerError(NEEDS_TREES, mistakes)
