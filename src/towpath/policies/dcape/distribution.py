"""The distribution table of a manager: which of its processors has what, and what is on its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from towpath.placement.problem import Placement, Problem
from towpath.policies.dcape.connections import Wiring, gained
from towpath.policies.dcape.messages import Verb, WorkRequest
from towpath.policies.dcape.tiers import Tier
from towpath.runtime.actors import Address


class Distribution:
    def __init__(self, tier: Tier, parent: Address | None, problem: Problem, placement: Placement) -> None:
        processor_of = tier.nodes()
        self.table: dict[str, Address] = {
            fragment: processor_of[node]
            for fragment, node in placed(placement).items()  # the manager moves first copies; others stay
            if node in processor_of
        }
        self.nodes = frozenset(below for below in tier.below if isinstance(below, str))
        self.alive: dict[Address, None] = dict.fromkeys(tier.processors())
        self.arriving: dict[str, Address] = {}  # prepared for the manager above, and not active yet
        self.kept: dict[str, dict[Address, Verb]] = {}  # who asked that it be released, or held where it is
        self._reachable = {parent, *tier.processors()} - self.nodes - {None}  # managers, who do not die with nodes
        self._parent = parent
        self._problem = problem

    def route(self, fragment: str) -> Address | None:
        """To whom requests about a fragment go; None when nobody is known who has it and is alive."""
        at = self.arriving.get(fragment) or self.table.get(fragment) or self._parent
        return at if at is not None and self.reaches(at) else None

    def reaches(self, receiver: Address) -> bool:
        return receiver in self.alive or receiver in self._reachable

    def best_for(self, fragment: str, wiring: Wiring, among: Iterable[Address]) -> Address:
        """Where it saves most connections, and among equals where the fewest operators are."""
        table: Mapping[str, str] = {fragment: "", **self.table}
        count = self._operators()
        return max(among, key=lambda p: (gained(wiring, table, fragment, p), -count[p]))

    def fewest(self, processors: Iterable[Address]) -> Address | None:
        """The one with the fewest operators."""
        count = self._operators()
        return min(processors, key=lambda p: count.get(p, 0), default=None)

    def rival(self, origin: Address, request: WorkRequest) -> Address | None:
        """Who else counts on a fragment: to leave, nobody may; to be held, nobody who takes it away."""
        others = {o: verb for o, verb in self.kept.get(request.fragment, {}).items() if o != origin}
        return next((o for o, verb in others.items() if "release" in (verb, request.verb)), None)

    def took(self, origin: Address, request: WorkRequest) -> None:
        """What a request of the manager above changes here."""
        fragment = request.fragment
        match request.verb:
            case "release" | "hold":
                self.kept.setdefault(fragment, {})[origin] = request.verb
            case "stop_send" | "stop_receive":
                self._let_go(origin, fragment)
            case "activate":
                self._let_go(origin, fragment)
                if fragment in self.arriving:
                    self.table[fragment] = self.arriving.pop(fragment)
            case "deactivate":
                self._let_go(origin, fragment)
                if self.arriving.pop(fragment, None) is None:
                    self.table.pop(fragment, None)

    def _let_go(self, origin: Address, fragment: str) -> None:
        keepers = self.kept.get(fragment, {})
        keepers.pop(origin, None)
        if not keepers:
            self.kept.pop(fragment, None)

    def _operators(self) -> dict[Address, int]:
        count = dict.fromkeys(self.alive, 0)
        for fragment, processor in self.table.items():
            count[processor] = count.get(processor, 0) + len(self._problem.fragment[fragment].operators)
        return count


def placed(placement: Placement) -> dict[str, str]:
    """The nodes of the first copies."""
    return {fragment: nodes[0] for fragment, nodes in placement.nodes.items() if nodes}
