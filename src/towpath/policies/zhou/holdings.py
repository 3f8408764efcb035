"""The fragments of a node, and where their neighbours run.

Whoever gives a fragment away informs the new node and the nodes of its neighbours. Those may be others by then, so a
node that no longer has the neighbour passes the message on to where it gave it, and who hears two places of one
fragment believes the one with more moves. When nothing moves any more and all messages have arrived, every node knows
where the neighbours of its fragments run; before that a decision may rest on an old place, which costs locality and
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from towpath.policies.zhou.messages import FragmentCard, Handover, Moved, Sighting
from towpath.policies.zhou.selection import Candidate
from towpath.policies.zhou.workload import OperatorLoads

Sent = tuple[str, Handover | Moved]  # to which node


class HostedFragments:
    def __init__(
        self, node: str, cards: Iterable[FragmentCard], sightings: Iterable[Sighting], loads: OperatorLoads
    ) -> None:
        self.node = node
        self.cards = {card.fragment: card for card in cards}
        self.loads = loads
        self._seen: dict[str, Sighting] = {}
        for sighting in sightings:
            self._believe(sighting)

    def where(self, fragment: str) -> str:
        return self._seen[fragment].node

    def candidates(self) -> Iterator[Candidate]:
        """The fragments that may move."""
        shares = self._shares()
        for card in self.cards.values():
            if card.movable:
                near = frozenset(self.where(n) for n in card.neighbours)
                state = sum(self.loads.state_bytes(o) for o in card.operators)
                yield Candidate(card.fragment, self._load(card, shares), state, card.native, near)

    def give(self, fragment: str, target: str) -> list[Sent]:
        card = self.cards.pop(fragment)
        here = Sighting(fragment, target, self._seen[fragment].moves + 1)
        self._believe(here)
        neighbours = tuple(self._seen[n] for n in card.neighbours)
        loads = tuple(self.loads.load(o) for o in card.operators)
        states = tuple(self.loads.state_bytes(o) for o in card.operators)
        sent: list[Sent] = [(target, Handover(card, here, neighbours, loads, states))]
        for operator in card.operators:
            self.loads.drop(operator)
        # To the target as well, if it has a neighbour: that may leave before the handover arrives.
        return sent + [(s.node, Moved(here, s.fragment)) for s in neighbours if s.node != self.node]

    def take(self, handover: Handover) -> None:
        card = handover.card
        self.cards[card.fragment] = card
        for sighting in (handover.sighting, *handover.neighbours):
            self._believe(sighting)
        for operator, load, state in zip(card.operators, handover.loads, handover.state_bytes, strict=True):
            self.loads.put(operator, load, state)

    def hear(self, moved: Moved) -> list[Sent]:
        self._believe(moved.sighting)
        known = self._seen.get(moved.neighbour)
        if moved.neighbour in self.cards or known is None or known.node == self.node:
            return []  # if it is still on its way to here, what was heard is waiting for it
        return [(known.node, moved)]

    def _believe(self, sighting: Sighting) -> None:
        known = self._seen.get(sighting.fragment)
        if known is None or known.moves < sighting.moves:
            self._seen[sighting.fragment] = sighting

    def _shares(self) -> dict[str, float]:
        """By signature, 1/n of the load of the physical operator that n logical ones share.

        The engine may report it under all of them or under one.
        """
        loads: dict[str, list[float]] = {}
        for card in self.cards.values():
            for operator, signature in zip(card.operators, card.signatures, strict=True):
                if signature is not None:
                    loads.setdefault(signature, []).append(self.loads.load(operator))
        return {signature: max(reported) / len(reported) for signature, reported in loads.items()}

    def _load(self, card: FragmentCard, shares: Mapping[str, float]) -> float:
        pairs = zip(card.operators, card.signatures, strict=True)
        return sum(self.loads.load(o) if s is None else shares[s] for o, s in pairs)
