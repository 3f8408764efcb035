"""D-CAPE's distribution manager: one for all nodes, or tiers of them; a cost model and a redistribution policy decide.

Every node has an agent that reports to its manager what changed; a manager turns reports into costs, costs into
suggestions, and those that stand the test into moves. A manager is to the one above it what an agent is to it.

    agent       what runs on a node                      monitor      the statistics table
    manager     the actor that joins the rest            decision     Algorithm 5, valid plans
    costs/      cost models, one a file                  reallocation Algorithm 6
    redistribution/   which fragments go where, one a file
    properties  open descriptions                        connections  Algorithm 4
    tiers       who manages whom                         messages     what is sent, and its size
    upwards     what a manager reports to the one above  relay        requests between tiers
"""

from __future__ import annotations

from towpath.placement.problem import Placement, Problem
from towpath.policies.dcape.agent import Agent
from towpath.policies.dcape.manager import Manager
from towpath.policies.dcape.options import Options
from towpath.policies.dcape.tiers import ROOT, tiers
from towpath.runtime.actors import Actor, Actors

__all__ = ["LIVE", "ROOT", "Options", "actors", "reported"]

# Spark's nodes send nothing to each other, so what they send says nothing about their load.
LIVE = {"cost": "measured_work", "redistribution": "balance", "at_once": 10}


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    nodes = [node for node in problem.cluster.nodes if node.cpu > 0]
    managers = list(tiers(nodes, options.fan_out, options.group_by).managers())
    made: list[Actor] = []
    for n, (tier, parent) in enumerate(managers):
        made.append(Manager(tier, parent, problem, placement, options, turn=n / len(managers)))
        made += [Agent(node, tier.address, options.tolerance) for node in tier.below if isinstance(node, str)]
    return Actors(tuple(made), {node.name: node.name for node in nodes}, options.window, take_nodes=True)


def reported(actors: Actors) -> list[dict[str, object]]:
    """What was reported during a run, as a table that a spreadsheet opens (section 4.3).

    Of the managers that agents report to, in the order of time; what went on upwards would only repeat it.
    """
    names = ("seconds", "kind", "name", "property", "value")
    found = [row for actor in actors.actors if isinstance(actor, Manager) for row in actor.reported()]
    return [dict(zip(names, row, strict=True)) for row in sorted(found, key=lambda row: row[0])]
