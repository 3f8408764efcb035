"""What a manager reports to the one above: sums, and what the few fragments cost that it would rather be without.

So what is reported does not grow with the number of nodes and operators below: that is what tiers are for.
"""

from __future__ import annotations

from collections.abc import Iterator

from towpath.policies.dcape.costs import CostModel, amounts
from towpath.policies.dcape.known import Known, ProcessorLimits
from towpath.policies.dcape.messages import WorkRequest
from towpath.policies.dcape.monitor import Increments
from towpath.policies.dcape.options import Options
from towpath.policies.dcape.properties import PropertyChange
from towpath.policies.dcape.tiers import aggregated
from towpath.runtime.actors import Address


class Upwards:
    def __init__(self, address: Address, model: CostModel, options: Options) -> None:
        self._address = address
        self._model = model
        self._options = options
        self._increments = Increments(options.tolerance)
        self._named: dict[str, None] = {}  # fragments that the one above knows a cost of

    def report(self, known: Known, held: frozenset[str]) -> tuple[PropertyChange, ...]:
        """What changed. A fragment that is not offered any more costs nothing by itself: it is among the others."""
        cost = amounts(self._model, known.from_above(self._address))
        offered = self._offered(known, cost, held)
        named_costs = dict.fromkeys(self._named, 0.0) | {fragment: cost[fragment] for fragment in offered}
        others = sum(known.others.values()) + sum(c for f, c in cost.items() if f not in offered)
        self._named = offered
        return self._increments.of(self._changes(known, named_costs, others))

    def took(self, request: WorkRequest) -> None:
        if request.verb == "activate":  # the one above knows what it cost elsewhere, and did not listen to us about it
            self._named[request.fragment] = None
            self._increments.forget()
        elif request.verb == "deactivate":
            self._named.pop(request.fragment, None)

    def _offered(self, known: Known, cost: dict[str, float], held: frozenset[str]) -> dict[str, None]:
        limits = ProcessorLimits(self._options, held)
        movable = [f for processor in known.alive for f in limits.fragments(known, processor) if cost[f] > 0]
        # One that is named already goes before one that costs hardly more: a change of names has to be reported, too.
        stays = 1 + self._options.tolerance
        movable.sort(key=lambda fragment: -cost[fragment] * (stays if fragment in self._named else 1.0))
        return dict.fromkeys(movable[: self._options.offers])

    def _changes(self, known: Known, named_costs: dict[str, float], others: float) -> Iterator[PropertyChange]:
        yield from aggregated(self._address, known.alive, known.descriptions)
        yield PropertyChange("processor", self._address, "others", others)
        for fragment, cost in named_costs.items():
            yield PropertyChange("fragment", fragment, "cost", cost)
