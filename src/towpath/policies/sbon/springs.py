"""Where an operator is drawn to, and what it costs to have it on a node (sections 3.1.2 and 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import dist, hypot

from towpath.policies.sbon.messages import Position

MOST_STEPS = 10_000


@dataclass(frozen=True)
class Pull:
    """Of one link of an operator."""

    rate: float  # DR(l), bytes per second
    rest: Position  # of the neighbour: where it was drawn to
    position: Position  # of the node that runs the neighbour
    inward: bool
    shared: bool = False  # it comes to this node in any case, for others
    everywhere: bool = False  # any node reads it by itself


def at_rest(start: Position, pulls: Sequence[Pull], step: float, force: float) -> Position:
    """VIRTUAL-PLACE of Figure 7, against the force, and with delta scaled by the sum of the rates."""
    pulls = [pull for pull in pulls if not pull.everywhere]
    total = sum(pull.rate for pull in pulls)
    here = start
    for _ in range(MOST_STEPS if total > 0 else 0):
        away = tuple(sum(p.rate * (h - p.rest[d]) for p in pulls) for d, h in enumerate(here))
        if hypot(*away) < force:
            break
        here = tuple(h - step * f / total for h, f in zip(here, away, strict=True))
    return here


def usage(pulls: Sequence[Pull], node: Position, load: float) -> float:
    """Network usage in the cost space: each link is as long as the way from a neighbour without load to this node.

    `load` is the node's, as a distance: operators leave a busy node although its links are short.
    """
    return sum(p.rate * hypot(0.0 if p.shared or p.everywhere else dist(node, p.position), load) for p in pulls)
