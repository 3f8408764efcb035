"""`towpath bench`: what sharing brings over one Structured Streaming query per standing query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.table import Table

from towpath.bench import KIND_NAMES
from towpath.cli.output import MESSAGES, json_option, print_data

if TYPE_CHECKING:  # Spark takes half a second to import, which `towpath --help` need not pay
    from towpath.bench.sharing import Comparison, Report, Tell

COLUMNS = ("plain", "towpath", "single")


def _kinds(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(k.strip() for k in value.split(",") if k.strip()))
    unknown = [k for k in kinds if k not in KIND_NAMES]
    if unknown or not kinds:
        raise click.BadParameter(f"expected some of {', '.join(KIND_NAMES)}, separated by commas, got {value!r}")
    return kinds


@click.group("bench", epilog="Example: towpath bench sharing --kinds alerts")
def command() -> None:
    """Measure towpath against plain Spark on this machine."""


@command.command("sharing", epilog="Example: towpath bench sharing --kinds alerts,joins --json")
@click.option("--kinds", default=",".join(KIND_NAMES), show_default=True, callback=_kinds, help="What to measure.")
@click.option("--seconds", type=click.FloatRange(min=1), help="How long every step is measured.  [default: 15]")
@click.option("--max", "most", type=click.IntRange(min=1), help="The most queries tried.  [default: 200000]")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def sharing(kinds: tuple[str, ...], seconds: float | None, most: int | None, quick: bool, as_json: bool) -> None:
    """Find out how many standing queries plain Spark and towpath keep up with.

    Both read 5,000 rows a second and write their results durably, on 2 cores, with a trigger every second. A number
    counts when 95% of the triggers take 2 seconds at most and no backlog grows. Leave the machine alone meanwhile; a
    full run takes about an hour.
    """
    from towpath.bench.sharing import QUICK, Plan, run

    plan = replace(QUICK if quick else Plan(), kinds=kinds)
    if seconds is not None:
        plan = replace(plan, pace=replace(plan.pace, measure_s=seconds))
    if most is not None:
        plan = replace(plan, most=most)
    with _progress() as tell:
        report = run(plan, tell)
    if as_json:
        click.echo(json.dumps(report.to_json()))
    else:
        print_data(_limits(report), _phases(report), _submitted(report))


@contextmanager
def _progress() -> Iterator[Tell]:
    """A table that fills up on a terminal, a line per step elsewhere."""
    cells: dict[str, dict[str, str]] = {}
    with Live(console=MESSAGES, transient=True, auto_refresh=False) as live:

        def tell(kind: str, column: str, text: str) -> None:
            cells.setdefault(kind, {})[column] = text
            if MESSAGES.is_terminal:
                live.update(_steps(cells), refresh=True)
            else:
                MESSAGES.print(f"{kind}, {column}: {text}")

        yield tell


def _steps(cells: dict[str, dict[str, str]]) -> Table:
    table = Table("", *COLUMNS)
    for kind, texts in cells.items():
        table.add_row(kind, *(texts.get(column, "") for column in COLUMNS))
    return table


def _limits(report: Report) -> Table:
    table = Table("queries that keep up", "plain Spark", "towpath", "ratio", "one query alone, throughput")
    for kind, found in report.comparisons.items():
        alone = f"{report.singles[kind].ratio:.2f} of a query written by hand"
        table.add_row(kind, str(found.plain), str(found.towpath), _ratio(found), alone)
    return table


def _ratio(found: Comparison) -> str:
    return "" if found.ratio is None else f"{found.ratio:,.0f}"


def _phases(report: Report) -> Table:
    table = Table("at the limit", "95% of triggers within", "state rows", "where the time of a trigger goes")
    for kind, found in report.comparisons.items():
        for name, limit in (("plain Spark", found.plain), ("towpath", found.towpath)):
            if limit.best is not None:
                phases = ", ".join(f"{phase} {ms:.0f} ms" for phase, ms in limit.where_time_goes)
                table.add_row(f"{kind}, {name}", f"{limit.best.p95:.2f} s", f"{limit.best.state_rows:,}", phases)
    return table


def _submitted(report: Report) -> str:
    late = report.late
    return (
        f"one more query for {late.running:,} running ones: first result after {late.triggers} triggers "
        f"({late.seconds:.1f} s), {late.carriers_started} carriers started"
    )


@command.command("moves", epilog="Example: towpath bench moves --json")
@click.option("--moves", type=click.IntRange(min=1), help="How many moves.  [default: 100]")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def moves(moves: int | None, quick: bool, as_json: bool) -> None:
    """Move fragments between Spark Connect endpoints under load, and see what those who follow their results notice.

    300 queries of three kinds stand on three local endpoints, 5,000 rows a second flow. Every query is compared with
    DuckDB at the end. In the same run a query written by hand is stopped and started elsewhere from its checkpoint.
    """
    from towpath.bench.moving import QUICK, Plan, run

    plan = QUICK if quick else Plan()
    if moves is not None:
        plan = replace(plan, moves=moves)
    with _progress() as tell:
        report = run(plan, lambda text: tell("moves", "towpath", text))
    found = report.to_json()
    if as_json:
        click.echo(json.dumps(found))
        return
    table = Table("moved", "moves", "added delay, median", "worst", "until the fence, median")
    for kind in KIND_NAMES:
        if isinstance(seen := found.get(kind), dict):
            seconds = (seen["added_delay_median_s"], seen["added_delay_worst_s"], seen["until_fence_median_s"])
            table.add_row(kind, f"{seen['moves']}", *(f"{s:.1f} s" for s in seconds))
    restarts = ", ".join(f"{s:.1f} s" for s in report.restarts)
    print_data(
        table,
        f"{report.queries - len(report.wrong)} of {report.queries} queries equal to DuckDB; a trigger every "
        f"{plan.trigger_ms / 1000:.0f} s",
        f"a query by hand, stopped and started elsewhere from its checkpoint: {restarts} without results",
    )
