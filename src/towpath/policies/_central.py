"""What policies have in common that decide in one place for all nodes, every so often, by what was measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from towpath.placement.flows import with_statistics
from towpath.placement.problem import Placement, Problem
from towpath.placement.statistics import OperatorStatistics, Statistics
from towpath.runtime.actors import (
    Actors,
    Measured,
    MoveDone,
    MoveFailed,
    Note,
    PolicyEvent,
    PolicyInstruction,
    Started,
    Wake,
    Woken,
)

PLAN = "plan"


class CentralActor(ABC):
    def __init__(self, address: str, problem: Problem, placement: Placement, every: float) -> None:
        self.address = address
        self._problem = problem
        self._placement = placement
        self._every = every  # seconds between two plans
        self._streams: dict[str, float] = {}
        self._operators: dict[str, OperatorStatistics] = {}
        self._moving: set[str] = set()  # fragments of the last plan that are under way

    @abstractmethod
    def _plan(self, at: float) -> Sequence[PolicyInstruction]: ...

    def _go_on(self, at: float) -> Sequence[PolicyInstruction]:
        """All moves that were asked for are over."""
        return []

    def _give_up(self) -> None:  # noqa: B027 - a policy that moves all at once has nothing to give up
        """Things are not as they were thought to be: what the last plan has yet to move stays."""

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        match event:
            case Started(at):
                return [Wake(at + self._every, PLAN)]
            case Woken(at):
                return [*self._plan(at), Wake(at + self._every, PLAN)]
            case Measured(_, statistics):
                self._streams |= statistics.streams
                self._operators |= statistics.operators
            case MoveDone(at, fragment, source, target):
                self._moving.discard(fragment)
                self._placement = self._placement.moved(fragment, source, target)
                return [] if self._moving else self._go_on(at)
            case MoveFailed(_, fragment, source, target, reason):
                self._moving.discard(fragment)
                self._give_up()
                return [Note(f"{fragment} stays on {source}, did not go to {target}: {reason}")]
        return []

    def _measured(self, at: float) -> Problem:
        """What was measured in place of what was estimated."""
        return with_statistics(self._problem, Statistics(at, 0.0, self._streams, self._operators))


def alone(actor: CentralActor, problem: Problem, window: float, *, take_nodes: bool = False) -> Actors:
    """It hears the measurements of all nodes."""
    measures = {node.name: actor.address for node in problem.cluster.nodes}
    return Actors((actor,), measures, window, take_nodes=take_nodes)
