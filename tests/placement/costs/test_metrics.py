from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from towpath.lab.testing.problems import problems, random_placement
from towpath.placement.costs import METRICS
from towpath.placement.problem import Problem


@pytest.mark.parametrize("name", METRICS)
@given(problem=problems())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_metric_is_a_number_for_every_placement(name: str, problem: Problem) -> None:
    value = METRICS[name].value(problem, random_placement(Random(0), problem))
    assert isinstance(value, float)
    assert value >= 0 or name == "sqpr.objective"
