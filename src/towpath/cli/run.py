"""`towpath run`: runs a job and shows what it does."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType
from rich.table import Table

from towpath.cli.failures import STOPPED, keep_log, show
from towpath.cli.finding import runs_job_file
from towpath.cli.live import LiveView
from towpath.cli.logs import log_format_option
from towpath.cli.output import (
    CARRIER_FIGURES,
    MESSAGES,
    carrier_figures,
    event_time,
    exact_time,
    json_option,
    late_text,
    print_data,
    print_json,
    seconds_text,
    working,
)
from towpath.cli.stopping import on_stop
from towpath.store.layout import Store

if TYPE_CHECKING:  # Spark takes half a second to import, which `towpath --help` need not pay
    from towpath.api.figures import Figures
    from towpath.api.monitor import Monitor
    from towpath.api.running import Towpath, Watch
    from towpath.job import Job
    from towpath.runtime.carriers import CarrierEvent

    Beside = Callable[[Towpath, Monitor], AbstractContextManager[Callable[[], None]]]

log = logging.getLogger(__name__)

LINE_EVERY_S = 10.0

advise_option = click.option(
    "--advise", is_flag=True, help="Move nothing; write into the history what the policy would move."
)


def advised(job: Job, advise: bool) -> Job:
    """The job, with a policy that may only say what it would do if that was asked for."""
    if not advise:
        return job
    if job.control is None:
        raise click.UsageError("--advise needs a policy: give the job file a control section (`towpath docs control`)")
    return dataclasses.replace(job, control=job.control.model_copy(update={"advise": True}))


def patient(job: Job) -> Job:
    """The job, with streams that wait for each other for ever: it ends before any of them is silent."""
    streams = {name: dataclasses.replace(s, idle_after_ms=0, close_after_ms=0) for name, s in job.streams.items()}
    return dataclasses.replace(job, streams=streams)


@click.command(
    "run",
    epilog="Example: towpath run job.yaml; every night over logs that go on: "
    "towpath run logs.yaml --until-caught-up; once over a recording: towpath run recording.yaml --until-drained",
)
@runs_job_file
@click.option(
    "--until-drained",
    is_flag=True,
    help="Process everything the streams have, close all windows, and end. For data that does not go on: rows that "
    "come later for a window that was closed are late.",
)
@click.option(
    "--until-caught-up",
    is_flag=True,
    help="Process everything the streams have, keep windows open that more rows could fall into, and end. For a job "
    "that is run again and again over data that goes on.",
)
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Run for this long.")
@advise_option
@log_format_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    job_file: Path,
    until_drained: bool,
    until_caught_up: bool,
    seconds: float | None,
    advise: bool,
    as_json: bool,
) -> None:
    """Run a job: from the beginning, or from where it was stopped.

    Ctrl-C stops it and loses nothing. With --seconds and --until-drained, or --until-caught-up, it first runs for that
    long.
    """
    if until_drained and until_caught_up:
        raise click.UsageError("--until-drained closes windows and --until-caught-up keeps them open: give one of them")
    from towpath import job as jobs

    job = advised(jobs.load(job_file), advise)
    if until_caught_up:
        job = patient(job)
    keep_log(Store(job.store).logs)
    session = Session(job, str(job_file))
    try:
        with on_stop(session.interrupt):
            ends = until_drained or until_caught_up
            figures = session.run(seconds if seconds or not ends else 0, drain=until_drained, catch_up=until_caught_up)
    except KeyboardInterrupt:
        MESSAGES.print(session.goes_on, soft_wrap=True)
        ctx.exit(STOPPED)
    if as_json:
        print_json(_report(session.state, figures) | {"closed_us": session.closed_us})
    else:
        print_data(summary(session.state, figures))
        if session.closed_us is not None:
            until = exact_time(session.closed_us)
            print_data(f"all windows were closed; rows from before {until} that come later are late")
    if session.state == "stopped":
        MESSAGES.print(session.goes_on, soft_wrap=True)


class Session:
    """One run of a job, from its start to its end."""

    def __init__(self, job: Job, name: str, command: str = "run", beside: Beside | None = None) -> None:
        """`beside` gives what is to be called with every poll, as long as the job runs."""
        self.state = "starting"
        self.closed_us: int | None = None  # up to when draining has closed windows
        self.goes_on = f"stopped; `towpath {command} {name}` goes on from here"
        self._beside = beside or (lambda running, monitor: nullcontext(lambda: None))
        self._job = job
        self._name = name
        self._refused = 0
        self._interrupted = False

    def interrupt(self) -> None:
        self._interrupted = True
        raise KeyboardInterrupt

    def run(self, seconds: float | None = None, *, drain: bool = False, catch_up: bool = False) -> Figures:
        try:
            return self._run(seconds, drain, catch_up)
        except Exception as error:
            if not self._interrupted:
                raise
            # Whoever stops all processes of a group, as systemd and `timeout` do, stops Spark before this one is done
            # with it. The job goes on from its checkpoints.
            log.info("Spark was stopped at the same time", exc_info=error)
            raise KeyboardInterrupt from error

    def _run(self, seconds: float | None, drain: bool, catch_up: bool) -> Figures:
        from towpath.api.monitor import Monitor
        from towpath.api.running import start

        stopped = threading.Event()

        def stop() -> None:
            self._interrupted = True
            stopped.set()

        with ExitStack() as stack:
            with working(f"starting Spark and {len(self._job.queries):,} queries of {self._name}"):
                running = stack.enter_context(start(self._job))
            monitor = Monitor(running.engine.controller, Store(self._job.store))
            self.state = "running"
            # Spark has put its own handler for Ctrl-C in place, which would cancel micro-batches half way.
            with on_stop(stop), LiveView(LINE_EVERY_S) as view, self._beside(running, monitor) as attend:
                watch = self._watch(running, monitor, view, attend)
                running.run(seconds=seconds, stopped=stopped, watch=watch)
            self.state = "stopped"
            if drain and not stopped.is_set():
                with (
                    on_stop(self.interrupt),
                    working("draining: processing what the streams have, closing all windows"),
                ):
                    self.closed_us = running.drain(monitor.hear)
                self.state = "drained"
            if catch_up and not stopped.is_set():
                with on_stop(self.interrupt), working("catching up: processing what the streams have"):
                    running.catch_up(monitor.hear)
                self.state = "caught up"
            with working("stopping"):
                stack.close()
        return monitor.figures()

    def _watch(self, running: Towpath, monitor: Monitor, view: LiveView, attend: Callable[[], None]) -> Watch:
        around = running.engine.guard.around

        def watch(events: list[CarrierEvent]) -> None:
            with around("counting what carriers did"):
                monitor.hear(events)
            with around("serving requests"):
                attend()
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
    for heading in CARRIER_FIGURES:
        table.add_column(heading, justify="right")
    for carrier in figures.running:
        table.add_row(carrier.id, carrier.kind, *carrier_figures(carrier))
    return table


def _line(state: str, figures: Figures) -> str:
    return (
        f"{state}: {figures.queries:,} queries in {len(figures.running)} carriers, "
        f"{figures.rows_per_s:,.0f} rows/s in, {figures.results_per_s:,.0f} results/s, "
        f"trigger {seconds_text(figures.trigger_s)}, event time {event_time(figures.event_us)}, "
        f"{late_text(figures.late, {}, 0)}, {figures.rejected:,} rejected"
    )


def summary(state: str, figures: Figures) -> str:
    late = late_text(figures.late, figures.late_by_stream, figures.unheard)
    line = f"{state}: {figures.queries:,} queries, {figures.results:,} results, {late}"
    return f"{line}, {figures.rejected:,} rejected (`towpath rejected`)" if figures.rejected else line


def _report(state: str, figures: Figures) -> dict[str, Any]:
    return {
        "state": state,
        "queries": figures.queries,
        "results": figures.results,
        "late": figures.late,
        "late_by_stream": dict(figures.late_by_stream),
        "unheard": figures.unheard,
        "rejected": figures.rejected,
        "event_us": figures.event_us,
        "restarts": figures.restarts,
        "carriers": [{"carrier": carrier.id} | dataclasses.asdict(carrier) for carrier in figures.carriers],
    }
