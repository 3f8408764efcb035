"""A process of the plan room: lists the planners, or asks one of them, and answers with JSON on its standard output.

python -P -m towpath.console.planning SECONDS list
python -P -m towpath.console.planning SECONDS plan STORE PLANNER

It gives way to the job that runs beside it, and ends when its time is over, whether anybody waits for it or not.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from towpath import planners
from towpath.api.what_if import measured, measured_at, what_if
from towpath.console.planroom import (
    MOST_MOVES,
    MetricChange,
    MetricLook,
    Plan,
    PlannedMove,
    PlannerLook,
    Planners,
    Value,
)
from towpath.errors import Mistake, PlannerError, TowpathError
from towpath.placement.costs import METRICS
from towpath.service.messages import dump_error
from towpath.store.layout import Store

GIVE_WAY = 5  # how much more willingly others are given the processor


def listed() -> Planners:
    metrics = [MetricLook(name, m.unit, m.better, m.meaning) for name, m in METRICS.items()]
    return Planners([_look(name) for name in planners.available()], metrics)


def _look(name: str) -> PlannerLook:
    try:
        planner = planners.get(name)
    except TowpathError as error:  # it lacks packages, or is a user's and cannot be loaded
        return PlannerLook(name, "", None, str(error))
    return PlannerLook(name, planner.help, planner.objective, "")


def plan(store: Store, planner: str) -> Plan:
    problem = measured(store)
    try:
        answer = what_if(problem, planner)
    except TowpathError:
        raise
    except Exception as error:  # a planner may be the user's: whatever it raises is reported
        raise PlannerError(
            f"{planner} failed", [Mistake(planner, f"{type(error).__name__}: {error}", "see to its file")]
        ) from error
    first = [
        PlannedMove(move.fragment, problem.fragment[move.fragment].query, move.source, move.target)
        for move in answer.moves[:MOST_MOVES]
    ]
    metrics = {name: MetricChange(_value(now), _value(then)) for name, (now, then) in answer.metrics.items()}
    measured_us = int(measured_at(store) * 1e6)
    return Plan(
        planner,
        measured_us,
        len(problem.fragments),
        len(answer.moves),
        first,
        metrics,
        answer.too_full,
        answer.seconds,
    )


def _value(value: float) -> Value:
    return float(value) if math.isfinite(value) else "unbounded" if value == math.inf else None


def main(words: list[str]) -> None:
    signal.alarm(math.ceil(float(words[0])) + 1)
    os.nice(GIVE_WAY)
    try:
        answer = asdict(listed() if words[1] == "list" else plan(Store(Path(words[2])), words[3]))
    except TowpathError as error:
        answer = dump_error(error)
    json.dump(answer, sys.stdout, allow_nan=False)


if __name__ == "__main__":
    main(sys.argv[1:])
