"""Nodes with little load ask their partners for fragments, each deciding for itself (Zhou et al., section 3).

One actor on each node decides from its own measurements and from what other nodes report to it. docs/design/zhou.md
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from towpath.placement.cluster import Node
from towpath.placement.problem import Fragment, Placement, Problem
from towpath.policies.zhou.actor import NodeActor
from towpath.policies.zhou.holdings import HostedFragments
from towpath.policies.zhou.messages import FragmentCard, Sighting
from towpath.policies.zhou.neighbours import neighbouring_factors, neighbours
from towpath.policies.zhou.options import Options, Selection
from towpath.policies.zhou.partners import Partners
from towpath.policies.zhou.workload import NodeLoad, OperatorLoads
from towpath.runtime.actors import Actors

__all__ = ["LIVE", "Options", "Selection", "actors"]

LIVE = {"tau": 10.0, "delta": 30.0, "refresh": 120.0}


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    """Nodes with little load ask their partners for some; fragments are chosen so that data flows stay short."""
    nodes = [node for node in problem.cluster.nodes if node.cpu > 0]  # others only hand streams on
    near = neighbours(problem)
    factors = neighbouring_factors(problem)
    cards = _cards(problem, placement, near)
    made = []
    for number, node in enumerate(nodes):
        rng = np.random.default_rng([options.seed, number])
        others = [other.name for other in nodes if other is not node]
        partners = Partners(
            {name: factor for name, factor in factors[node.name].items() if name in others},
            others,
            max1=options.max1,
            max2=options.bound2,
            maximum_try=options.maximum_try,
            rng=rng,
        )
        load = NodeLoad(options.smoothing, options.kappa)
        holdings = _holdings(node, cards.get(node.name, []), placement, options)
        made.append(NodeActor(holdings, load, partners, options, first_round=float(rng.uniform(0, options.delta))))
    return Actors(made, {actor.address: actor.address for actor in made}, options.tau, take_nodes=True)


def _cards(
    problem: Problem, placement: Placement, near: Mapping[str, tuple[str, ...]]
) -> dict[str, list[FragmentCard]]:
    """By node, the cards of what it runs."""
    found: dict[str, list[FragmentCard]] = {}
    for fragment in problem.fragments:
        hosts = placement.nodes.get(fragment.name, ())
        running = tuple(n for n in near[fragment.name] if placement.nodes.get(n))
        for host in hosts:
            found.setdefault(host, []).append(_card(problem, fragment, running, movable=len(hosts) == 1))
    return found


def _card(problem: Problem, fragment: Fragment, near: tuple[str, ...], movable: bool) -> FragmentCard:
    return FragmentCard(
        fragment.name,
        problem.native_node(fragment),
        near,
        tuple(o.name for o in fragment.operators),
        tuple(o.signature for o in fragment.operators),
        movable and fragment.name not in problem.pinned,
    )


def _holdings(node: Node, cards: list[FragmentCard], placement: Placement, options: Options) -> HostedFragments:
    known = dict.fromkeys(name for card in cards for name in (card.fragment, *card.neighbours))
    sightings = [Sighting(name, placement.nodes[name][0]) for name in known]
    return HostedFragments(node.name, cards, sightings, OperatorLoads(options.smoothing, node.cpu))
