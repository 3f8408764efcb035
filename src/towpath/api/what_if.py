"""What a planner would do with a job as its control loop has measured it. Nothing is moved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from towpath import planners
from towpath.errors import NothingMeasured
from towpath.placement.check import check
from towpath.placement.costs import METRICS
from towpath.placement.problem import Placement, Problem
from towpath.problems import load
from towpath.runtime.actors import Move, moves_between
from towpath.store.layout import Store


@dataclass(frozen=True)
class WhatIf:
    planner: str
    placement: Placement
    moves: list[Move]
    metrics: Mapping[str, tuple[float, float]]  # of the placement of now, and of the planner's
    too_full: list[str]  # nodes and links that it would fill beyond what they have
    seconds: float  # that the planner took


def measured_at(store: Store) -> float:
    """When, by the wall clock. Raises NothingMeasured."""
    try:
        return store.situation.stat().st_mtime
    except FileNotFoundError:
        hint = (
            "give the job file a section control: {policy: static} and let it run for a minute; `towpath docs control`"
        )
        raise NothingMeasured(f"{store.root.name}: nothing was measured yet\n    -> {hint}") from None


def measured(store: Store) -> Problem:
    """The fragments of a job with what they cost, as it was measured last. Raises NothingMeasured."""
    measured_at(store)
    return load(store.situation)


def what_if(problem: Problem, planner: str, options: Any = None) -> WhatIf:
    """Raises PlannerError and MissingPackageError."""
    assert problem.current is not None, "a situation knows where everything is"
    begun = time.perf_counter()
    placement = planners.run(planner, problem, options)
    seconds = time.perf_counter() - begun
    now, then = problem.current, placement
    values = {name: (metric.value(problem, now), metric.value(problem, then)) for name, metric in METRICS.items()}
    moves = moves_between(now, then, f"{planner} places it there")
    return WhatIf(planner, placement, moves, values, [str(v) for v in check(problem, then)], seconds)
