"""Section 4.2.2: what it saves that queries share an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from towpath import planners
from towpath.lab.reproduce.report import Bars, ExperimentReport, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.placement.cluster import Cluster
from towpath.placement.costs.sbon import network_usage
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.geography import EUROPE, WEST, Geography, geography

RATE, WIDTH = 1.0, 1_000.0  # a packet a second
SELECTIVITY = 0.25
QUERIES = (4, 8, 16)
PAPER_QUERIES = 4


@dataclass(frozen=True)
class ReuseSize:
    nodes: int
    draws: int


SIZES: dict[Scale, ReuseSize] = {"tiny": ReuseSize(40, 2), "default": ReuseSize(130, 20), "full": ReuseSize(130, 100)}


@dataclass(frozen=True)
class ReuseCase:
    size: ReuseSize
    seed: int


@dataclass(frozen=True)
class Shared:
    apart: float  # network usage without reuse
    together: float  # with it
    three: float  # if the first three queries share an operator, and only they
    largest: int  # how many queries share one operator


ReuseSeen = dict[int, list[Shared]]  # by the number of queries


def reuse(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Four consumers at America's west coast share an aggregate of two producers in Europe (SBON, section 4.2.2)."""
    size = SIZES[scale]
    seen = run_all(measure, [ReuseCase(size, seed) for seed in seeds], progress)
    return ExperimentReport(
        statements=_statements(seen),
        tables=(_table(seen),),
        plots=(_bars(seen),),
        scaled_down=("the placement alone: nothing runs, where the paper measured on PlanetLab",),
        assumed=(*ASSUMED, f"a seed stands for {size.draws} draws of nodes and latencies"),
        explained=EXPLAINED,
    )


ASSUMED = (
    "PlanetLab's latencies are not in the paper: those of the topology `geography` are used, with producers on random "
    "nodes in Europe and consumers on random ones at America's west coast",
    '"four pairs of queries" are read as four queries, each with and without reuse',
    "producers and the aggregate are as in section 4.2: a packet a second, of which a quarter leaves the aggregate",
    "queries share an aggregate if relaxation, with reuse, has put it on one node for them. The shared aggregate and "
    "its multicast operator are then placed anew, as one graph of springs with all consumers",
)
EXPLAINED = (
    "all four queries share here: their consumers are close to each other, the aggregate is drawn to the producers, "
    "and an equal one is always among the ten nodes nearest to its place. In the paper one of four was left out.",
    "without reuse every aggregate gets copies of both streams of its own, and every result crosses the ocean by "
    "itself. The multicast operator is drawn towards the consumers, three quarters of the way and more. By the same "
    "sums, 21% with three queries means a multicast operator before half of the way: what the paper's nodes and their "
    "load made of it is not in the text.",
)


def measure(case: ReuseCase) -> ReuseSeen:
    found: ReuseSeen = {}
    for queries in QUERIES:
        found[queries] = [_draw(case.size, [case.seed, number], queries) for number in range(case.size.draws)]
    return found


def _draw(size: ReuseSize, seed: list[int], queries: int) -> Shared:
    rng = np.random.default_rng(seed)
    cluster = geography(Geography(nodes=size.nodes), int(rng.integers(2**31)))
    producers = _some(rng, _in(cluster, EUROPE), 2)
    consumers = _some(rng, _in(cluster, WEST), queries)
    options = planners.options("relaxation", {"seed": str(rng.integers(2**31))})
    own = separate(cluster, producers, consumers, signature=None)
    apart = network_usage(own, planners.run("relaxation", own, options))
    placed = planners.run("relaxation", separate(cluster, producers, consumers, signature="aggregate"), options)
    groups = _groups(placed, consumers)
    together, three = (
        network_usage(joint, planners.run("relaxation", joint, options))
        for joint in (shared(cluster, producers, g) for g in (groups, [consumers[:3], *([c] for c in consumers[3:])]))
    )
    return Shared(apart, together, three, max(map(len, groups)))


def _in(cluster: Cluster, region: str) -> list[str]:
    return [node.name for node in cluster.nodes if node.properties["region"] == region]


def _some(rng: np.random.Generator, nodes: list[str], number: int) -> list[str]:
    """Different ones as long as there are enough."""
    return [nodes[n] for n in rng.choice(len(nodes), size=number, replace=number > len(nodes))]


def separate(cluster: Cluster, producers: Sequence[str], consumers: Sequence[str], signature: str | None) -> Problem:
    """Every query has an aggregate of its own, and streams, so that without reuse nothing is sent once for several.

    With a signature all read the same streams, and aggregates on one node are one.
    """
    streams: list[PlacementStream] = []
    fragments: list[Fragment] = []
    queries: list[PlacementQuery] = []
    for n, consumer in enumerate(consumers):
        of = "" if signature else f".{n}"
        inputs = tuple(f"p{number}{of}" for number in range(len(producers)))
        if n == 0 or not signature:
            streams += [PlacementStream(name, at, RATE, WIDTH) for name, at in zip(inputs, producers, strict=True)]
        fragments.append(Fragment(f"a{n}", f"q{n}", (_aggregate(f"a{n}.o", inputs, signature),)))
        queries.append(PlacementQuery(f"q{n}", (f"a{n}",), consumer))
    return Problem(cluster, tuple(streams), tuple(fragments), tuple(queries))


