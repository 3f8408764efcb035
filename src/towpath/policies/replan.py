"""A planner runs every so often on what was measured; where its answer differs, fragments move."""

from __future__ import annotations

from dataclasses import dataclass, replace

from towpath import planners
from towpath.config.settings import meant
from towpath.errors import Mistake, PolicyError
from towpath.placement.costs import METRICS
from towpath.placement.problem import Placement, Problem
from towpath.policies._central import CentralActor, alone
from towpath.runtime.actors import Actors, Note, PolicyInstruction, moves_between

ADDRESS = "replanner"


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
    return alone(Replanner(problem, placement, options), problem, options.window)


class Replanner(CentralActor):
    def __init__(self, problem: Problem, placement: Placement, options: Options) -> None:
        super().__init__(ADDRESS, problem, placement, options.every)
        self._options = options

    def _plan(self, at: float) -> list[PolicyInstruction]:
        if self._moving:
            return [Note(f"no new plan: {len(self._moving)} moves of the last one are under way")]
        options = self._options
        problem = replace(self._measured(at), current=self._placement)
        planned = planners.run(options.planner, problem)
        metric = METRICS[options.metric]
        before, after = metric.loss(problem, self._placement), metric.loss(problem, planned)
        if not before - after > options.gain * abs(before):
            return [Note(f"{options.planner} gains too little: {options.metric} {before:.3g}, then {after:.3g}")]
        reason = f"{options.planner} makes {options.metric} {after:.3g} instead of {before:.3g}"
        moves = moves_between(self._placement, planned, reason)[: options.at_once]
        self._moving = {move.fragment for move in moves}
        return list(moves)
