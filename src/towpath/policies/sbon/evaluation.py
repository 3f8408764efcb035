"""One operator is looked at again: drawn in the latency space, mapped to a node, and moved if that saves enough.

Sections 3.1.3 and 3.2, step by step: claim the queries; draw; if the place has changed, find the k nodes nearest to it;
contact them; take the first that runs an equal operator, else the nearest with room; migrate if usage falls enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import dist, hypot, inf

from towpath.placement.cluster import Node
from towpath.placement.problem import EVERYWHERE
from towpath.policies.sbon.holdings import Body, Holdings
from towpath.policies.sbon.messages import Candidates, Claim, Granted, Nearest, Place, Position, Standing
from towpath.policies.sbon.options import Options
from towpath.policies.sbon.springs import Pull, at_rest, usage


@dataclass(frozen=True)
class Mapped:
    """Where an operator was drawn to, and where its node was, when it was mapped last."""

    target: Position
    node: Position
    load: float


@dataclass(frozen=True)
class Choice:
    node: str | None  # None: it stays
    reason: str


class Evaluation:
    def __init__(
        self, number: int, node: Node, nodes: dict[str, Node], body: Body, holdings: Holdings, options: Options
    ) -> None:
        self.number = number
        self.body = body
        self._node = node
        self._nodes = nodes
        self._holdings = holdings
        self._options = options
        self._pulls: list[Pull] = []
        self._asked = options.nearest
        self._candidates: dict[str, Position] = {}
        self._all = False
        self._waiting: set[str] = set()
        self._standings: dict[str, Standing] = {}
        self.target: Position = ()
        self.moving: dict[str, str] = {}  # by fragment, where to
        self.moved: dict[str, str] = {}

    def claim(self) -> Claim:
        springs = self.body.springs
        return Claim(
            self.number,
            self.body.names,
            tuple(dict.fromkeys([self.body.name, *(s.fragment for s in springs if s.fragment is not None)])),
            tuple(dict.fromkeys(s.node for s in springs if s.node)),
        )

    def granted(self, granted: Granted, here: Position, before: Mapped | None) -> Nearest | None:
        """Draws the operator; None if it was not drawn far enough from where it was mapped before."""
        options = self._options
        self._pulls = self._pulled(granted)
        known = granted.fragments.get(self.body.name)
        self.target = at_rest(here if known is None else known.rest, self._pulls, options.step, options.force)
        if before is not None and self._displacement(before, here) <= options.displacement:
            return None
        return Nearest(self.number, self.target, self._asked)

    def _displacement(self, before: Mapped, here: Position) -> float:
        """Of the operator, or of its node: a node that has become busy has moved in the cost space, too."""
        load = self._options.load_scale * (self._holdings.load - before.load)
        return max(dist(before.target, self.target), hypot(dist(before.node, here), load))

    def _pulled(self, granted: Granted) -> list[Pull]:
        """Equal flows between two nodes are one."""
        others = self._holdings.flows_of_others(self.body)
        found: dict[tuple[str, str, bool], Pull] = {}
        for card in self.body.cards:
            for spring in card.springs:
                place = self._place(granted, spring.fragment, spring.node)
                if place is not None:
                    key = (spring.flow, place.node, spring.inward)
                    shared = spring.inward and spring.flow in others
                    rate = self._holdings.rate(spring, card)
                    anywhere = place.node == EVERYWHERE
                    pull = Pull(rate, place.rest, place.position, spring.inward, shared, anywhere)
                    found.setdefault(key, pull)
        return list(found.values())

    def _place(self, granted: Granted, fragment: str | None, node: str | None) -> Place | None:
        if fragment is not None:
            return granted.fragments.get(fragment)
        assert node is not None, "a spring has a fragment or a node at its end"
        if node == EVERYWHERE:
            return Place(node, (), ())
        return Place(node, granted.nodes[node], granted.nodes[node])

    # --- mapping -----------------------------------------------------------------------------------------------------

    def found(self, candidates: Candidates) -> list[str]:
        """The nodes to contact."""
        self._candidates, self._all = dict(candidates.nodes), candidates.all
        self._waiting = set(self._candidates) - {self._node.name} - self._standings.keys()
        return sorted(self._waiting)

    def standing(self, node: str, standing: Standing) -> None:
        self._waiting.discard(node)
        self._standings[node] = standing

    def lost(self, node: str) -> None:
        self._waiting.discard(node)
        self._candidates.pop(node, None)
        self._standings.pop(node, None)

    @property
    def complete(self) -> bool:
        return bool(self._candidates) and not self._waiting

    def wider(self) -> Nearest | None:
        """None if there are no more nodes."""
        if self._all:
            return None
        self._asked *= 2
        return Nearest(self.number, self.target, self._asked)

    def choose(self, here: Position) -> Choice | None:
        """None if none of the candidates has room: more of them are needed."""
        order = sorted(self._candidates, key=lambda node: (self._distance(node), node != self._node.name, node))
        again = [node for node in order if node in self._standings and self._standings[node].runs_it]
        for node in again:
            outputs = [pull for pull in self._pulls if not pull.inward]
            choice = self._compared(node, outputs, self._standings[node].load, here, "an equal operator runs there")
            if choice.node is not None:
                return choice
        nearest = next((node for node in order if self._fits(node)), None)
        if nearest is None:
            return None
        if nearest == self._node.name:
            return Choice(None, "its node is the nearest")
        return self._compared(nearest, self._pulls, self._load(nearest), here, "it is the nearest with room")

    def _compared(self, node: str, pulls: list[Pull], load: float, here: Position, why: str) -> Choice:
        options = self._options
        now = usage(self._pulls, here, options.load_scale * self._holdings.load)
        unshared = [replace(p, shared=False) for p in pulls]  # whether it is shared there, is unknown
        then = usage(unshared, self._candidates[node], options.load_scale * load)
        text = f"network usage {then:.4g} B instead of {now:.4g} B"
        if not now - then > options.gain * now:
            return Choice(None, f"{node} would save too little: {text}")
        return Choice(node, f"{why}: {text}")

    def _load(self, node: str) -> float:
        """With the operator on it."""
        if node == self._node.name:
            return self._holdings.load
        cpu, standing = self._nodes[node].cpu, self._standings.get(node)
        return inf if standing is None else standing.load + self._holdings.work(self.body) / cpu

    def _distance(self, node: str) -> float:
        return hypot(dist(self._candidates[node], self.target), self._options.load_scale * self._load(node))

    def _fits(self, node: str) -> bool:
        """Step 5. What runs already may stay where it is, as far as memory is concerned."""
        if self._load(node) > self._options.most_load:
            return False
        if node == self._node.name:
            return True
        memory = self._standings[node].memory + self.body.cards[0].state_bytes
        return memory <= self._nodes[node].memory
