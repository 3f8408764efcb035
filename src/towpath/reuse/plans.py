"""Query plans (section III-A): trees of operators and relays on nodes, taken out of an allocation and verified.

An allocation says what runs and what flows for all requests together. A plan is what is left when one follows a
request's stream back to where everything enters the cluster; C1 to C4 say when such a tree makes sense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from towpath.placement.violation import Violation
from towpath.reuse.allocation import Allocation
from towpath.reuse.system import System


@dataclass(frozen=True, slots=True)
class PlanSource:
    """Where a stream enters the cluster."""

    node: str
    stream: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A node of the tree: [h, o], or [h, mu] if it only relays. `stream` is the label of the arc that leaves it."""

    node: str
    operator: str | None
    stream: str
    inputs: tuple[PlanStep | PlanSource, ...]


class UnfoundedError(Exception):
    """A stream is said to be at a node, but comes from nowhere."""


class Plans:
    """The query plans in an allocation."""

    def __init__(self, system: System, allocation: Allocation) -> None:
        self._system = system
        self._origin = allocation.origin
        self._made = {
            (run.node, stream): run.operator
            for run in sorted(allocation.runs)
            for stream in system.operator[run.operator].outputs
        }

    def extract(self, stream: str, node: str) -> PlanStep:
        """The plan that brings a stream to a node. Raises UnfoundedError if there is none."""
        found = self._trace(node, stream, ())
        # A stream that enters where it is wanted has no step of its own: the node hands it out.
        return found if isinstance(found, PlanStep) else PlanStep(node, None, stream, (found,))

    def _trace(self, node: str, stream: str, above: tuple[tuple[str, str], ...]) -> PlanStep | PlanSource:
        if (node, stream) in above:
            way = " <- ".join(f"{s} at {n}" for n, s in (*above, (node, stream)))
            raise UnfoundedError(f"{stream} at node {node} comes from itself: {way}")
        if node in self._system.stream[stream].nodes:
            return PlanSource(node, stream)
        above = (*above, (node, stream))
        if (operator := self._made.get((node, stream))) is not None:
            inputs = self._system.operator[operator].inputs
            return PlanStep(node, operator, stream, tuple(self._trace(node, name, above) for name in inputs))
        if (source := self._origin.get((node, stream))) is not None:
            return PlanStep(node, None, stream, (self._trace(source, stream, above),))
        raise UnfoundedError(f"{stream} is expected at node {node}, but neither enters, is made nor arrives there")


def conditions(system: System, plan: PlanStep, stream: str) -> list[Violation]:
    """C1 to C4, as far as they do not hold."""
    found = [] if plan.stream == stream else [_broken("C1", plan, f"hands out {plan.stream}, expected {stream}")]
    return [*found, *_below(system, plan)]


def _below(system: System, step: PlanStep) -> Iterator[Violation]:
    arrives = [part.stream for part in step.inputs]
    if step.operator is None:
        if arrives != [step.stream]:
            yield _broken("C3", step, f"relays {step.stream}, but gets {', '.join(arrives) or 'nothing'}")
    else:
        operator = system.operator[step.operator]
        missing = [name for name in operator.inputs if name not in arrives]
        if missing or step.stream not in operator.outputs:
            yield _broken("C2", step, f"runs {operator.name} without {', '.join(missing) or 'making ' + step.stream}")
    for part in step.inputs:
        if isinstance(part, PlanStep):
            yield from _below(system, part)
        elif part.node not in system.stream[part.stream].nodes:
            yield _broken("C4", step, f"reads {part.stream} at {part.node}, where it does not enter the cluster")


def _broken(condition: str, step: PlanStep, text: str) -> Violation:
    return Violation("query plan", f"node {step.node}", f"{condition}: {text}")
