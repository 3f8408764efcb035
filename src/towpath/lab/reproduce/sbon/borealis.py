"""Section 4.3: how good the node is that relaxation chooses, among all that there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from towpath import planners
from towpath.lab.reproduce.report import Bars, ExperimentReport, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.placement.costs.sbon import network_usage
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.geography import ASIA, CITIES, EUROPE, geography

HOSTS = 19
PRODUCERS, CONSUMER = ("Austin", "Boston"), "Davis"  # utexas3, harvard1 and ucdavis1
SELECTIVITY = 0.12
DRAWS: dict[Scale, int] = {"tiny": 3, "default": 100, "full": 300}
BEST_QUARTER = 5  # of 19


@dataclass(frozen=True)
class BorealisCase:
    seed: int
    draws: int


@dataclass(frozen=True)
class Draw:
    usage: tuple[float, ...]  # with the operator on each of the hosts
    chosen: int

    @property
    def rank(self) -> int:
        return self.rank_of(self.chosen)

    def rank_of(self, host: int) -> int:
        return 1 + sum(used < self.usage[host] for used in self.usage)


def borealis(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """The rank by network usage of relaxation's node among all 19 hosts (SBON, section 4.3)."""
    seen = run_all(measure, [BorealisCase(seed, DRAWS[scale]) for seed in seeds], progress)
    return ExperimentReport(
        statements=_statements(seen),
        tables=(_table(seen), _endpoints(seen)),
        plots=(_ranks(seen), _one(seen[0][0])),
        scaled_down=("the choice alone: nothing runs, where the paper has Borealis run all 19 queries",),
        assumed=(*ASSUMED, f"a seed stands for {DRAWS[scale]} draws of hosts and latencies"),
        explained=EXPLAINED,
    )


ASSUMED = (
    "of the 19 hosts the paper names three: two producers in Austin and Boston and the consumer in Davis. The other 16 "
    "are in random American cities of the generator's table, and latencies are those of its topology `geography`",
    "network usage is calculated from the true latencies, the choice is made from coordinates",
    "hosts are idle: the paper says nothing of their load",
)
EXPLAINED = (
    "two producers of equal rate and a consumer that gets little: on the way from one producer to the other, network "
    "usage is least at the end that is nearer to the consumer, which is a host itself (Austin; see the table). "
    "Relaxation minimises squares and goes to the middle, as the paper says. How good hosts in the middle are depends "
    "on which there are.",
)


def measure(case: BorealisCase) -> list[Draw]:
    return [_draw([case.seed, number]) for number in range(case.draws)]


def _draw(seed: list[int]) -> Draw:
    rng = np.random.default_rng(seed)
    american = [city for city, (region, _, _) in CITIES.items() if region not in (EUROPE, ASIA)]
    others = [american[n] for n in rng.integers(len(american), size=HOSTS - 3)]
    problem = _problem([*PRODUCERS, CONSUMER, *others], int(rng.integers(2**31)))
    nodes = [node.name for node in problem.cluster.nodes]
    placed = planners.run("relaxation", problem, planners.options("relaxation", {"seed": str(rng.integers(2**31))}))
    usage = [network_usage(problem, Placement.single({"aggregate": node})) for node in nodes]
    return Draw(tuple(usage), nodes.index(placed.nodes["aggregate"][0]))


def _problem(cities: Sequence[str], seed: int) -> Problem:
    """Nodes n1 and n2 are the producers, n3 is the consumer."""
    streams = tuple(PlacementStream(f"p{n}", f"n{n}", 10.0) for n in (1, 2))
    aggregate = Operator("aggregate.o", ("p1", "p2"), "aggregate", selectivity=SELECTIVITY)
    return Problem(
        geography(seed=seed, cities=cities),
        streams,
        (Fragment("aggregate", "q", (aggregate,)),),
        (PlacementQuery("q", ("aggregate",), "n3"),),
    )


Seen = Sequence[Sequence[Draw]]  # by seed


def _statements(seen: Seen) -> tuple[Statement, ...]:
    return (
        Statement.over(
            "the rank of the node chosen, of 19",
            f"one of the lowest network usages; read as {BEST_QUARTER} at most",
            [fmean(draw.rank for draw in draws) for draws in seen],
            lambda mean: mean <= BEST_QUARTER,
        ),
        Statement.over(
            f"draws in which it is among the best {BEST_QUARTER}, per cent",
            "one of the lowest network usages; read as 75 at least",
            [100 * fmean(draw.rank <= BEST_QUARTER for draw in draws) for draws in seen],
            lambda mean: mean >= 75,
        ),
        Statement.over(
            "network usage above that of the best host, per cent",
            "the paper's Table 1 has 15 in simulation; read as 20 at most",
            [fmean(_above(draw) for draw in draws) for draws in seen],
            lambda mean: mean <= 20,
        ),
        Statement.over(
            "draws in which the node chosen is none of the query's endpoints, per cent",
            "favours nodes farther from the endpoints; read as above 50",
            [100 * fmean(draw.chosen > 2 for draw in draws) for draws in seen],
            lambda mean: mean > 50,
        ),
    )


def _above(draw: Draw) -> float:
    return 100 * (draw.usage[draw.chosen] / min(draw.usage) - 1)


def _table(seen: Seen) -> Table:
    draws = [draw for of_seed in seen for draw in of_seed]
    rows = tuple(
        (rank, sum(draw.rank == rank for draw in draws), 100 * sum(draw.rank <= rank for draw in draws) / len(draws))
        for rank in range(1, HOSTS + 1)
    )
    return Table("Ranks of the node chosen, all seeds", ("rank", "draws", "up to it, per cent"), rows)


def _endpoints(seen: Seen) -> Table:
    draws = [draw for of_seed in seen for draw in of_seed]
    rows = tuple(
        (city, fmean(draw.rank_of(host) for draw in draws), fmean(draw.usage[host] / min(draw.usage) for draw in draws))
        for host, city in enumerate((*PRODUCERS, CONSUMER))
    )
    columns = ("endpoint", "mean rank", "usage over that of the best host")
    return Table("If the operator were at an endpoint of the query", columns, rows)


def _ranks(seen: Seen) -> Bars:
    draws = [draw for of_seed in seen for draw in of_seed]
    counts = tuple(100 * sum(draw.rank == n for draw in draws) / len(draws) for n in range(1, HOSTS + 1))
    return Bars(
        "Rank of the node chosen", "per cent of draws", tuple(map(str, range(1, HOSTS + 1))), (Series("here", counts),)
    )


def _one(draw: Draw) -> Bars:
    """Figure 14, for one draw."""
    order = sorted(range(HOSTS), key=lambda n: draw.usage[n])
    names = tuple(f"n{n + 1}{' (chosen)' if n == draw.chosen else ''}" for n in order)
    usage = Series("network usage", tuple(draw.usage[n] for n in order))
    return Bars("The operator on each of 19 hosts, one draw", "bytes in transit", names, (usage,))
