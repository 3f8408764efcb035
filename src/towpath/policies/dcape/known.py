"""What a decision is made from, and what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from towpath.placement.problem import Problem
from towpath.policies.dcape.connections import Wiring
from towpath.policies.dcape.options import Options
from towpath.policies.dcape.properties import Descriptions, has


@dataclass(frozen=True)
class Known:
    """Current distribution, statistics and processors: the three inputs of a cost model (section 6.1)."""

    problem: Problem
    wiring: Wiring
    table: Mapping[str, str]  # fragment -> processor: a node, or the manager of some
    descriptions: Descriptions
    alive: tuple[str, ...]

    def on(self, processor: str) -> list[str]:
        return [fragment for fragment, at in self.table.items() if at == processor]


@dataclass(frozen=True)
class CostTable:
    """Figure 6.1. What a cost means is the cost model's business alone."""

    processors: Mapping[str, float]
    fragments: Mapping[str, float]  # how much of it each fragment makes
    worse: Literal["rising", "falling"] = "rising"

    def difference(self) -> float:
        """(max - min) / max: 0 for equal costs, 1 for one that has nothing."""
        highest = max(self.processors.values(), default=0.0)
        return (highest - min(self.processors.values())) / highest if highest else 0.0

    def degradation(self, processor: str, before: float) -> float:
        """The share by which a processor's cost is worse than it was."""
        if not before:
            return 0.0
        change = (self.processors[processor] - before) / before
        return change if self.worse == "rising" else -change


@dataclass(frozen=True)
class Suggestion:
    fragment: str
    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class Limits:
    """What may be moved at all (Table 6.1)."""

    options: Options
    held: frozenset[str] = frozenset()  # fragments that are being moved or were refused just now

    def fragments(self, known: Known, processor: str) -> list[str]:
        return [fragment for fragment in known.on(processor) if self._may_leave(known, fragment)]

    def processors(self, known: Known) -> list[str]:
        wanted = self.options.eligible_processors
        return [
            name
            for name in known.alive
            if not wanted
            or name in wanted
            or any(has(known.descriptions.processors.get(name, {}), condition) for condition in wanted)
        ]

    def _may_leave(self, known: Known, fragment: str) -> bool:
        if fragment in self.held or fragment in known.problem.pinned:
            return False
        operators = known.problem.fragment[fragment].operators
        wanted = self.options.eligible_operators
        if wanted and fragment not in wanted and not any(o.name in wanted for o in operators):
            return False
        state = sum(known.descriptions.operator(o.name, "state_bytes") for o in operators)
        return self.options.least_state <= state <= self.options.most_state
