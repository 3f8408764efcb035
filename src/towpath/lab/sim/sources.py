"""How the rate of a stream changes while a simulation runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from towpath.placement.problem import EVERYWHERE, Problem

Arrivals = Literal["constant", "poisson"]


@dataclass(frozen=True)
class Profile:
    """Tuples come at constant intervals or as a Poisson process; their rate is the stream's times a factor."""

    arrivals: Arrivals = "constant"
    steps: tuple[tuple[float, float], ...] = ()  # (from this second on, the factor); before the first it is 1

    def segments(self) -> list[tuple[float, float]]:
        """(the factor, until that second)."""
        steps = sorted(self.steps)
        factors = [1.0, *(factor for _, factor in steps)]
        ends = [*(at for at, _ in steps), inf]
        return [(factor, end) for factor, end in zip(factors, ends, strict=True) if end > 0]


STEADY = Profile()

Profiles = Profile | Mapping[str, Profile]  # of all streams, or by stream; a stream that is not named has the default


def profile_of(profiles: Profiles, stream: str) -> Profile:
    return profiles if isinstance(profiles, Profile) else profiles.get(stream, STEADY)


def entering(problem: Problem) -> Problem:
    """A tuple enters at one node, so streams that every node reads by itself enter at the first one."""
    first = problem.cluster.nodes[0].name if problem.cluster.nodes else EVERYWHERE
    if all(stream.node for stream in problem.streams):
        return problem
    return replace(problem, streams=tuple(replace(s, node=s.node or first) for s in problem.streams))


def bursts(on: float, off: float, factor: float, until: float, arrivals: Arrivals = "constant") -> Profile:
    """`on` seconds at `factor` times the rate, then `off` seconds at the rate, in turn."""
    steps: list[tuple[float, float]] = []
    at = 0.0
    while at < until:
        steps += [(at, factor), (at + on, 1.0)]
        at += on + off
    return Profile(arrivals, tuple(steps))
