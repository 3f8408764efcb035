"""D-CAPE's distribution manager: one for all nodes, or tiers of them; a cost model and a redistribution policy decide.

Every node has an agent that reports to its manager what changed; a manager turns reports into costs, costs into
suggestions, and those that stand the test into moves. A manager is to the one above it what an agent is to it.

    agent       what runs on a node                      monitor      the statistics table
    manager     the actor that joins the rest            decision     Algorithm 5
    costs/      cost models, one a file                  reallocation Algorithm 6
    redistribution/   which fragments go where, one a file
    validity    the query plan manager                   connections  Algorithm 4
    properties  open descriptions                        messages     what is sent, and its size
    tiers       who manages whom                         export       statistics for a spreadsheet
"""

from __future__ import annotations

from towpath.placement.problem import Placement, Problem
from towpath.policies.dcape.agent import Agent
from towpath.policies.dcape.manager import Manager
from towpath.policies.dcape.options import Options
from towpath.policies.dcape.tiers import ROOT, Tier, tiers
from towpath.runtime.moves import Actor, Actors

__all__ = ["ROOT", "Options", "actors"]


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    nodes = [node.name for node in problem.cluster.nodes if node.cpu > 0]
    made: list[Actor] = []

    def build(tier: Tier, parent: str | None) -> None:
        made.append(Manager(tier, parent, problem, placement, options))
        for child in tier.below:
            if isinstance(child, Tier):
                build(child, tier.address)
            else:
                made.append(Agent(child, tier.address, options.tolerance))

    build(tiers(nodes, options.fan_out), None)
    return Actors(tuple(made), {node: node for node in nodes}, options.window)
