"""`towpath top`: the state of a running job, as it changes."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import click
from rich.console import Group, RenderableType

from towpath.cli.finding import Found, finds_service
from towpath.cli.live import LiveView
from towpath.cli.stopping import on_stop

if TYPE_CHECKING:
    from towpath.service.messages import HistoryEntry, JobStatus

MOST_MOVES, NEWEST = 10, 5


@click.command("top", epilog="Example: towpath top job.yaml")
@finds_service
@click.option("--every", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds between looks.")
def command(found: Found, every: float) -> None:
    """Watch the nodes, carriers, moves and newest history of a running service, until Ctrl-C.

    The job goes on when you leave. JOB is the job file or its store; without it, the only job of this folder.
    """
    from towpath.cli.statusview import headline
    from towpath.service.messages import LookRequest

    stopped = threading.Event()
    with found.client() as client, on_stop(stopped.set), LiveView(every) as screen:
        while not stopped.is_set():
            status, recent = client.status(), client.history(LookRequest(limit=NEWEST))
            screen.show(partial(_screen, status, recent), partial(headline, status))
            stopped.wait(every)


def _screen(status: JobStatus, recent: list[HistoryEntry]) -> RenderableType:
    from towpath.cli.statusview import history_table, view

    return Group(view(status, MOST_MOVES), history_table(recent))
