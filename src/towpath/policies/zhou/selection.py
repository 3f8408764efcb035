"""Which fragments to give away (Zhou et al., section 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Key = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    fragment: str
    load: float  # rho
    state_bytes: float
    native: str | None  # its native node
    neighbours: frozenset[str]  # the nodes that run its neighbours

    @property
    def density(self) -> float:
        """The load that moves with each byte of state."""
        return self.load / max(self.state_bytes, 1.0)


def elementary(candidate: Candidate, sender: str, receiver: str) -> Key:
    return (-candidate.density,)


def intermediate(candidate: Candidate, sender: str, receiver: str) -> Key:
    return (candidate.native == sender, -candidate.density)


def data_flow_aware(candidate: Candidate, sender: str, receiver: str) -> Key:
    return (*category(candidate, sender, receiver), -candidate.density)


def category(candidate: Candidate, sender: str, receiver: str) -> tuple[int, int]:
    """The class (1 to 3) and the class within it (1 to 4); lower ones go first."""
    outer = {sender: 3, receiver: 1}.get(candidate.native or "", 2)
    near = (receiver in candidate.neighbours, sender in candidate.neighbours)
    inner = {(True, False): 1, (True, True): 2, (False, False): 3, (False, True): 4}[near]
    return outer, inner


Order = Callable[[Candidate, str, str], Key]
ORDERS: Mapping[str, Order] = {
    "data_flow_aware": data_flow_aware,
    "intermediate": intermediate,
    "elementary": elementary,
}


def select(
    candidates: Iterable[Candidate], sender: str, receiver: str, amount: float, limit: float, order: Order
) -> list[Candidate]:
    """The fragments that go, in their order and none left out, until they are `amount` of load or more.

    It ends earlier before one that would make them more than `limit`.
    """
    chosen: list[Candidate] = []
    moved = 0.0
    for candidate in sorted(candidates, key=lambda c: (order(c, sender, receiver), c.fragment)):
        if candidate.load <= 0:
            continue  # not measured yet: nobody knows what would be given
        if moved >= amount or moved + candidate.load > limit:
            break
        chosen.append(candidate)
        moved += candidate.load
    return chosen
