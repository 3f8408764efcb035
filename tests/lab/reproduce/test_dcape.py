"""D-CAPE's experiments at tiny scale: they run, and say the same when they run again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from towpath.lab.reproduce import get, silent
from towpath.lab.reproduce.dcape.connections import statements as about_connections
from towpath.lab.reproduce.dcape.manager import statements as about_the_manager
from towpath.lab.reproduce.dcape.meter import CONFIGURING, Meter
from towpath.lab.reproduce.dcape.plan2 import PLAN, Counted, counted
from towpath.lab.reproduce.dcape.redistribution import (
    MEMORY,
    MOVED,
    OUTPUT_RATE,
    PLANNERS,
    SETTINGS,
    SHUTTLE,
    STATIC,
    RedistributionCase,
    RedistributionSeen,
    measure,
    statements,
)
from towpath.lab.reproduce.dcape.setting import plan
from towpath.lab.reproduce.dcape.throughput import CASES, LARGE
from towpath.lab.reproduce.dcape.throughput import statements as about_throughput
from towpath.placement.flows import operator_rates
from towpath.problems.generate.dcape import dcape


def test_connections_of_plan_2() -> None:
    report = get("dcape-connections")("tiny", [0], silent)
    grouping, round_robin, *_ = report.statements
    assert (grouping.ours, grouping.holds) == (8, True)
    assert (round_robin.ours, round_robin.holds) == (17, True)
    assert [row[2:] for row in report.tables[0].rows[1:3]] == [(17, 12, 3, 8), (23, 18, 3, 8)]
    assert report.explained
    assert report == get("dcape-connections")("tiny", [0], silent)


@pytest.mark.parametrize(
    ("plan2", "random", "verdict"),
    [
        (Counted(17, 8, 12, 3), Counted(17, 8, 12, 3), True),
        (Counted(16, 9, 12, 3), Counted(17, 12, 12, 3), False),
    ],
)
def test_each_claim_about_connections_can_be_false(plan2: Counted, random: Counted, verdict: bool) -> None:
    found = about_connections(plan2, [[random], [random]])
    assert [statement.holds for statement in found] == [verdict] * 4


def test_pieces_and_cuts_agree() -> None:
    found = counted(dcape(PLAN))
    assert found.pieces - 1 + PLAN.streams == found.round_robin


def test_plan_2_is_the_one_of_figures_5_2_and_5_3_in_the_simulations_too() -> None:
    found = counted(plan("2", 3))
    assert (found.round_robin, found.pieces, found.joins_together, found.grouping) == (17, 12, 3, 8)


def test_one_processor_can_do_two_fifths_of_what_plan_2_needs() -> None:
    """The calibration: 1 / 2.5 of the results come out when nothing else binds."""
    case = RedistributionCase("2", 1, "grouping", "static", 60.0, 60.0, 0)
    rates = operator_rates(plan("2", 1))
    wanted = 60 * max(rate.rate_out for rate in rates.values())
    assert measure(case).tuples / wanted == pytest.approx(1 / 2.5, rel=0.1)


def test_throughput_at_tiny_scale() -> None:
    report = get("dcape-fig5")("tiny", [0], silent)
    assert [len(table.rows) for table in report.tables] == [10, 2]
    assert len(report.plots) == 5
    assert report.scaled_down == ("5 simulated seconds instead of 30 minutes.",)


@pytest.mark.parametrize(
    ("dealt", "dealt_large", "grouped", "grouped_large", "verdict"),
    [(120.0, 80.0, 125.0, 170.0, True), (90.0, 80.0, 70.0, 75.0, False)],
)
def test_each_claim_about_throughput_can_be_false(
    dealt: float, dealt_large: float, grouped: float, grouped_large: float, verdict: bool
) -> None:
    found = {}
    for name, _, _ in CASES:
        large = name in LARGE
        found[name, 1, "round_robin"] = found[name, 1, "grouping"] = [100.0, 100.0]
        found[name, 3, "round_robin"] = [dealt_large if large else dealt] * 2
        found[name, 3, "grouping"] = [grouped_large if large else grouped] * 2
    assert [statement.holds for statement in about_throughput(found, (1, 3), 2)] == [verdict] * 6


@pytest.mark.parametrize(("times", "verdict"), [(0.5, True), (2.0, False)])
def test_each_claim_about_the_manager_can_be_false(times: float, verdict: bool) -> None:
    """What the text allows, times so much."""
    seconds, begin = 100.0, int(CONFIGURING)
    traffic = Counter({second: int(times * 400) for second in range(begin, int(seconds))})
    sent = Counter({begin: int(times * 1000)})
    meter = Meter(cpu=times * 0.05 * seconds, memory=int(times * 20e6), received=traffic, sent=sent)
    assert [statement.holds for statement in about_the_manager([meter, meter], seconds)] == [verdict] * 4


def test_a_join_that_moves_to_and_fro_costs_nothing() -> None:
    case = RedistributionCase("2", 2, "grouping", "shuttle", 40.0, 5.0, 0, window=2.0, speed=6.0)
    moved, still = measure(case), measure(replace(case, policy="static"))
    assert moved.moves >= 5
    assert moved.tuples == pytest.approx(still.tuples, rel=0.01)


def seen(tuples: float, moves: int = 0) -> RedistributionSeen:
    return RedistributionSeen(tuples, moves)


@pytest.mark.parametrize(("dealt", "grouped", "verdict"), [(160.0, 107.0, True), (140.0, 103.0, False)])
def test_what_redistribution_brings_can_be_too_little(dealt: float, grouped: float, verdict: bool) -> None:
    found = {
        (name, n, planner, policy): [seen(100.0), seen(100.0)]
        for name, n, _ in SETTINGS
        for planner in PLANNERS
        for policy in (STATIC, OUTPUT_RATE)
    }
    for name, n, _ in SETTINGS:
        more = 3 if verdict else 1
        found[name, n, "round_robin", MEMORY] = [seen(dealt, more), seen(dealt, more)]
        found[name, n, "grouping", MEMORY] = [seen(grouped, 1), seen(grouped, 1)]
    for speed in ("6", "1"):
        found[f"{MOVED}{speed}", 2, "grouping", STATIC] = [seen(100.0), seen(100.0)]
        found[f"{MOVED}{speed}", 2, "grouping", SHUTTLE] = [seen(100.0 if verdict else 90.0, 9)] * 2
    even, overloaded, *of_policies = statements(found)
    assert [even.holds, overloaded.holds] == [verdict] * 2
    assert [s.holds for s in of_policies] == [None] * 3 + [verdict] * 3
    assert all("not testable" in s.claim for s in of_policies[:3])  # nothing ever moved


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
