"""Queries that take more or less than was estimated, or that a full node serves, are planned again, one at a time.

Kalyvianaki et al. (SQPR, section IV-B): each is taken out and put back by the mixed-integer program, beside all others.
Where its answer is better, or a node is full, fragments move: those at the same time for which there is room while the
old node and the new one work side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from towpath.errors import Mistake, PolicyError
from towpath.placement.costs.sqpr import SqprWeights, objective, weights_for
from towpath.placement.problem import Placement, Problem
from towpath.policies._central import CentralActor, alone
from towpath.reuse.admission import SolveLimits
from towpath.reuse.allocation import AllocatedRun, Allocation, use
from towpath.reuse.check import resources
from towpath.reuse.fragments import RULES, of_problem
from towpath.reuse.replanning import Replanned, at_once, replan, to_replan
from towpath.reuse.system import System
from towpath.runtime.actors import Actors, Move, NeedNode, Note, PolicyInstruction, moves_between

ADDRESS = "planner"
NAMED = 2  # of the queries that are planned again, in the reason of a move
LIVE = {"seconds": 2.0}  # the job waits for it


@dataclass(frozen=True)
class Options:
    every: float = 60.0  # seconds between two looks at what was measured
    window: float = 10.0  # seconds between two measurements
    threshold: float = 0.2  # a query whose cpu or traffic differs from the estimate by more than this share has drifted
    most_load: float = 0.9  # a node with more load than this is full
    gain: float = 0.05  # by this share of the objective a plan must be better, unless a node is full
    queries: int = 10  # that are planned again at a time, at most
    seconds: float = 0.0  # of the processor, for all of them together; 0: to the end


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    if options.queries < 1:
        mistake = Mistake("queries", f"expected at least 1, got {options.queries}")
        raise PolicyError("options of the policy sqpr", [mistake])
    return alone(SqprActor(problem, placement, options), problem, options.window)


class SqprActor(CentralActor):
    def __init__(self, problem: Problem, placement: Placement, options: Options) -> None:
        super().__init__(ADDRESS, problem, placement, options.every)
        self._options = options
        self._loads: dict[str, float] = {}  # by operator and by stream, what was planned with
        self._bytes: dict[str, float] = {}
        self._wanted: dict[str, Move] = {}  # by fragment, moves that have yet to begin
        self._share = options.most_load  # of a node's cpu, what queries may take
        self._last = ""  # of the queries that were planned again
        first = of_problem(problem).system
        self._keep(first, first.request)

    def _give_up(self) -> None:
        self._wanted = {}

    def _plan(self, at: float) -> list[PolicyInstruction]:
        if self._moving:
            return [Note(f"nothing is planned again: {len(self._moving)} moves of the last plan are under way")]
        self._share = self._options.most_load
        measured = self._measured(at)
        now = of_problem(measured)
        current = now.allocation(self._placement)
        found = to_replan(self._estimated(now.system), now.system, current, self._options.threshold)
        # Those that had no turn yet come first: the same few must not keep all others waiting.
        some = {name: found[name] for name in sorted(found, key=self._next_turn)[: self._options.queries]}
        if not some:
            return []
        self._last = list(some)[-1]
        full = any(resources(now.system, current))
        planned = self._planned(now.system, current, some)
        self._keep(now.system, some)
        short = [NeedNode(f"no node has room for {name} any more: {found[name]}") for name in planned.lost]
        if planned.lost:
            # Nobody is dropped here. What the fullest node has to do is the limit then, and load gets more even.
            self._share, full = self._share * _highest(now.system, current), False
            measured = self._measured(at)
            now = of_problem(measured)
            planned = self._planned(now.system, current, some)
        after = Placement({**self._placement.nodes, **now.placement(planned.allocation, {}).nodes})
        better = self._share_saved(measured, after, _weights(now.system))
        if not full and better < self._options.gain:
            names = ", ".join(some)
            return [*short, Note(f"{names} stay: planned again, the objective would be better by {better:.1%}")]
        why = "; ".join(f"{name}: {reason}" for name, reason in list(some.items())[:NAMED])
        self._wanted = {move.fragment: move for move in moves_between(self._placement, after, f"planned again, {why}")}
        return [*short, *self._go_on(at)]

    def _planned(self, system: System, current: Allocation, queries: Collection[str]) -> Replanned:
        limits = SolveLimits(self._options.seconds / len(queries))
        return replan(system, current, list(queries), limits, replace(RULES, weights=_weights(system)))

    def _next_turn(self, query: str) -> tuple[bool, str]:
        return query <= self._last, query

    def _share_saved(self, measured: Problem, after: Placement, weights: SqprWeights) -> float:
        """Of what everything costs in the objective, who is admitted left aside."""
        costs = replace(weights, admitted=0.0)
        before, then = (-objective(measured, placement, costs) for placement in (self._placement, after))
        return (before - then) / before if before else 0.0

    def _go_on(self, at: float) -> list[PolicyInstruction]:
        """Of what has yet to move, what there is room for on the way."""
        now = of_problem(self._measured(at))
        waiting: dict[AllocatedRun, list[Move]] = {}
        for move in self._wanted.values():
            waiting.setdefault(AllocatedRun(move.target, now.operator[move.fragment]), []).append(move)
        together = at_once(now.system, now.allocation(self._placement), list(waiting))
        moves = [move for run in together for move in waiting[run]]
        if self._wanted and not moves:
            stuck, self._wanted = ", ".join(self._wanted), {}
            return [
                Note(f"{stuck} stay: something would be full on the way, with the old node and the new one at work")
            ]
        self._moving = {move.fragment for move in moves}
        self._wanted = {name: move for name, move in self._wanted.items() if name not in self._moving}
        return list(moves)

    def _measured(self, at: float) -> Problem:
        """Nodes have what queries may take of them."""
        problem = super()._measured(at)
        nodes = tuple(replace(node, cpu=node.cpu * self._share) for node in problem.cluster.nodes)
        return replace(problem, cluster=replace(problem.cluster, nodes=nodes), current=self._placement)

    def _estimated(self, now: System) -> System:
        """With the loads and rates that queries were last planned with."""
        operators = tuple(replace(o, load=self._loads.get(o.name, o.load)) for o in now.operators)
        streams = tuple(replace(s, bytes=self._bytes.get(s.name, s.bytes)) for s in now.streams)
        return replace(now, operators=operators, streams=streams)

    def _keep(self, now: System, names: Iterable[str]) -> None:
        """What these queries were planned with."""
        streams, operators = now.related(s for name in names for s in now.request[name].streams)
        self._loads |= {name: now.operator[name].load for name in operators}
        self._bytes |= {name: now.stream[name].bytes for name in streams}


def _highest(system: System, allocation: Allocation) -> float:
    """The load of the fullest node, as a share of what queries may take there."""
    loads = zip(system.cluster.nodes, use(system, allocation).load.tolist(), strict=True)
    return max(load / node.cpu for node, load in loads if node.cpu > 0)


def _weights(system: System) -> SqprWeights:
    """The paper's, which scale traffic by what nodes can send. Where that has no limit, by all that operators make."""
    usual = weights_for(system.cluster)
    made = sum(system.stream[name].bytes for operator in system.operators for name in operator.outputs)
    return usual if usual.network or not made else replace(usual, network=1 / made)
