"""D-CAPE's experiments at tiny scale: they run, and say the same when they run again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from towpath.lab.reproduce import get, silent
from towpath.lab.reproduce.dcape.connections import PLAN, counted
from towpath.lab.reproduce.dcape.redistribution import RedistributionCase, measure
from towpath.lab.reproduce.dcape.setting import plan
from towpath.placement.flows import operator_rates
from towpath.problems.generate.dcape import dcape


def test_connections_of_plan_2() -> None:
    report = get("dcape-connections")("tiny", [0], silent)
    grouping, round_robin, *_ = report.statements
    assert (grouping.ours, grouping.holds) == (8, True)
    assert (round_robin.ours, round_robin.holds) == (23, False)
    assert report.explained
    assert report == get("dcape-connections")("tiny", [0], silent)


def test_pieces_and_cuts_agree() -> None:
    found = counted(dcape(PLAN))
    assert found.pieces - 1 + PLAN.streams == found.round_robin


def test_one_processor_lacks_a_fifth_of_what_plan_2_needs() -> None:
    """The calibration: 1 / 1.25 of the results come out when nothing else binds."""
    case = RedistributionCase("2", 1, "grouping", "static", 60.0, 60.0, 0)
    rates = operator_rates(plan("2", 1))
    wanted = 60 * max(rate.rate_out for rate in rates.values())
    assert measure(case).tuples / wanted == pytest.approx(1 / 1.25, rel=0.05)


def test_throughput_at_tiny_scale() -> None:
    report = get("dcape-fig5")("tiny", [0], silent)
    assert [len(table.rows) for table in report.tables] == [10, 2]
    assert len(report.plots) == 5
    assert report.scaled_down == ("5 simulated seconds instead of 30 minutes.",)


def test_a_join_that_moves_to_and_fro_costs_nothing() -> None:
    case = RedistributionCase("2", 2, "grouping", "shuttle", 40.0, 5.0, 0, window=2.0, speed=3.0)
    moved, still = measure(case), measure(replace(case, policy="static"))
    assert moved.moves >= 5
    assert moved.tuples == pytest.approx(still.tuples, rel=0.01)


def test_the_degradation_policy_acts_on_a_backlog() -> None:
    case = RedistributionCase("2", 3, "round_robin", "tuples_in_memory", 60.0, 10.0, 0, window=2.0, speed=0.7)
    assert measure(case).moves > 0
    assert measure(case) == measure(case)


def test_the_manager_takes_little() -> None:
    report = get("dcape-manager")("tiny", [0, 1], silent)
    false = [statement.claim for statement in report.statements if statement.holds is not True]
    assert len(false) == 1 and "all began in one of 4 groups" in false[0]  # a minute is too short for that
    nobody, one, tiers = report.tables[2].rows
    assert nobody[3] == one[3] == tiers[3] > 0  # results
