"""Whether to ask for load, whom, and how much (Zhou et al., section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def load_request(own: float, partners: Mapping[str, float], kappa: float) -> tuple[str, float] | None:
    """Algorithm 2: the partner to ask and the amount, if this node has clearly less than the average."""
    if not partners:
        return None
    average = (own + sum(partners.values())) / (1 + len(partners))
    if kappa * own >= average:
        return None
    heaviest = max(partners, key=lambda node: (partners[node], node))
    return heaviest, (partners[heaviest] - own) / 2  # rho_r = (rho_i - rho_l) / 2


def all_overloaded(own: float, partners: Mapping[str, float], kappa: float) -> bool:
    """A node is overloaded if growth that it would not announce, by kappa, is more than it can do."""
    return kappa * min([own, *partners.values()]) >= 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A partner's request, or what is left of it."""

    node: str
    amount: float
    at: float


@dataclass
class Round:
    """What a node may still give away in the current interval of length Delta: half of what it had at its start."""

    workload: float = 0.0
    exported: float = 0.0
    _asked: dict[str, Asked] = field(default_factory=dict)

    @property
    def left(self) -> float:
        return max(self.workload / 2 - self.exported, 0.0)

    def begin(self, workload: float) -> None:
        self.workload = workload
        self.exported = 0.0

    def ask(self, request: Asked) -> None:
        """A newer request of a node replaces its older one."""
        self._asked[request.node] = request

    def forget(self, node: str) -> None:
        self._asked.pop(node, None)

    def expire(self, before: float) -> list[Asked]:
        """Takes out the requests that came earlier: who still wants load has asked again in the meantime."""
        old = [request for request in self._asked.values() if request.at < before]
        for request in old:
            del self._asked[request.node]
        return old

    def waiting(self) -> list[Asked]:
        """The largest amount first."""
        return sorted(self._asked.values(), key=lambda request: (-request.amount, request.node))
