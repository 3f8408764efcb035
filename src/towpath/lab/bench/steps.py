"""The largest number of standing queries a system keeps up with: double, then come closer from below."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import mean, quantiles
from typing import Protocol

GROWTH = 1.5  # how much more input a trigger may have in the second half of a measurement than in the first
FEWEST = 4  # triggers that can show a growing backlog
SETTLED = 1.25  # trigger times have settled when they grow by less
QUARTERS = (1.25, 1.5, 1.75)  # steps between the last good number and its double

Say = Callable[[str], None]


@dataclass(frozen=True)
class Trigger:
    """One micro-batch, as Spark's progress reports it."""

    seconds: float
    rows: int
    phases_ms: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0


class BenchSystem(Protocol):
    """Something that runs standing queries."""

    def grow_to(self, n: int) -> None:
        """Runs the first n queries of the workload; n never gets smaller."""

    def triggers(self) -> Sequence[Trigger]:
        """Those that ended since the last call."""


@dataclass(frozen=True)
class Measure:
    """What was seen of a system with n queries."""

    n: int
    triggers: tuple[Trigger, ...]
    longest_s: float  # that 95% of the triggers may take

    @property
    def p95(self) -> float:
        seconds = [t.seconds for t in self.triggers]
        return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else max(seconds, default=0.0)

    @property
    def keeps_up(self) -> bool:
        return bool(self.triggers) and self.p95 <= self.longest_s and not self.falls_behind

    @property
    def falls_behind(self) -> bool:
        """The input of a trigger grows: there is a backlog."""
        if len(self.triggers) < FEWEST:
            return False
        half = len(self.triggers) // 2
        early, late = (mean(t.rows for t in part) for part in (self.triggers[:half], self.triggers[half:]))
        return late > GROWTH * early

    @property
    def phases_ms(self) -> dict[str, float]:
        names = dict.fromkeys(name for t in self.triggers for name in t.phases_ms)
        return {name: mean(t.phases_ms.get(name, 0) for t in self.triggers) for name in names}

    @property
    def state_rows(self) -> int:
        return max((t.state_rows for t in self.triggers), default=0)


@dataclass(frozen=True)
class Pace:
    """How long a step takes, and what keeping up means."""

    longest_trigger_s: float = 2.0
    warm_up_s: float = 45.0  # at most; it ends when trigger times have settled
    measure_s: float = 15.0
    least_triggers: int = 10


@dataclass(frozen=True)
class Limit:
    """The largest number that kept up; `reached` says whether a larger one was seen to fail."""

    n: int
    reached: bool
    best: Measure | None

    @property
    def where_time_goes(self) -> list[tuple[str, float]]:
        """The phases of a trigger at the limit in milliseconds, longest first."""
        phases = self.best.phases_ms if self.best else {}
        return sorted(((n, ms) for n, ms in phases.items() if n != "triggerExecution"), key=lambda phase: -phase[1])

    def __str__(self) -> str:
        return f"{'' if self.reached else '>= '}{self.n:,}"


def find_limit(
    opened: Callable[[], AbstractContextManager[BenchSystem]], first: int, most: int, pace: Pace, say: Say
) -> Limit:
    """Every climb starts afresh: what a system carries over from failing must not count against smaller numbers."""
    good = _climb(opened, _doublings(first, most), pace, say)
    while good is None and first > 1:
        first //= 2
        good = _climb(opened, [first], pace, say)
    if good is None:
        return Limit(0, True, None)
    if good.n >= most:
        return Limit(good.n, False, good)
    closer = sorted({int(good.n * q) for q in QUARTERS} - {good.n})
    finer = _climb(opened, closer, pace, say) or good
    return Limit(finer.n, True, finer)


def _doublings(first: int, most: int) -> list[int]:
    numbers = [min(first, most)]
    while numbers[-1] < most:
        numbers.append(min(numbers[-1] * 2, most))
    return numbers


def _climb(
    opened: Callable[[], AbstractContextManager[BenchSystem]], numbers: Sequence[int], pace: Pace, say: Say
) -> Measure | None:
    """The last good measure; ends at the first number that fails twice."""
    good = None
    if not numbers:
        return None
    with opened() as system:
        for n in numbers:
            say(f"{n:,} queries: starting")
            system.grow_to(n)
            measure = observe(system, n, pace, say)
            if not measure.keeps_up:
                measure = observe(system, n, pace, say)
            if not measure.keeps_up:
                break
            good = measure
    return good


def observe(system: BenchSystem, n: int, pace: Pace, say: Say) -> Measure:
    say(f"{n:,} queries: warming up")
    _warm_up(system, pace)
    say(f"{n:,} queries: measuring")
    found: list[Trigger] = []
    begin = time.monotonic()
    while (elapsed := time.monotonic() - begin) < pace.measure_s or len(found) < pace.least_triggers:
        if elapsed > 2 * pace.measure_s + pace.least_triggers * pace.longest_trigger_s:
            break
        time.sleep(0.5)
        found += system.triggers()
    measure = Measure(n, tuple(found), pace.longest_trigger_s)
    verdict = "keeps up" if measure.keeps_up else "falls behind" if measure.falls_behind else "too slow"
    say(f"{n:,} queries: {verdict}, 95% of triggers within {measure.p95:.2f} s")
    return measure


def _warm_up(system: BenchSystem, pace: Pace) -> None:
    """Until the last triggers are no slower than those before them."""
    system.triggers()
    seen: list[Trigger] = []
    begin = time.monotonic()
    while time.monotonic() - begin < pace.warm_up_s:
        time.sleep(0.5)
        seen += system.triggers()
        recent = [t.seconds for t in seen[-6:]]
        settled = len(recent) == 6 and mean(recent[3:]) <= SETTLED * mean(recent[:3])
        if settled and max(recent[3:]) <= pace.longest_trigger_s:
            return
