from __future__ import annotations

from dataclasses import replace

import pytest

from figures import fig1, placed, twins
from towpath.placement.costs.hummer import HummerWeights, duplication, load_differences, migration, objective, transfer

APART, TOGETHER, SWAPPED = placed("upper:n1 lower:n2"), placed("upper:n2 lower:n2"), placed("upper:n2 lower:n1")


def test_load_is_compared_with_the_least_loaded_node() -> None:
    # s1 and s2 are 1 kB/s each.
    assert load_differences(fig1(), APART) == 0.0
    assert load_differences(fig1(), TOGETHER) == 2.0
    assert load_differences(fig1(), APART, overhead={"lower": 3.0}) == 2.0
    assert load_differences(fig1(4), TOGETHER) == 2.0


def test_transfer_between_dependent_inputs() -> None:
    assert transfer(fig1(), APART) == 1.0
    assert transfer(fig1(), TOGETHER) == 0.0


def test_duplication_of_buffers() -> None:
    assert duplication(twins(), placed("a:n1 b:n1")) == 0.0
    assert duplication(twins(), placed("a:n1 b:n2")) == 1.0


def test_migration_of_buffers() -> None:
    running = replace(fig1(), current=APART)
    assert migration(fig1(), TOGETHER) == 0.0
    assert migration(running, APART) == 0.0
    assert migration(running, SWAPPED) == 500.0
    # s1 is buffered on n2 already, so nothing travels with a.
    assert migration(replace(twins(), current=placed("a:n1 b:n2")), placed("a:n2 b:n2")) == 0.0


def test_the_objective_weighs_the_four() -> None:
    running = replace(fig1(), current=APART)
    assert objective(running, SWAPPED) == pytest.approx(0.0 + 1.0 + 0.0 + 500.0)
    assert objective(running, TOGETHER, HummerWeights(10.0, 1.0, 1.0, 0.0)) == pytest.approx(20.0)
