"""What a node runs, and what was measured of it.

A node knows what it runs from its own measurements, so nobody has to hand anything over when a fragment moves, and
nothing is forgotten when the node that it came from is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from towpath.placement.statistics import OperatorStatistics, Statistics
from towpath.policies.sbon.cards import Card, Spring


@dataclass(frozen=True)
class Body:
    """Fragments of equal signature on one node: one operator, which goes as a whole."""

    cards: tuple[Card, ...]

    @property
    def name(self) -> str:
        return self.cards[0].fragment

    @property
    def signature(self) -> tuple[str, ...]:
        return self.cards[0].signature

    @property
    def springs(self) -> list[Spring]:
        return [spring for card in self.cards for spring in card.springs]

    @property
    def names(self) -> tuple[str, ...]:
        """What must be claimed before anything is done: its queries, and whatever else has the same signature."""
        queries = dict.fromkeys(f"query {card.query}" for card in self.cards)
        return (*queries, f"signature {' '.join(self.signature)}") if self.signature else tuple(queries)


class Holdings:
    def __init__(self, node: str, cpu: float, catalogue: Mapping[str, Card], here: Iterable[str], smoothing: float):
        """`catalogue` has the cards of all fragments there are: query plans do not change."""
        self._node = node
        self._cpu = cpu
        self._catalogue = catalogue
        self._of_operator = {operator: card for card in catalogue.values() for operator in card.operators}
        self._here = dict.fromkeys(here)
        self._smoothing = smoothing
        self._seen: dict[str, OperatorStatistics] = {}
        self._coming: dict[str, tuple[str, float]] = {}  # by fragment: from where, and its work
        self._background: float | None = None  # load that is not of these fragments
        self.memory = 0.0
        self._count()

    def _count(self) -> None:
        """What follows from what is here: asked for often, by each of thousands of fragments."""
        groups: dict[object, list[Card]] = {}
        for card in map(self._catalogue.__getitem__, self._here):
            groups.setdefault(card.signature or card.fragment, []).append(card)
        self._groups = [Body(tuple(group)) for group in groups.values()]
        self._own = sum(map(self.work, self._groups)) / self._cpu if self._cpu else 0.0
        self._inward = Counter(flow for body in self._groups for flow in _inward(body))

    @property
    def fragments(self) -> tuple[str, ...]:
        return tuple(self._here)

    def measured(self, statistics: Statistics) -> None:
        present = (self._of_operator.get(name) for name in statistics.operators)
        self._here = dict.fromkeys(card.fragment for card in present if card is not None)
        self._coming = {name: coming for name, coming in self._coming.items() if name not in self._here}
        for name, new in statistics.operators.items():
            self._seen[name] = self._smoothed(name, new)
        self._count()
        if (node := statistics.nodes.get(self._node)) is not None:
            other = max(node.load - self._own, 0.0)
            before = other if self._background is None else self._background
            self._background = before + self._smoothing * (other - before)
            self.memory = node.memory

    @property
    def load(self) -> float:
        """The share of the node that is busy, with what is on its way to here."""
        coming = sum(work for _, work in self._coming.values())
        return (self._background or 0.0) + self._own + (coming / self._cpu if self._cpu else 0.0)

    def _smoothed(self, name: str, new: OperatorStatistics) -> OperatorStatistics:
        """Beginning with what the problem states: a first window may have little in it."""
        share, old, card = self._smoothing, self._seen.get(name), self._of_operator.get(name)
        if old is not None:
            rate, selectivity = old.rate, old.selectivity
        else:
            rate, selectivity = (new.rate, new.selectivity) if card is None else card.stated[name]
        return OperatorStatistics(
            rate + share * (new.rate - rate),
            selectivity + share * (new.selectivity - selectivity),
            new.cost,
            new.state_bytes,
        )

    def gave(self, fragment: str) -> None:
        self._here.pop(fragment, None)
        self._count()

    def expect(self, fragment: str, sender: str, work: float) -> None:
        if work > 0 and fragment not in self._here:
            self._coming[fragment] = (sender, work)
        else:
            self._coming.pop(fragment, None)

    def lost(self, node: str) -> None:
        """Who was lost sends nothing any more; what has come from it is measured."""
        self._coming = {name: coming for name, coming in self._coming.items() if coming[0] != node}

    def runs(self, signature: tuple[str, ...]) -> bool:
        return bool(signature) and any(self._catalogue[name].signature == signature for name in self._here)

    def bodies(self) -> list[Body]:
        """Those that may move: of equal fragments all or none."""
        return [body for body in self._groups if all(card.movable for card in body.cards)]

    def rate(self, spring: Spring, card: Card) -> float:
        """Bytes per second over a link, as measured; before that, as stated."""
        seen, (stated, _) = self._seen.get(spring.operator), card.stated[spring.operator]
        if seen is None:
            return spring.rate
        if not spring.inward:
            return seen.rate * seen.selectivity * spring.width
        return spring.rate * seen.rate / stated if stated > 0 else spring.rate

    def work(self, body: Body) -> float:
        """Seconds of work per second at cpu 1; equal operators work once."""
        card = body.cards[0]
        seen = [self._seen[o] for o in card.operators if o in self._seen]
        return sum(s.rate * s.cost for s in seen) if len(seen) == len(card.operators) else card.work

    def flows_of_others(self, body: Body) -> set[str]:
        """What comes to this node for other operators, too."""
        return {flow for flow in _inward(body) if self._inward[flow] > 1}


def _inward(body: Body) -> set[str]:
    return {spring.flow for spring in body.springs if spring.inward}
