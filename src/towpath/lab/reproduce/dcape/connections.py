"""dcape-connections: how many network connections the two distribution patterns make of plan 2 (Figures 5.2, 5.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from towpath.lab.reproduce.dcape.plan2 import (
    GROUPING,
    JOINS_TOGETHER,
    PIECES,
    PLAN,
    ROUND_ROBIN,
    Counted,
    bare,
    counted,
    level_by_level,
    plan_2,
    random_tree,
)
from towpath.lab.reproduce.report import Bars, ExperimentReport, Progress, Scale, Series, Statement, Table
from towpath.problems.generate.dcape import dcape

DRAWN: Mapping[Scale, int] = {"tiny": 20, "default": 1_000, "full": 10_000}  # plans per seed
NEAR_8 = (7.5, 8.5)  # means that count as Figure 5.3's 8
TWICE = 1.5  # a mean ratio above it counts as Figures 5.2 and 5.3's 17 / 8


def connections(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Network connections of plan 2: round robin 17, grouping 8."""
    tree, looked = plan_2()
    ours = counted(level_by_level(bare(tree, dcape(PLAN).cluster)))
    balanced = dcape(PLAN)
    drawn = []
    for n, seed in enumerate(seeds, start=1):
        drawn.append(_drawn(seed, DRAWN[scale]))
        progress(f"{DRAWN[scale]:,} random plans, seed {seed}", n / len(seeds))
    return ExperimentReport(
        statements=statements(ours, drawn),
        tables=(_table(ours, counted(balanced), counted(level_by_level(balanced)), drawn),),
        plots=(_histogram(drawn[0]),),
        assumed=(
            "There are three processors: 12 pieces are joined by 11 connections, which with 6 streams makes 17, and "
            "8 - 6 leaves 2 for grouping, so 3 pieces; connections to the user are then not counted.",
            "The plan itself is only described: 20 operators, 5 joins, depth 9, 6 streams. Plan 2 is the first random "
            f"plan like that with the connections, the pieces and the joins of Figures 5.2 and 5.3: {looked} were "
            "looked at. So that it has them says only that such plans exist.",
            "Operators are dealt in the order in which a plan lists them: inputs first, or level by level. Plan 2 is "
            "dealt level by level: of 6,027 plans looked at before, none gave all four inputs first and 36 so.",
        ),
        explained=(
            "Round robin's number depends on the plan and on the order in which its operators are listed, and the "
            "thesis shows neither: see the table. Most random plans on which round robin is as in Figure 5.2 are less "
            "balanced than plan 2, and grouping then cuts once more.",
        ),
    )


# --- plans ------------------------------------------------------------------------------------------------------------


def _drawn(seed: int, number: int) -> list[Counted]:
    """Random plans that fit the description of plan 2; half of them listed level by level."""
    rng = np.random.default_rng(seed)
    cluster = dcape(PLAN).cluster
    found: list[Counted] = []
    while len(found) < number:
        tree = random_tree(rng)
        if tree.depth() == PLAN.depth:
            problem = bare(tree, cluster)
            found.append(counted(level_by_level(problem) if len(found) % 2 else problem))
    return found


# --- the report -------------------------------------------------------------------------------------------------------


def statements(ours: Counted, drawn: Sequence[Sequence[Counted]]) -> tuple[Statement, ...]:
    alike = [[c.grouping for c in plans if c.as_drawn] for plans in drawn]
    ratios = [fmean(c.round_robin / c.grouping for c in plans) for plans in drawn]
    found = [fmean(numbers) for numbers in alike if numbers]
    statements = [
        Statement.exact(
            "Grouping: connections of plan 2, which was searched for so", "8", ours.grouping, lambda n: n == GROUPING
        ),
        Statement.exact(
            "Round robin: connections of plan 2, which was searched for so",
            "17",
            ours.round_robin,
            lambda n: n == ROUND_ROBIN,
        ),
        Statement.over(
            "Round robin makes more connections than grouping, how many times as many on random plans",
            "2.1",
            ratios,
            lambda ratio: ratio > TWICE,
        ),
    ]
    if found:
        claim = "Grouping: connections of random plans on which round robin is as in Figure 5.2 (7.5 to 8.5 counts)"
        statements.insert(2, Statement.over(claim, "8", found, lambda n: NEAR_8[0] <= n <= NEAR_8[1]))
    return tuple(statements)


def _table(ours: Counted, balanced: Counted, by_level: Counted, drawn: Sequence[Sequence[Counted]]) -> Table:
    every = [c for plans in drawn for c in plans]
    alike = [c for c in every if c.as_drawn]

    def mean(name: str, plans: Sequence[Counted]) -> float | str:
        return fmean(getattr(c, name) for c in plans) if plans else "-"

    def row(about: str, plans: Sequence[Counted]) -> tuple[str | float, ...]:
        columns = ("round_robin", "pieces", "joins_together", "grouping")
        return (about, len(plans), *(mean(name, plans) for name in columns))

    return Table(
        "Connections over three processors (means)",
        ("plans", "number", "round robin", "its pieces", "its joins on one processor", "grouping"),
        (
            ("thesis", 1, ROUND_ROBIN, PIECES, JOINS_TOGETHER, GROUPING),
            row("plan 2", [ours]),
            row("balanced, inputs first", [balanced]),
            row("balanced, level by level", [by_level]),
            row("random", every),
            row("random, round robin as in Figure 5.2", alike),
        ),
    )


def _histogram(plans: Sequence[Counted]) -> Bars:
    most = int(max(c.round_robin for c in plans))
    groups = range(6, most + 1)
    names = ("round_robin", "grouping")
    counts = {name: Counter(getattr(c, name) for c in plans) for name in names}
    series = tuple(Series(name.replace("_", " "), tuple(counts[name][n] for n in groups)) for name in names)
    return Bars("Connections of random plans like plan 2", "plans", tuple(map(str, groups)), series)
