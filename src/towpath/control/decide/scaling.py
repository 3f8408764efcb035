"""Elastic scaling: when another node is started, and which one is given up. Decides; does nothing.

A node that scaling did not start is not its to stop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

PREFIX = "auto"


@dataclass(frozen=True)
class Bounds:
    least: int = 1  # nodes
    most: int = 4
    above: float = 0.8  # a node with more load is stressed
    below: float = 0.3  # with less on average there are too many
    after_s: float = 30.0  # for so long it must have been like that


@dataclass(frozen=True)
class Grow:
    node: str  # the name of the new one
    reason: str


@dataclass(frozen=True)
class Shrink:
    node: str
    reason: str


class Scaling:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._stressed_since: float | None = None
        self._idle_since: float | None = None

    def decide(self, at: float, loads: Mapping[str, float], own: Collection[str]) -> Grow | Shrink | None:
        """`loads` of the nodes that take queries; `own`: all that scaling started, also those that do not answer."""
        bounds = self._bounds
        stressed = bool(loads) and min(loads.values()) > bounds.above
        # The load of the one that goes must fit on the others.
        fits = len(loads) > 1 and sum(loads.values()) / (len(loads) - 1) < bounds.above
        idle = fits and sum(loads.values()) / len(loads) < bounds.below
        self._stressed_since = _since(self._stressed_since, at, stressed)
        self._idle_since = _since(self._idle_since, at, idle)
        if self._lasted(self._stressed_since, at):
            text = f"all {len(loads)} nodes have had more than {bounds.above:.0%} load for {bounds.after_s:g} s"
            if (grow := self.grow(loads, own, text)) is not None:
                return grow
        if self._lasted(self._idle_since, at):
            text = f"{len(loads)} nodes have had less than {bounds.below:.0%} load on average for {bounds.after_s:g} s"
            return self.shrink(loads, own, sorted(loads, key=lambda node: loads[node]), text)
        return None

    def grow(self, loads: Collection[str], own: Collection[str], reason: str) -> Grow | None:
        """Another node, if there may be one more."""
        return Grow(_free_name(own), reason) if len({*loads, *own}) < self._bounds.most else None

    def shrink(self, loads: Collection[str], own: Collection[str], nodes: Iterable[str], reason: str) -> Shrink | None:
        """Without the first of these nodes that may go."""
        leaving = next((node for node in nodes if node in own and node in loads), None)
        return Shrink(leaving, reason) if leaving is not None and len(loads) > self._bounds.least else None

    def reset(self) -> None:
        """The nodes are others now: what was seen of the old ones says nothing about them."""
        self._stressed_since = self._idle_since = None

    def _lasted(self, since: float | None, at: float) -> bool:
        return since is not None and at - since >= self._bounds.after_s


def _since(before: float | None, at: float, holds: bool) -> float | None:
    if not holds:
        return None
    return at if before is None else before


def _free_name(taken: Collection[str]) -> str:
    return next(name for n in range(1, len(taken) + 2) if (name := f"{PREFIX}{n}") not in taken)
