"""`towpath run`: runs a job and shows what it does."""

from __future__ import annotations

import dataclasses
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType
from rich.table import Table

from towpath import job as jobs
from towpath.cli.failures import STOPPED, keep_log, show
from towpath.cli.live import LiveView
from towpath.cli.output import MESSAGES, event_time, json_option, print_data, print_json, seconds_text, working
from towpath.cli.stopping import interrupt, on_stop
from towpath.job import Job
from towpath.runtime.carriers import Event
from towpath.store import Store

if TYPE_CHECKING:  # Spark takes half a second to import, which `towpath --help` need not pay
    from towpath.api import Towpath, Watch
    from towpath.monitor import Figures, Monitor

LINE_EVERY_S = 10.0


@click.command("run", epilog="Example: towpath run examples/market.yaml")
@click.argument("job_file", metavar="JOB", type=click.Path(path_type=Path))
@click.option("--until-drained", is_flag=True, help="Process everything the streams have, close all windows, and end.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Run for this long.")
@json_option
@click.pass_context
def command(ctx: click.Context, job_file: Path, until_drained: bool, seconds: float | None, as_json: bool) -> None:
    """Run a job: from the beginning, or from where it was stopped.

    Ctrl-C stops it and loses nothing. With --seconds and --until-drained it first runs for that long.
    """
    job = jobs.load(job_file)
    keep_log(Store(job.store).logs)
    session = _Session(job, str(job_file))
    try:
        with on_stop(interrupt):
            figures = session.run(until_drained, 0 if until_drained and seconds is None else seconds)
    except KeyboardInterrupt:
        MESSAGES.print(session.goes_on, soft_wrap=True)
        ctx.exit(STOPPED)
    if as_json:
        print_json(_report(session.state, figures))
    else:
        print_data(_summary(session.state, figures))
    if session.state == "stopped":
        MESSAGES.print(session.goes_on, soft_wrap=True)


class _Session:
    """One run of a job, from its start to its end."""

    def __init__(self, job: Job, name: str) -> None:
        self.state = "starting"
        self.goes_on = f"stopped; `towpath run {name}` goes on from here"
        self._job = job
        self._name = name
        self._refused = 0

    def run(self, until_drained: bool, seconds: float | None) -> Figures:
        from towpath.api import start
        from towpath.monitor import Monitor

        stopped = threading.Event()
        with ExitStack() as stack:
            with working(f"starting Spark and {len(self._job.queries):,} queries of {self._name}"):
                running = stack.enter_context(start(self._job))
            monitor = Monitor(running.engine.controller, Store(self._job.store))
            self.state = "running"
            # Spark has put its own handler for Ctrl-C in place, which would cancel micro-batches half way.
            with on_stop(stopped.set), LiveView(LINE_EVERY_S) as view:
                running.run(seconds=seconds, stopped=stopped, watch=self._watch(running, monitor, view))
            if until_drained and not stopped.is_set():
                self.state = "draining"
                with on_stop(interrupt), working("draining: processing what the streams have, closing all windows"):
                    running.drain(monitor.hear)
            self.state = "drained" if self.state == "draining" else "stopped"
            with working("stopping"):
                stack.close()
        return monitor.figures()

    def _watch(self, running: Towpath, monitor: Monitor, view: LiveView) -> Watch:
        def watch(events: list[Event]) -> None:
            monitor.hear(events)
            for error in running.refused[self._refused :]:
                show(error)
            self._refused = len(running.refused)
            if view.due:
                figures = monitor.figures()
                view.show(lambda: _view(self.state, figures), lambda: _line(self.state, figures))

        return watch


def _view(state: str, figures: Figures) -> RenderableType:
    table = Table(
        "carrier", "kind", title=f"{state}: {figures.queries:,} queries, {figures.results_per_s:,.0f} results/s"
    )
    for heading in ("queries", "fragments", "rows/s", "trigger", "event time", "late rows"):
        table.add_column(heading, justify="right")
    for c in figures.carriers:
        table.add_row(
            c.carrier,
            c.kind,
            f"{c.queries:,}",
            f"{c.fragments:,}",
            f"{c.rows_per_s:,.0f}",
            seconds_text(c.trigger_s),
            event_time(c.event_us),
            f"{c.late:,}",
        )
    return table


def _line(state: str, figures: Figures) -> str:
    return (
        f"{state}: {figures.queries:,} queries in {len(figures.carriers)} carriers, "
        f"{figures.rows_per_s:,.0f} rows/s in, {figures.results_per_s:,.0f} results/s, "
        f"trigger {seconds_text(figures.median_s)}, event time {event_time(figures.event_us)}, "
        f"{figures.late:,} late rows"
    )


def _summary(state: str, figures: Figures) -> str:
    return f"{state}: {figures.queries:,} queries, {figures.results:,} results, {figures.late:,} late rows"


def _report(state: str, figures: Figures) -> dict[str, Any]:
    return {
        "state": state,
        "queries": figures.queries,
        "results": figures.results,
        "late": figures.late,
        "event_us": figures.event_us,
        "restarts": figures.restarts,
        "carriers": [dataclasses.asdict(carrier) for carrier in figures.carriers],
    }
