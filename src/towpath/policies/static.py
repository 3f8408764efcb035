"""Nobody decides: everything stays where it is."""

from __future__ import annotations

from dataclasses import dataclass

from towpath.placement.problem import Placement, Problem
from towpath.runtime.actors import Actors


@dataclass(frozen=True)
class Options:
    """There is nothing to choose."""


def actors(problem: Problem, placement: Placement, options: Options) -> Actors:
    return Actors((), take_nodes=True)
