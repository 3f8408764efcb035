"""The best of all placements, by one metric: for small problems, and to measure other planners by.

It tries every node for every fragment, |N|^|F| placements, and keeps those that check() accepts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from math import inf, perm, prod

from towpath.config.settings import meant
from towpath.errors import Mistake, PlannerError
from towpath.placement.check import check
from towpath.placement.costs import METRICS, Metric
from towpath.placement.problem import Fragment, Placement, Problem

RESPECTS = {"structure", "resources"}


@dataclass(frozen=True)
class Options:
    metric: str = "zhou.pr_max"
    limit: int = 100_000  # placements to try


def plan(problem: Problem, options: Options) -> Placement:
    metric = _metric(options.metric)
    _refuse_if_large(problem, options.limit)
    best, lowest = None, inf
    for placement in _placements(problem):
        loss = metric.loss(problem, placement)
        if (best is None or loss < lowest) and not check(problem, placement):
            best, lowest = placement, loss
    if best is None:
        mistake = Mistake("", "every placement fills a node or a link beyond what it has", "give the nodes more")
        raise PlannerError("the planner brute_force finds no placement", [mistake])
    return best


def _metric(name: str) -> Metric:
    if name not in METRICS:
        mistake = Mistake("metric", f"{name} is not a known metric", meant(name, METRICS))
        raise PlannerError("options of the planner brute_force", [mistake])
    return METRICS[name]


def _refuse_if_large(problem: Problem, limit: int) -> None:
    free = [f for f in problem.fragments if f.name not in problem.pinned]
    count = prod(perm(len(problem.cluster.nodes), problem.query[f.query].copies) for f in free)
    if count > limit:
        found = f"{len(free)} fragments on {len(problem.cluster.nodes)} nodes have {count:.2g} placements"
        mistake = Mistake("limit", f"{found}, above {limit:,}", "choose another planner, or a higher limit")
        raise PlannerError("the planner brute_force is for small problems", [mistake])


def _placements(problem: Problem) -> Iterator[Placement]:
    names = [f.name for f in problem.fragments]
    for places in product(*(list(_places(problem, f)) for f in problem.fragments)):
        yield Placement(dict(zip(names, places, strict=True)))


def _places(problem: Problem, fragment: Fragment) -> Iterator[tuple[str, ...]]:
    if fragment.name in problem.pinned:
        yield (problem.pinned[fragment.name],)
    else:
        # The first copy is the one that others read, so the order counts.
        yield from permutations((n.name for n in problem.cluster.nodes), problem.query[fragment.query].copies)
