"""What the experiments of WS-Aggregation have in common: the queries, where they begin, and the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from towpath.placement.costs.hummer import HummerWeights
from towpath.placement.problem import Placement, Problem

# The four settings of Figure 6.
WEIGHTS: Mapping[str, HummerWeights] = {
    "D": HummerWeights(0.0, 0.0, 1.0, 0.0),
    "L": HummerWeights(1.0, 0.0, 0.0, 0.0),
    "T": HummerWeights(0.0, 1.0, 0.0, 0.0),
    "all": HummerWeights(),
}
ASSUMED = (
    "a new query begins with all its inputs on one node, drawn by the seed: the paper does not say where they begin",
    "a source is buffered for 10 minutes; no node is stressed",
    "load(a) is read as that of the inputs on a; as printed, it also counts inputs of other nodes of sources on a",
)


def begun(problem: Problem, placed: Placement, rng: Random) -> Problem:
    """With queries that are not placed yet on a random node each."""
    nodes = [node.name for node in problem.cluster.nodes if node.cpu > 0]
    at = dict(placed.nodes)
    for query in problem.queries:
        node = rng.choice(nodes)
        for fragment in query.fragments:
            at.setdefault(fragment, (node,))
    return replace(problem, current=Placement({f.name: at[f.name] for f in problem.fragments}))
