"""`towpath what-if`: what would a planner do with a job as it runs now?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType
from rich.table import Column, Table

from towpath.cli.finding import Found, finds_job
from towpath.cli.output import MESSAGES, json_option, load_problem, print_data, print_json, working
from towpath.extras import require
from towpath.store.layout import Store

if TYPE_CHECKING:
    from towpath.api.what_if import WhatIf
    from towpath.placement.problem import Placement, Problem

SHOWN_MOVES = 10


@click.command("what-if", epilog="Example: towpath what-if job.yaml --planner grouping")
@finds_job
@click.option("--planner", metavar="NAME", required=True, help="Who would place the fragments.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="An option of the planner.")
@click.option("--simulate", "seconds", type=click.FloatRange(min=0, min_open=True), help="Simulate both for so long.")
@json_option
def command(found: Found, planner: str, settings: tuple[str, ...], seconds: float | None, as_json: bool) -> None:
    """Say what a planner would move in a job, and what that would change. Nothing is moved.

    The job needs a control section (`towpath docs control`): what it measures is what the planner is given, also after
    the job was stopped.
    """
    if seconds is not None:
        require("lab", "--simulate")
    from towpath import planners
    from towpath.api.what_if import what_if

    planners.get(planner)
    options = planners.options(planner, _settings(settings))
    problem = _measured(found.folder())
    assert problem.current is not None, "a situation knows where everything is"
    with working(f"planning with {planner}"):
        answer = what_if(problem, planner, options)
    simulated = {} if seconds is None else _simulated(problem, (problem.current, answer.placement), seconds)
    if as_json:
        print_json(
            {
                "planner": planner,
                "fragments": len(problem.fragments),
                "moves": [asdict(move) for move in answer.moves],
                "metrics": {name: {"now": now, "then": then} for name, (now, then) in answer.metrics.items()},
                "simulated": simulated,
            }
        )
    else:
        print_data(*_views(problem, answer, simulated))


def _settings(settings: Sequence[str]) -> dict[str, str]:
    for text in settings:
        if "=" not in text:
            raise click.UsageError(f"--set expects KEY=VALUE, got {text!r}")
    return {key.strip(): value.strip() for key, _, value in (text.partition("=") for text in settings)}


def _measured(root: Path) -> Problem:
    from towpath.api.what_if import measured_at

    path = Store(root).situation
    MESSAGES.print(f"measured {time.time() - measured_at(Store(root)):.0f} s ago ({path})", soft_wrap=True)
    return load_problem(path, None)


def _simulated(
    problem: Problem, placements: tuple[Placement, Placement], seconds: float
) -> dict[str, dict[str, float | None]]:
    from towpath.cli.simulated import summary
    from towpath.lab.sim import simulate

    found = []
    for name, placement in zip(("now", "then"), placements, strict=True):
        with working(f"simulating {seconds:g} s of the placement of {name}; compiling takes half a minute once"):
            found.append(summary(simulate(problem, placement, seconds)))
    names = ("results_per_second", "pr_max", "load_mean", "load_stdev")
    return {name: {"now": found[0][name], "then": found[1][name]} for name in names}


def _views(problem: Problem, answer: WhatIf, simulated: Mapping[str, Mapping[str, Any]]) -> list[RenderableType]:
    from towpath.placement.costs import METRICS

    moves = answer.moves
    table = Table("metric", Column("now", justify="right"), Column("then", justify="right"), "meaning")
    for name, values in answer.metrics.items():
        table.add_row(name, *(f"{value:.4g}" for value in values), METRICS[name].meaning)
    for name, both in simulated.items():
        figures = ("-" if value is None else f"{value:.4g}" for value in both.values())
        table.add_row(f"simulated {name.replace('_', ' ')}", *figures, "")
    shown = [f"{m.fragment} ({problem.fragment[m.fragment].query}): {m.source} -> {m.target}" for m in moves]
    more = [f"... {len(moves) - SHOWN_MOVES:,} more; --json has all"] if len(moves) > SHOWN_MOVES else []
    said = f"{len(moves):,} of {len(problem.fragments):,} fragments would move"
    return [table, *shown[:SHOWN_MOVES], *more, said]
