"""`towpath bench`: what sharing brings over one Structured Streaming query per standing query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from statistics import median
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.table import Table

from towpath.cli.output import MESSAGES, json_option, print_data
from towpath.lab.bench import KIND_NAMES, MIXED_KINDS

if TYPE_CHECKING:  # Spark takes half a second to import, which `towpath --help` need not pay
    from towpath.lab.bench.moving import MovingReport
    from towpath.lab.bench.sharing import Comparison, ReportStep, SharingReport

COLUMNS = ("plain", "towpath", "single")


def _kinds(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    return _some_of(KIND_NAMES, value)


def _some_of(known: tuple[str, ...], value: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(k.strip() for k in value.split(",") if k.strip()))
    unknown = [k for k in kinds if k not in known]
    if unknown or not kinds:
        raise click.BadParameter(f"expected some of {', '.join(known)}, separated by commas, got {value!r}")
    return kinds


def _numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers = [part.strip() for part in value.split(",")]
    if not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise click.BadParameter(f"expected whole numbers above 0, separated by commas, got {value!r}")
    return tuple(map(int, numbers))


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
    from towpath.lab.bench.sharing import QUICK, SharingPlan, run

    plan = replace(QUICK if quick else SharingPlan(), kinds=kinds)
    if seconds is not None:
        plan = replace(plan, pace=replace(plan.pace, measure_s=seconds))
    if most is not None:
        plan = replace(plan, most=most)
    with _progress() as progress:
        report = run(plan, progress)
    if as_json:
        click.echo(json.dumps(report.to_json()))
    else:
        print_data(_limits(report), _phases(report), _submitted(report), str(report.company))


@contextmanager
def _progress() -> Iterator[ReportStep]:
    """A table that fills up on a terminal, a line per step elsewhere."""
    cells: dict[str, dict[str, str]] = {}
    with Live(console=MESSAGES, transient=True, auto_refresh=False) as live:

        def report_step(kind: str, column: str, text: str) -> None:
            cells.setdefault(kind, {})[column] = text
            if MESSAGES.is_terminal:
                live.update(_steps(cells), refresh=True)
            else:
                MESSAGES.print(f"{kind}, {column}: {text}")

        yield report_step


def _steps(cells: dict[str, dict[str, str]]) -> Table:
    table = Table("", *COLUMNS)
    for kind, texts in cells.items():
        table.add_row(kind, *(texts.get(column, "") for column in COLUMNS))
    return table


def _limits(report: SharingReport) -> Table:
    table = Table("queries that keep up", "plain Spark", "towpath", "ratio", "one query alone, throughput")
    for kind, found in report.comparisons.items():
        alone = f"{report.singles[kind].ratio:.2f} of a query written by hand"
        table.add_row(kind, str(found.plain), str(found.towpath), _ratio(found), alone)
    return table


def _ratio(found: Comparison) -> str:
    return "" if found.ratio is None else f"{found.ratio:,.0f}"


def _phases(report: SharingReport) -> Table:
    table = Table("at the limit", "95% of triggers within", "state rows", "where the time of a trigger goes")
    for kind, found in report.comparisons.items():
        for name, limit in (("plain Spark", found.plain), ("towpath", found.towpath)):
            if limit.best is not None:
                phases = ", ".join(f"{phase} {ms:.0f} ms" for phase, ms in limit.where_time_goes)
                table.add_row(f"{kind}, {name}", f"{limit.best.p95:.2f} s", f"{limit.best.state_rows:,}", phases)
    return table


def _submitted(report: SharingReport) -> str:
    late = report.late
    return (
        f"one more query for {late.running:,} running ones: first result after {late.triggers} triggers "
        f"({late.seconds:.1f} s), {late.carriers_started} carriers started"
    )


def _mixed_kinds(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    return _some_of(MIXED_KINDS, value)


@command.command("mixed", epilog="Example: towpath bench mixed --kinds filters,windows --json")
@click.option("--kinds", default=",".join(MIXED_KINDS), show_default=True, callback=_mixed_kinds, help="What to draw.")
@click.option("--carriers", type=click.Choice(["compiled", "universal", "auto"]), default="auto", show_default=True)
@click.option("--max", "most", type=click.IntRange(min=5), help="The most queries tried.  [default: 10000]")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def mixed(kinds: tuple[str, ...], carriers: str, most: int | None, quick: bool, as_json: bool) -> None:
    """Find out how many queries of different shapes plain Spark and towpath keep up with.

    Five queries of each shape, at 5,000 rows a second with durable results, on 2 cores, with a trigger every second. A
    number counts when 95% of the triggers take 2 seconds at most and no backlog grows. Leave the machine alone
    meanwhile; a full run takes about half an hour.
    """
    from towpath.lab.bench.mixed import QUICK, MixedPlan, run, shapes_of
    from towpath.plan import CarrierKinds

    plan = replace(QUICK if quick else MixedPlan(), kinds=kinds, carriers=CarrierKinds(carriers))
    with _progress() as progress:
        report = run(plan if most is None else replace(plan, most=most), progress)
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    table = Table("keeps up", "shapes", "queries")
    for name, limit in (("plain Spark", report.plain), ("towpath", report.towpath)):
        table.add_row(name, f"{shapes_of(limit.n):,}", str(limit))
    started = report.started
    unseen = report.unseen
    print_data(
        table,
        f"{started.carriers} carriers; all had answered {started.seconds:.1f} s after the start of the job",
        f"a query of another shape for {unseen.running:,} running ones: first result after {unseen.triggers} triggers, "
        f"{unseen.carriers_started} carriers started",
        str(report.company),
    )


@command.command("crowd", epilog="Example: towpath bench crowd --shapes 40 --queries 40,400 --json")
@click.option("--kinds", default=",".join(MIXED_KINDS), show_default=True, callback=_mixed_kinds, help="What to draw.")
@click.option("--shapes", type=click.IntRange(min=1), help="How many shapes.  [default: 40]")
@click.option("--queries", callback=_numbers, help="How many queries, one after the other.  [default: 40,400,4000]")
@click.option("--carriers", type=click.Choice(["compiled", "universal", "auto"]), default="auto", show_default=True)
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def crowd(
    kinds: tuple[str, ...],
    shapes: int | None,
    queries: tuple[int, ...] | None,
    carriers: str,
    quick: bool,
    as_json: bool,
) -> None:
    """Measure what more queries cost when there are no more shapes.

    Carriers, the time until all queries answer, triggers and memory, at 5,000 rows a second on 2 cores with a trigger
    every second. Leave the machine alone meanwhile; it takes about five minutes.
    """
    from towpath.lab.bench.crowd import QUICK, CrowdPlan, run
    from towpath.plan import CarrierKinds

    plan = QUICK if quick else replace(CrowdPlan(), kinds=kinds)
    plan = replace(plan, shapes=shapes or plan.shapes, queries=queries or plan.queries, carriers=CarrierKinds(carriers))
    with _progress() as progress:
        report = run(plan, progress)
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    columns = ("queries", "carriers", "all answer after", "triggers, median", "95% within", "keeps up", "memory")
    table = Table(*columns, title=f"{report.shapes} shapes")
    for step in report.crowds:
        seconds = (f"{s:.2f} s" for s in (step.start_s, step.median_s, step.p95_s))
        found = ("yes" if step.keeps_up else "no", f"{step.memory_gb:.1f} GB")
        table.add_row(f"{step.queries:,}", str(step.carriers), *seconds, *found)
    print_data(table, str(report.company))


@command.command("frontier", epilog="Example: towpath bench frontier --json")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def frontier(quick: bool, as_json: bool) -> None:
    """Measure rows per second against the number of standing queries, of one shape and of many.

    A backlog of 10 million rows is read as fast as can be, by plain Spark with a few queries and by towpath with up to
    10,000, on 2 cores. Leave the machine alone meanwhile; it takes about fifteen minutes.
    """
    from towpath.lab.bench.frontier import QUICK, FrontierPlan, run

    with _progress() as progress:
        report = run(QUICK if quick else FrontierPlan(), progress)
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    table = Table("system", "queries", "", "rows a second", "all answer after", title=f"{report.rows:,} rows")
    for point in report.points:
        figures = (f"{point.rows_per_s:,.0f}", f"{point.start_s:.1f} s")
        table.add_row(point.system, f"{point.queries:,}", point.workload, *figures)
    print_data(table, str(report.company))


@command.command("moves", epilog="Example: towpath bench moves --rate 2000 --json")
@click.option("--moves", type=click.IntRange(min=1), help="How many moves.  [default: 100]")
@click.option("--rate", type=click.IntRange(min=100), help="Rows that come every second.  [default: 5000]")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def moves(moves: int | None, rate: int | None, quick: bool, as_json: bool) -> None:
    """Move fragments between Spark Connect endpoints under load, and see what those who follow their results notice.

    300 queries of three kinds stand on three local endpoints, 5,000 rows a second flow. Then queries move whose
    states differ in size. Every query is compared with DuckDB at the end. In the same run a query written by hand is
    stopped and started elsewhere from its checkpoint. Leave the machine alone meanwhile; it takes about five minutes.
    """
    from towpath.lab.bench.moving import QUICK, MovingPlan, run

    plan = QUICK if quick else MovingPlan()
    plan = replace(plan, moves=moves or plan.moves, rate=rate or plan.rate)
    with _progress() as progress:
        report = run(plan, lambda text: progress("moves", "towpath", text))
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    faults, batches = (
        report.faults,
        f"{report.micro_batch_s:.1f} s a micro-batch, one every {plan.trigger_ms / 1000:.0f} s",
    )
    print_data(
        _moved(report),
        f"{report.queries - len(faults.wrong)} of {report.queries} queries equal to DuckDB: {faults.lost} rows lost, "
        f"{faults.doubled} doubled; {plan.rate:,} rows/s, {batches}",
        "a query by hand, stopped and started elsewhere from its checkpoint: "
        f"{', '.join(f'{s:.1f} s' for s in report.restarts)} without results",
    )


def _moved(report: MovingReport) -> Table:
    table = Table("moved", "moves", "added delay, median", "worst", "delay of those that stay", "until the fence")
    for kind in report.kinds:
        moves = report.of(kind)
        added = [m.added_s for m in moves]
        seconds = (median(added), max(added), median(m.at_rest_s for m in moves), median(m.seconds for m in moves))
        state = f", {report.state_rows[kind]:,} rows of state" if kind in report.state_rows else ""
        table.add_row(f"{kind}{state}", f"{len(moves)}", *(f"{s:.1f} s" for s in seconds))
    return table


@command.command("nodes", epilog="Example: towpath bench nodes --json")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def nodes(quick: bool, as_json: bool) -> None:
    """Measure two nodes against one, and what happens when one of them dies.

    Throughput is that of a backlog, on local endpoints that are held to a share of a core each. Then an endpoint is
    killed under load: how soon that is noticed, how soon its queries answer again, and whether those with two copies
    pause. Leave the machine alone meanwhile; it takes about five minutes.
    """
    from towpath.lab.bench.nodes import QUICK, NodesPlan, run

    with _progress() as progress:
        report = run(QUICK if quick else NodesPlan(), lambda text: progress("nodes", "towpath", text))
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    table = Table("backlog", "one node", "two nodes", "ratio")
    for name, found in report.throughput.items():
        table.add_row(name, f"{found.one:,.0f} rows/s", f"{found.two:,.0f} rows/s", f"{found.ratio:.2f}")
    loss = report.loss
    print_data(
        table,
        f"a node is killed: noticed after {loss.noticed_s:.1f} s; its queries answer again after {loss.again_s:.1f} s "
        f"(before: {loss.before_s:.1f} s from a result's time to its reader)",
        f"queries with two copies: {loss.pause_s:.1f} s between results at most; before, {loss.pause_before_s:.1f} s "
        f"in the median, {loss.longest_before_s:.1f} s at most; beyond the median and a trigger: {loss.gap_s:.1f} s",
    )


@command.command("links", epilog="Example: towpath bench links --json")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def links(quick: bool, as_json: bool) -> None:
    """Measure what a link costs: aggregates over joins in one piece, and cut into two that a link joins.

    Throughput of a backlog, and in a steady stream the delay of results and the CPU time. Leave the machine alone
    meanwhile; it takes about five minutes.
    """
    from towpath.lab.bench.links import QUICK, LinksPlan, run

    with _progress() as progress:
        report = run(QUICK if quick else LinksPlan(), lambda text: progress("links", "towpath", text))
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    table = Table("aggregates over", "run", "backlog", "delay of results", "CPU", "a micro-batch", "of a reader")
    for name, ways in report.costs.items():
        for way, cost in ways.items():
            hop = "" if cost.hop_s is None else f"{cost.hop_s:.2f} s"
            seconds = (f"{cost.delay_s:.1f} s", f"{cost.cpu:.2f} cores", f"{cost.micro_batch_s:.2f} s", hop)
            table.add_row(name, way, f"{cost.rows_per_s:,.0f} rows/s", *seconds)
    print_data(table)


@command.command("month", epilog="Example: towpath bench month --json")
@click.option("--quick", is_flag=True, help="Only see whether everything works: small numbers that mean nothing.")
@json_option
def month(quick: bool, as_json: bool) -> None:
    """Run a month of a store in minutes, and see whether anything grows.

    10,000 queries stand, and every hour one in a hundred is replaced. The clock is the bench's and Spark is left out;
    journal, assignment tables, results logs and sinks are real. It takes about five minutes.
    """
    from towpath.lab.bench.month import QUICK, MonthPlan, run

    with _progress() as progress:
        report = run(QUICK if quick else MonthPlan(), lambda text: progress("month", "towpath", text))
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    costs = Table("milliseconds for", "at the beginning", "at the end", "ratio")
    begin, end = asdict(report.cost["begin"]), asdict(report.cost["end"])
    for name, ratio in report.ratios.items():
        costs.add_row(name, f"{begin[name]:.2f}", f"{end[name]:.2f}", f"{ratio:.2f}")
    sizes = Table("kept", *report.size)
    for part in report.size["end"].bytes:
        sizes.add_row(f"{part}, kB", *(f"{size.bytes[part] / 1000:,.0f}" for size in report.size.values()))
    for kind in report.size["end"].rows:
        sizes.add_row(f"journal, {kind}", *(f"{size.rows[kind]:,}" for size in report.size.values()))
    sizes.add_row("journal, history", *(f"{size.history:,}" for size in report.size.values()))
    sizes.add_row("files", *(f"{size.files:,}" for size in report.size.values()))
    print_data(costs, sizes, f"{report.replaced:,} queries replaced in {report.plan.hours:,} hours")
