"""dcape-connections: how many network connections the two distribution patterns make of plan 2 (Figures 5.2, 5.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from towpath import planners
from towpath.lab.reproduce.report import Bars, ExperimentReport, Progress, Scale, Series, Statement, Table
from towpath.placement.cluster import Cluster
from towpath.placement.costs.dcape import connections as count_connections
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.dcape import PLANS, dcape
from towpath.problems.generate.trees import ChainSegment

PLAN = PLANS["2"].model_copy(update={"processors": 3})
ROUND_ROBIN, GROUPING = 17, 8  # connections, as the thesis counts them
PIECES, JOINS_TOGETHER = 12, 3  # of round robin's distribution
DRAWN: Mapping[Scale, int] = {"tiny": 20, "default": 1_000, "full": 10_000}  # plans per seed


@dataclass(frozen=True)
class Counted:
    round_robin: float
    grouping: float
    pieces: int
    joins_together: int

    @property
    def as_drawn(self) -> bool:
        """Round robin does what Figure 5.2 shows."""
        found = (self.round_robin, self.pieces, self.joins_together)
        return found == (ROUND_ROBIN, PIECES, JOINS_TOGETHER)


def connections(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Network connections of plan 2: round robin 17, grouping 8."""
    plan = dcape(PLAN)
    ours = counted(plan)
    by_level = counted(_level_by_level(plan))
    drawn = []
    for n, seed in enumerate(seeds, start=1):
        drawn.append(_drawn(seed, DRAWN[scale]))
        progress(f"{DRAWN[scale]:,} random plans, seed {seed}", n / len(seeds))
    return ExperimentReport(
        statements=_statements(ours, drawn),
        tables=(_table(ours, by_level, drawn),),
        plots=(_histogram(drawn[0]),),
        assumed=(
            "There are three processors: 12 pieces are joined by 11 connections, which with 6 streams makes 17, and "
            "8 - 6 leaves 2 for grouping, so 3 pieces; connections to the user are then not counted.",
            "The plan itself is only described: 20 operators, 5 joins, depth 9, 6 streams. Ours is the most balanced "
            "one; besides, plans that fit the description are drawn at random.",
            "Operators are dealt in the order in which a plan lists them: inputs first, or level by level.",
        ),
        explained=(
            "Round robin's number depends on the plan and on the order in which its operators are listed, and the "
            "thesis shows neither: see the table. Among random plans some give exactly what Figure 5.2 describes; most "
            "of them are less balanced than ours, and grouping then cuts once more.",
        ),
    )


def counted(problem: Problem) -> Counted:
    dealt, grouped = planners.run("round_robin", problem), planners.run("grouping", problem)
    connected = count_connections(problem, dealt)
    joins = Counter(dealt.nodes[f.name][0] for f in problem.fragments if f.operators[0].kind == "join")
    return Counted(
        connected,
        count_connections(problem, grouped),
        _pieces(problem, dealt),
        max(joins.values()),
    )


def _pieces(problem: Problem, placement: Placement) -> int:
    """Of a tree, one more than there are cuts."""
    cuts = sum(
        placement.nodes[problem.home[name]] != placement.nodes[f.name]
        for f in problem.fragments
        for name in f.operators[0].inputs
        if name in problem.home
    )
    return cuts + 1


# --- plans ------------------------------------------------------------------------------------------------------------


def _level_by_level(problem: Problem) -> Problem:
    """The same plan, its operators listed by their distance to the streams."""
    height: dict[str, int] = {}
    for operator in problem.operators():
        height[operator.name] = 1 + max(height.get(name, 0) for name in operator.inputs)
    listed = sorted(problem.fragments, key=lambda f: height[f.name])
    query = replace(problem.queries[0], fragments=tuple(f.name for f in listed))
    return replace(problem, queries=(query,))


def _drawn(seed: int, number: int) -> list[Counted]:
    """Random plans that fit the description of plan 2; half of them listed level by level."""
    rng = np.random.default_rng(seed)
    cluster = dcape(PLAN).cluster
    found: list[Counted] = []
    while len(found) < number:
        tree = _random_tree(rng)
        if tree.depth() == PLAN.depth:
            problem = _problem(tree, cluster)
            found.append(counted(_level_by_level(problem) if len(found) % 2 else problem))
    return found


def _random_tree(rng: np.random.Generator) -> ChainSegment:
    parts = [ChainSegment() for _ in range(PLAN.streams)]
    while len(parts) > 1:
        left, right = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(ChainSegment((left, right)))
    segments = parts[0].segments()
    for _ in range(PLAN.operators - (PLAN.streams - 1)):
        segments[int(rng.integers(len(segments)))].singles += 1
    return parts[0]


def _problem(tree: ChainSegment, cluster: Cluster) -> Problem:
    streams: list[PlacementStream] = []
    fragments: list[Fragment] = []

    def add(inputs: tuple[str, ...]) -> str:
        operator = Operator(f"o{len(fragments)}", inputs, "join" if len(inputs) > 1 else "filter")
        fragments.append(Fragment(operator.name, "q1", (operator,)))
        return operator.name

    def visit(segment: ChainSegment) -> str:
        if segment.below:
            top = add(tuple(visit(below) for below in segment.below))
        else:
            streams.append(PlacementStream(f"s{len(streams)}", cluster.nodes[-1].name, 1.0))
            top = streams[-1].name
        for _ in range(segment.singles):
            top = add((top,))
        return top

    visit(tree)
    query = PlacementQuery("q1", tuple(f.name for f in fragments))
    return Problem(cluster, tuple(streams), tuple(fragments), (query,))


# --- the report -------------------------------------------------------------------------------------------------------


def _statements(ours: Counted, drawn: Sequence[Sequence[Counted]]) -> tuple[Statement, ...]:
    alike = [[c.grouping for c in plans if c.as_drawn] for plans in drawn]
    ratios = [fmean(c.round_robin / c.grouping for c in plans) for plans in drawn]
    found = [fmean(numbers) for numbers in alike if numbers]
    statements = [
        Statement.exact("Grouping: connections of plan 2", "8", ours.grouping, lambda n: n == GROUPING),
        Statement.exact("Round robin: connections of plan 2", "17", ours.round_robin, lambda n: n == ROUND_ROBIN),
        Statement.over(
            "Round robin makes more connections than grouping, how many times as many on random plans",
            "2.1",
            ratios,
            lambda ratio: ratio > 1.5,
        ),
    ]
    if found:
        claim = "Grouping: connections of random plans on which round robin is as in Figure 5.2 (7.5 to 8.5 counts)"
        statements.insert(2, Statement.over(claim, "8", found, lambda n: 7.5 <= n <= 8.5))
    return tuple(statements)


def _table(ours: Counted, by_level: Counted, drawn: Sequence[Sequence[Counted]]) -> Table:
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
            row("balanced, inputs first", [ours]),
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
