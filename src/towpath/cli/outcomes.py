"""What came of planners, as text and as JSON."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.table import Column, Table

from towpath.placement.costs import METRICS
from towpath.placement.costs.load import loads
from towpath.placement.problem import Placement, Problem
from towpath.placement.violation import Violation

MOST_FRAGMENTS, MOST_VIOLATIONS = 6, 20


@dataclass
class Outcome:
    """What came of one planner."""

    planner: str
    placement: Placement | None = None
    failure: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - start


def placement_view(problem: Problem, outcome: Outcome, most_nodes: int | None) -> list[RenderableType]:
    assert outcome.placement is not None
    shown = len(problem.cluster.nodes) if most_nodes is None else most_nodes
    parts: list[RenderableType] = [_nodes(problem, outcome.placement, shown)]
    if len(problem.cluster.nodes) > shown:
        parts.append(f"{len(problem.cluster.nodes) - shown:,} more nodes; --all shows them")
    metrics = Table("metric", Column("value", justify="right"), "unit", "meaning")
    for name, value in outcome.metrics.items():
        metrics.add_row(name, _figure(value), METRICS[name].unit, METRICS[name].meaning)
    refused = [f"refused: {query}: {reason}" for query, reason in outcome.placement.refused.items()]
    times = ", ".join(f"{step} {value:.3f} s" for step, value in outcome.seconds.items())
    parts += [metrics, *refused, *violations(outcome.violations)]
    return [*parts, f"{outcome.planner}: {sizes_text(problem)} ({times})"]


def _nodes(problem: Problem, placement: Placement, most: int) -> Table:
    busy = loads(problem, placement)
    fragments: dict[str, list[str]] = {node.name: [] for node in problem.cluster.nodes}
    for fragment, places in placement.nodes.items():
        for place in places:
            fragments[place].append(fragment)
    table = Table("node", Column("load", justify="right"), Column("number", justify="right"), "fragments")
    for node in problem.cluster.nodes[:most]:
        names = fragments[node.name]
        more = f", ... {len(names) - MOST_FRAGMENTS} more" if len(names) > MOST_FRAGMENTS else ""
        load = f"{busy[node.name]:.3f}" if node.name in busy else "-"
        table.add_row(node.name, load, str(len(names)), ", ".join(names[:MOST_FRAGMENTS]) + more)
    return table


def comparison(problem: Problem, outcomes: Sequence[Outcome]) -> list[RenderableType]:
    """A row for each planner; a table for the metrics of each paper, so that they fit a terminal."""
    tables: list[RenderableType] = []
    for _, names in groupby(METRICS, key=lambda name: name.partition(".")[0]):
        metrics = list(names)
        right = [Column(_heading(name), justify="right") for name in metrics]
        table = Table("planner", *right)
        for outcome in outcomes:
            table.add_row(outcome.planner, *(_figure(outcome.metrics.get(name)) for name in metrics))
        tables.append(table)
    summary = Table("planner", Column("violations", justify="right"), Column("seconds", justify="right"), "failure")
    for outcome in outcomes:
        number = "-" if outcome.failure else f"{len(outcome.violations):,}"
        seconds = f"{outcome.seconds['plan']:.3f}" if "plan" in outcome.seconds else "-"
        summary.add_row(outcome.planner, number, seconds, outcome.failure)
    return [*tables, summary, sizes_text(problem)]


def _heading(metric: str) -> str:
    unit = METRICS[metric].unit
    return f"{metric}\n({unit})" if unit else metric


def _figure(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.4g}"


def violations(violations: Sequence[Violation]) -> Iterator[str]:
    yield from (f"violation: {violation}" for violation in violations[:MOST_VIOLATIONS])
    if len(violations) > MOST_VIOLATIONS:
        yield f"{len(violations) - MOST_VIOLATIONS:,} more violations; --json has them all"


def sizes(problem: Problem) -> dict[str, int]:
    return {
        "nodes": len(problem.cluster.nodes),
        "streams": len(problem.streams),
        "queries": len(problem.queries),
        "fragments": len(problem.fragments),
        "operators": sum(len(f.operators) for f in problem.fragments),
    }


def sizes_text(problem: Problem) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in sizes(problem).items())


def report(problem: Problem, loaded: float, outcomes: Sequence[Outcome], compared: bool) -> dict[str, Any]:
    reports = [_outcome_report(outcome) for outcome in outcomes]
    shared = {"ok": True, "problem": sizes(problem), "load_seconds": loaded}
    return {**shared, "planners": reports} if compared else {**shared, **reports[0]}


def _outcome_report(outcome: Outcome) -> dict[str, Any]:
    placement = outcome.placement
    return {
        "planner": outcome.planner,
        "failure": outcome.failure or None,
        "seconds": outcome.seconds,
        "metrics": {name: value if math.isfinite(value) else None for name, value in outcome.metrics.items()},
        "violations": [dataclasses.asdict(violation) for violation in outcome.violations],
        "placement": {name: list(nodes) for name, nodes in placement.nodes.items()} if placement else None,
        "refused": dict(placement.refused) if placement else None,
    }
