"""What holds for every planner that is found, those of a user's folder (TOWPATH_PLANNERS) included."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from towpath import planners
from towpath.errors import PlannerError
from towpath.lab.testing.problems import SMALL, TINY, ProblemSize, problems, random_problem
from towpath.placement.check import check
from towpath.placement.costs import METRICS
from towpath.placement.problem import Placement, Problem

ROUNDING = 1e-9
# brute_force tries every placement; sqpr and soda solve programs.
SIZES = {"brute_force": ProblemSize(nodes=2, streams=2, queries=1, fragments=2), "sqpr": TINY, "soda": TINY}
REFUSES = {"optimal"}  # problems that it cannot solve exactly
QUICK = {"hummer": {"evaluations": "300"}, "relaxation": {"rounds": "30"}}  # a rule is kept however short the search


@pytest.mark.parametrize("name", planners.available())
def test_500_random_problems_are_answered_without_breaking_a_rule(name: str) -> None:
    answered = 0
    for seed in range(500):
        problem = random_problem(Random(seed), SIZES.get(name, SMALL))
        answered += answer(name, problem) is not None
    assert answered == 500 or (name in REFUSES and answered > 10)


def answer(name: str, problem: Problem) -> Placement | None:
    """What a planner answers; raises with what check() finds. None: it refuses the problem in words."""
    try:
        return planners.run(name, problem, planners.options(name, QUICK.get(name, {})))
    except PlannerError as error:
        if name not in REFUSES or "invalid placement" in str(error):
            raise
        return None


@pytest.mark.parametrize("name", planners.available())
def test_a_planner_describes_itself(name: str) -> None:
    planner = planners.get(name)
    assert planner.help
    assert planner.objective is None or planner.objective in METRICS
    assert planners.options(name, {}) == planner.options()


@pytest.mark.parametrize("metric", METRICS)
@given(problem=problems(TINY))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_planner_beats_brute_force(metric: str, problem: Problem) -> None:
    least = _least(problem, metric)
    for name in planners.available():
        if name == "brute_force":
            continue
        placement = answer(name, problem)
        # What does not fit may well look better, and so may one that refuses a query: brute_force places all.
        if placement is not None and not placement.refused and not check(problem, placement):
            assert least is not None, f"{name} fits where brute_force finds that nothing does"
            loss = METRICS[metric].loss(problem, placement)
            assert loss >= least - ROUNDING * max(abs(least), 1.0), name


def _least(problem: Problem, metric: str) -> float | None:
    """The best that brute_force finds by the metric; None if nothing fits."""
    try:
        best = planners.run("brute_force", problem, planners.options("brute_force", {"metric": metric}))
    except PlannerError as error:
        if "finds no placement" not in str(error):
            raise
        return None
    return METRICS[metric].loss(problem, best)


PRINT_PLACEMENTS = """
from random import Random
from towpath import planners
from towpath.lab.testing.problems import TINY, random_problem
for name in sorted({*planners.available()} - {"optimal"}):
    for seed in range(3):
        print(planners.run(name, random_problem(Random(seed), TINY)))
"""


def test_the_same_answer_in_every_process() -> None:
    def printed(hash_seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", PRINT_PLACEMENTS], env=environment, check=True, capture_output=True
        ).stdout

    assert printed("1") == printed("2") != b""
