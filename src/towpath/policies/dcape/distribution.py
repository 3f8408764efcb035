"""The distribution table of a manager: which of its processors has what, and what is on its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from towpath.placement.problem import Placement, Problem
from towpath.policies.dcape.connections import Wiring, gained
from towpath.policies.dcape.messages import Request
from towpath.policies.dcape.tiers import Tier
from towpath.runtime.moves import Address


class Distribution:
    def __init__(self, tier: Tier, parent: Address | None, problem: Problem, placement: Placement) -> None:
        processor_of = tier.nodes()
        self.table: dict[str, Address] = {
            fragment: processor_of[node]
            for fragment, nodes in placement.nodes.items()
            for node in nodes[:1]  # the manager moves first copies; others stay
            if node in processor_of
        }
        self.alive: dict[Address, None] = dict.fromkeys(tier.processors())
        self.arriving: dict[str, Address] = {}  # prepared for the manager above, and not active yet
        self.promised: set[str] = set()  # the manager above moves these
        self._parent = parent
        self._problem = problem

    def route(self, fragment: str) -> Address | None:
        """To whom requests about a fragment go; None when nobody is known who has it and is alive."""
        at = self.arriving.get(fragment) or self.table.get(fragment) or self._parent
        return at if at is not None and self.reaches(at) else None

    def reaches(self, receiver: Address) -> bool:
        return receiver in self.alive or receiver == self._parent

    def best_for(self, fragment: str, wiring: Wiring) -> Address:
        """Where it saves most connections, and among equals where the fewest operators are."""
        table: Mapping[str, str] = {fragment: "", **self.table}
        count = self._operators()
        return max(self.alive, key=lambda p: (gained(wiring, table, fragment, p), -count[p]))

    def fewest(self, processors: Iterable[Address]) -> Address | None:
        """The one with the fewest operators."""
        count = self._operators()
        return min(processors, key=lambda p: count.get(p, 0), default=None)

    def took(self, request: Request) -> None:
        """What a request of the manager above changes here."""
        fragment = request.fragment
        match request.verb:
            case "release":
                self.promised.add(fragment)
            case "activate":
                self.promised.discard(fragment)
                if fragment in self.arriving:
                    self.table[fragment] = self.arriving.pop(fragment)
            case "deactivate":
                self.promised.discard(fragment)
                if self.arriving.pop(fragment, None) is None:
                    self.table.pop(fragment, None)

    def _operators(self) -> dict[Address, int]:
        count = dict.fromkeys(self.alive, 0)
        for fragment, processor in self.table.items():
            count[processor] = count.get(processor, 0) + len(self._problem.fragment[fragment].operators)
        return count
