"""A planner runs every so often on what was measured; where its answer differs, fragments move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from towpath import planners
from towpath.config.settings import meant
from towpath.errors import Mistake, PolicyError
from towpath.placement.costs import METRICS
from towpath.placement.flows import with_statistics
from towpath.placement.problem import Placement, Problem
from towpath.placement.statistics import OperatorStatistics, Statistics
from towpath.runtime.actors import (
    Actors,
    Measured,
    Move,
    MoveDone,
    MoveFailed,
    Note,
    PolicyEvent,
    PolicyInstruction,
    Started,
    Wake,
    Woken,
)

ADDRESS = "replanner"
PLAN = "plan"


@dataclass(frozen=True)
class Options:
    planner: str = "round_robin"
    every: float = 60.0  # seconds between two plans
    metric: str = "load.highest"  # what a plan must make better to be followed
    gain: float = 0.1  # by this share of it at least
    at_once: int = 50  # moves of one plan, at most
    window: float = 10.0  # seconds between two measurements


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    planners.get(options.planner)
    if options.metric not in METRICS:
        mistake = Mistake("metric", f"{options.metric!r} is unknown", meant(options.metric, METRICS))
        raise PolicyError("options of the policy replan", [mistake])
    nodes = [node.name for node in problem.cluster.nodes]
    return Actors((Replanner(problem, placement, options),), dict.fromkeys(nodes, ADDRESS), options.window)


class Replanner:
    def __init__(self, problem: Problem, placement: Placement, options: Options) -> None:
        self.address = ADDRESS
        self._problem = problem
        self._placement = placement
        self._options = options
        self._streams: dict[str, float] = {}
        self._operators: dict[str, OperatorStatistics] = {}
        self._moving: set[str] = set()

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        match event:
            case Started(at):
                return [Wake(at + self._options.every, PLAN)]
            case Measured(_, statistics):
                self._streams |= statistics.streams
                self._operators |= statistics.operators
            case Woken(at):
                return [*self._replan(at), Wake(at + self._options.every, PLAN)]
            case MoveDone(_, fragment, source, target):
                self._moving.discard(fragment)
                self._placement = self._placement.moved(fragment, source, target)
            case MoveFailed(_, fragment, source, target, reason):
                self._moving.discard(fragment)
                return [Note(f"{fragment} stays on {source}, did not go to {target}: {reason}")]
        return []

    def _replan(self, at: float) -> list[PolicyInstruction]:
        if self._moving:
            return [Note(f"no new plan: {len(self._moving)} moves of the last one are under way")]
        options = self._options
        measured = with_statistics(self._problem, Statistics(at, 0.0, self._streams, self._operators))
        problem = replace(measured, current=self._placement)
        planned = planners.run(options.planner, problem)
        metric = METRICS[options.metric]
        before, after = metric.loss(problem, self._placement), metric.loss(problem, planned)
        if not before - after > options.gain * abs(before):
            return [Note(f"{options.planner} gains too little: {options.metric} {before:.3g}, then {after:.3g}")]
        reason = f"{options.planner} makes {options.metric} {after:.3g} instead of {before:.3g}"
        moves = differences(self._placement, planned, reason)[: options.at_once]
        self._moving = {move.fragment for move in moves}
        return list(moves)


def differences(before: Placement, after: Placement, reason: str) -> list[Move]:
    """The moves that turn one placement into another; of copies, those that have no place in the other one."""
    found = []
    for fragment, wanted in after.nodes.items():
        here = before.nodes.get(fragment, ())
        leave, enter = [n for n in here if n not in wanted], [n for n in wanted if n not in here]
        found += [Move(fragment, source, target, reason) for source, target in zip(leave, enter, strict=False)]
    return found