def _aggregate(name: str, inputs: tuple[str, ...], signature: str | None = None) -> Operator:
    return Operator(name, inputs, "join", selectivity=SELECTIVITY, tuple_bytes=WIDTH, signature=signature)


def _groups(placed: Placement, consumers: Sequence[str]) -> list[list[str]]:
    """The consumers whose queries share an aggregate."""
    found: dict[str, list[str]] = {}
    for n, consumer in enumerate(consumers):
        found.setdefault(placed.nodes[f"a{n}"][0], []).append(consumer)
    return list(found.values())


def shared(cluster: Cluster, producers: Sequence[str], groups: Sequence[Sequence[str]]) -> Problem:
    """An aggregate for each group; if it has several consumers, a multicast operator hands its results out to them."""
    streams: list[PlacementStream] = []
    fragments: list[Fragment] = []
    queries: list[PlacementQuery] = []
    pinned: dict[str, str] = {}
    for g, consumers in enumerate(groups):
        inputs = tuple(f"p{number}.{g}" for number in range(len(producers)))
        streams += [PlacementStream(name, at, RATE, WIDTH) for name, at in zip(inputs, producers, strict=True)]
        first = f"q{g}.0"
        own = [Fragment(f"a{g}", first, (_aggregate(f"a{g}.o", inputs),))]
        if len(consumers) > 1:
            own.append(Fragment(f"m{g}", first, (Operator(f"m{g}.o", (f"a{g}.o",), "union", tuple_bytes=WIDTH),)))
        received = own[-1].operators[0].name
        for n, consumer in enumerate(consumers):
            query, end = f"q{g}.{n}", f"c{g}.{n}"
            last = Fragment(end, query, (Operator(f"{end}.o", (received,), "project", tuple_bytes=WIDTH),))
            pinned[end] = consumer
            mine = [*(own if n == 0 else []), last]
            fragments += mine
            queries.append(PlacementQuery(query, tuple(f.name for f in mine), consumer))
    return Problem(cluster, tuple(streams), tuple(fragments), tuple(queries), pinned)


Seen = Sequence[ReuseSeen]


def _saved(of_seed: ReuseSeen, queries: int) -> float:
    """Per cent of the network usage without reuse, over all draws in sum."""
    draws = of_seed[queries]
    return 100 * (1 - sum(d.together for d in draws) / sum(d.apart for d in draws))


def _saved_by_three(of_seed: ReuseSeen) -> float:
    draws = of_seed[PAPER_QUERIES]
    return 100 * (1 - sum(d.three for d in draws) / sum(d.apart for d in draws))


def _statements(seen: Seen) -> tuple[Statement, ...]:
    fewest, most = PAPER_QUERIES, max(QUERIES)
    return (
        Statement.over(
            "reuse saves network usage, per cent",
            "21; read as within 5 points",
            [_saved(s, fewest) for s in seen],
            lambda mean: abs(mean - 21) <= 5,
        ),
        Statement.over(
            "queries that share one aggregate, of 4",
            "3; read as 2.5 to 3.5",
            [fmean(d.largest for d in s[fewest]) for s in seen],
            lambda mean: 2.5 <= mean <= 3.5,
        ),
        Statement.over(
            "what reuse would save if three of the four shared an aggregate, as there, per cent",
            "21; read as within 5 points",
            [_saved_by_three(s) for s in seen],
            lambda mean: abs(mean - 21) <= 5,
        ),
        Statement.over(
            f"with {most} queries reuse saves so many points more than with {fewest}",
            "greater with more queries: above 0",
            [_saved(s, most) - _saved(s, fewest) for s in seen],
            lambda mean: mean > 0,
        ),
    )


def _table(seen: Seen) -> Table:
    rows = tuple(
        (
            queries,
            fmean(d.apart for s in seen for d in s[queries]),
            fmean(d.together for s in seen for d in s[queries]),
            fmean(_saved(s, queries) for s in seen),
            stdev(_saved(s, queries) for s in seen) if len(seen) > 1 else 0.0,
            fmean(d.largest for s in seen for d in s[queries]),
        )
        for queries in QUERIES
    )
    columns = ("queries", "usage without, B", "with reuse, B", "saved %", "±", "share one aggregate")
    return Table("Network usage with and without reuse, means over all draws", columns, rows)


def _bars(seen: Seen) -> Bars:
    apart = tuple(fmean(d.apart for s in seen for d in s[queries]) for queries in QUERIES)
    together = tuple(fmean(d.together for s in seen for d in s[queries]) for queries in QUERIES)
    groups = tuple(f"{queries} queries" for queries in QUERIES)
    return Bars("Network usage", "bytes in transit", groups, (Series("without reuse", apart), Series("with", together)))
