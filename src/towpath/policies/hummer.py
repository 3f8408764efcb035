"""Buffers move to where load, transfer and duplication are least together; nodes are asked for and given up.

Hummer et al. (WS-Aggregation): variable neighbourhood search (planners/hummer.py) runs every so often on what was
measured, and if its F, migration included, is better than that of staying, what differs moves. When all nodes are under
stress nothing may be taken in by any of them, so there is no valid solution: another node is asked for (section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from towpath.placement.cluster import Cluster
from towpath.placement.problem import Placement, Problem
from towpath.planners import hummer as planner
from towpath.policies._central import CentralActor, alone
from towpath.runtime.actors import (
    Actors,
    Measured,
    Move,
    NeedNode,
    NodeJoined,
    NodeLost,
    Note,
    PolicyEvent,
    PolicyInstruction,
    ReleaseNode,
    moves_between,
)

ADDRESS = "optimiser"
LIVE = {"seconds": 2.0}  # the job waits for it


@dataclass(frozen=True)
class Options:
    load: float = 1.0  # w_L
    transfer: float = 1.0  # w_T
    duplication: float = 1.0  # w_D
    migration: float = 1.0  # w_M
    stress: float = 0.9  # lambda: a node with more load takes nothing in
    release: float = 0.3  # with less load than this on average, a node may go
    every: float = 60.0  # seconds between two searches
    window: float = 10.0  # seconds between two measurements
    gain: float = 0.1  # by this share of F a solution must be better at least
    at_once: int = 50  # moves that are asked for together, at most; the others follow when these are done
    evaluations: int = 20_000  # of one search; 0: any number
    seconds: float = 0.0  # of the processor, for one search; 0: any number
    seed: int = 0

    def of_search(self) -> planner.Options:
        return planner.Options(
            self.load,
            self.transfer,
            self.duplication,
            self.migration,
            self.stress,
            self.evaluations,
            self.seconds,
            seed=self.seed,
        )


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    return alone(Optimiser(problem, placement, options), problem, options.window, take_nodes=True)


class Optimiser(CentralActor):
    def __init__(self, problem: Problem, placement: Placement, options: Options) -> None:
        super().__init__(ADDRESS, problem, placement, options.every)
        self._options = options
        self._workers = {node.name for node in problem.cluster.nodes if node.cpu > 0}
        self._stress: dict[str, float] = {}  # by node, as it was measured last
        self._lost: set[str] = set()
        self._waiting: list[Move] = []  # the rest of what the last search wants

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        match event:
            case Measured(_, statistics):
                self._stress |= {node: seen.load for node, seen in statistics.nodes.items() if node in self._workers}
            case NodeLost(_, node):
                self._lost.add(node)
                self._stress.pop(node, None)
                self._give_up()
            case NodeJoined(_, node):
                self._lost.discard(node.name)
                self._give_up()
        return super().handle(event)

    def _give_up(self) -> None:
        self._waiting = []

    def _plan(self, at: float) -> list[PolicyInstruction]:
        options = self._options
        if self._moving:
            return [Note(f"no new search: {len(self._moving)} moves of the last one are under way")]
        if self._waiting:
            return self._next_moves()
        if self._stress and min(self._stress.values()) > options.stress:
            return [NeedNode(f"all {len(self._stress)} nodes have more than {options.stress:.0%} load")]
        problem = self._measured(at)
        found = planner.search(problem, options.of_search())
        if found.placement.refused:
            return [NeedNode(next(iter(found.placement.refused.values())))]
        if not found.begun - found.cost > options.gain * abs(found.begun):
            return [Note(f"F stays {found.begun:.4g}: the best found is {found.cost:.4g}"), *self._release(problem)]
        wanted = moves_between(
            self._placement, found.placement, f"F becomes {found.cost:.4g} instead of {found.begun:.4g}"
        )
        # What was on a lost node is brought back by whoever runs the job, with its state.
        self._waiting = [move for move in wanted if move.source not in self._lost]
        return self._next_moves()

    def _next_moves(self) -> list[PolicyInstruction]:
        some = self._waiting[: self._options.at_once]
        self._waiting = self._waiting[len(some) :]
        self._moving = {move.fragment for move in some}
        return list(some)

    def _measured(self, at: float) -> Problem:
        """Nothing runs on a node that is lost."""
        return replace(super()._measured(at), cluster=self._without(self._lost), current=self._placement)

    def _without(self, nodes: set[str]) -> Cluster:
        cluster = self._problem.cluster
        return replace(cluster, nodes=tuple(replace(n, cpu=0.0) if n.name in nodes else n for n in cluster.nodes))

    def _release(self, problem: Problem) -> list[PolicyInstruction]:
        """The nodes without which everything has room, those with the least load first."""
        options, stress = self._options, self._stress
        if len(stress) < 2 or sum(stress.values()) / len(stress) >= options.release:
            return []
        quick = replace(options.of_search(), evaluations=1)
        spare = []
        for node in sorted(stress, key=lambda name: stress[name]):
            fewer = replace(problem, cluster=self._without({*self._lost, node}))
            if node not in problem.pinned.values() and not planner.search(fewer, quick).placement.refused:
                spare.append(node)
        text = f"{len(stress)} nodes have less than {options.release:.0%} load on average"
        return [ReleaseNode(tuple(spare), text)] if spare else []
