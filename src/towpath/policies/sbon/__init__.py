"""Every node draws its operators to where they use the network least, and moves them there (Pietzuch et al., SBON).

One local optimiser on each node keeps its network coordinates up to date by pings and evaluates what it runs every so
often; a directory answers who is near a place. docs/planners.md
"""

from __future__ import annotations

from functools import partial

import numpy as np

from towpath.placement.index import latencies
from towpath.placement.problem import Placement, Problem
from towpath.placement.vivaldi import PercentileFilter, embed
from towpath.policies.sbon.cards import cards
from towpath.policies.sbon.directory import Directory
from towpath.policies.sbon.holdings import Holdings
from towpath.policies.sbon.messages import Position
from towpath.policies.sbon.optimiser import LocalOptimiser
from towpath.policies.sbon.options import Options
from towpath.policies.sbon.position import LatencyPosition
from towpath.runtime.actors import Actors

__all__ = ["Options", "actors"]


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    nodes = {node.name: node for node in problem.cluster.nodes}
    catalogue = cards(problem, placement)
    begin = embed(
        lambda a, b: latencies(problem.cluster, a, b),
        len(nodes),
        min(options.rounds, 50 + 5 * len(nodes)) if options.rounds else 0,
        options.seed,
    )
    positions: list[Position] = [tuple(point) for point in begin.points.tolist()]
    make_filter = partial(PercentileFilter, options.percentile, options.history)
    made = []
    for number, node in enumerate(nodes.values()):
        rng = np.random.default_rng([options.seed, number])
        here = [name for name, card in catalogue.items() if node.name in placement.nodes[name]]
        others = [other for other in nodes if other != node.name]
        error = float(begin.errors[number])
        made.append(
            LocalOptimiser(
                node,
                nodes,
                Holdings(node.name, node.cpu, catalogue, here, options.smoothing),
                LatencyPosition(positions[number], error, others, options.neighbours, make_filter, rng),
                options,
                phase=float(rng.random()),
            )
        )
    directory = Directory(
        dict(zip(nodes, positions, strict=True)),
        [node.name for node in nodes.values() if node.cpu > 0],
        {name: placement.nodes[name][0] for name in catalogue},
    )
    measures = {actor.address: actor.address for actor in made}
    return Actors((*made, directory), measures, options.window, take_nodes=True)
