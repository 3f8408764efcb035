"""What a decision is made from, and what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    reported: Mapping[str, float] = field(default_factory=dict)  # of fragments that managers below have: what they cost
    others: Mapping[str, float] = field(default_factory=dict)  # what those cost that a manager below did not name
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the nodes of managers below

    def on(self, processor: str) -> list[str]:
        return [fragment for fragment, at in self.table.items() if at == processor]

    def sums(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """Amounts of fragments by processor."""
        found = {processor: self.others.get(processor, 0.0) for processor in self.alive}
        for fragment, processor in self.table.items():
            if processor in found:
                found[processor] += amounts[fragment]
        return found

    def from_above(self, address: str) -> Known:
        """All of it as one processor: what leaves it is what goes to somebody else."""
        table, others = dict.fromkeys(self.table, address), {address: sum(self.others.values())}
        return replace(self, table=table, alive=(address,), others=others)


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
class ProcessorLimits:
    """What may be moved at all (Table 6.1)."""

    options: Options
    held: frozenset[str] = frozenset()  # fragments that are being moved or were refused just now

    def fragments(self, known: Known, processor: str) -> list[str]:
        return [fragment for fragment in known.on(processor) if self._may_leave(known, fragment)]

    def processors(self, known: Known) -> list[str]:
        """A manager below is one if any of its nodes is."""
        return [p for p in known.alive if any(self._may_take(known, node) for node in known.members.get(p, (p,)))]

    def _may_take(self, known: Known, node: str) -> bool:
        wanted = self.options.eligible_processors
        description = known.descriptions.processors.get(node, {})
        return not wanted or node in wanted or any(has(description, condition) for condition in wanted)

    def _may_leave(self, known: Known, fragment: str) -> bool:
        if fragment in self.held or fragment in known.problem.pinned:
            return False
        if fragment in known.reported:
            return known.reported[fragment] > 0  # a manager below names only what may leave it
        operators = known.problem.fragment[fragment].operators
        wanted = self.options.eligible_operators
        if wanted and fragment not in wanted and not any(o.name in wanted for o in operators):
            return False
        state = sum(known.descriptions.operator(o.name, "state_bytes") for o in operators)
        return self.options.least_state <= state <= self.options.most_state
