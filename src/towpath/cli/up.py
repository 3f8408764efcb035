"""`towpath up`: runs a job as a service that other commands speak to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from towpath.cli.failures import STOPPED, keep_log
from towpath.cli.finding import runs_job_file
from towpath.cli.logs import log_format_option
from towpath.cli.output import MESSAGES, print_data
from towpath.cli.run import Session, advise_option, advised, summary
from towpath.cli.stopping import on_stop
from towpath.store.layout import Store

if TYPE_CHECKING:  # Spark takes half a second to import, which `towpath --help` need not pay
    from towpath.api.monitor import Monitor
    from towpath.api.running import Towpath


@click.command("up", epilog="Example: towpath up job.yaml")
@runs_job_file
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where it listens.  [default: a free one]")
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Of this machine only.")
@click.option("--name", "names", metavar="HOST", multiple=True, help="Of a proxy before it, as in its URL; repeatable.")
@click.option(
    "--metrics-token",
    "token_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Has a token that reads /metrics and nothing else, and is the same after a restart.",
)
@click.option(
    "--metrics-queries",
    type=click.IntRange(0, 1000),
    default=20,
    show_default=True,
    help="That /metrics has figures of: those that take the most time.",
)
@advise_option
@log_format_option
@click.pass_context
def command(
    ctx: click.Context,
    job_file: Path,
    port: int,
    bind: str,
    names: tuple[str, ...],
    token_file: Path | None,
    metrics_queries: int,
    advise: bool,
) -> None:
    """Run a job, and take commands for it while it runs: status, top, submit, withdraw, migrate, drain.

    Ctrl-C stops it and loses nothing; the next `towpath up` goes on from there.
    """
    from towpath import job as jobs
    from towpath.config.nodes import read_token
    from towpath.service.metrics import Scraping
    from towpath.service.server import refuse_public_address

    refuse_public_address(bind)
    scraping = Scraping("" if token_file is None else read_token(token_file), metrics_queries)
    job = advised(jobs.load(job_file), advise)
    store = Store(job.store)
    keep_log(store.logs)

    @contextmanager
    def beside(running: Towpath, monitor: Monitor) -> Iterator[Callable[[], None]]:
        from towpath.console.console import Console
        from towpath.console.look import JobLookout
        from towpath.service.request_queue import RequestQueue
        from towpath.service.server import serving
        from towpath.service.verbs import JobVerbs

        requests, verbs = RequestQueue(), JobVerbs(running, monitor, store)
        console = Console(running.job, JobLookout(running, monitor, verbs))
        with serving(verbs, requests, store, bind, port, names, console, scraping) as address:
            asks = f"`towpath status {job_file}` asks it, `towpath console {job_file}` has its pages"
            MESSAGES.print(f"serving {job_file} at {address}; {asks}", soft_wrap=True)
            yield requests.serve

    session = Session(job, str(job_file), "up", beside)
    try:
        with on_stop(session.interrupt):
            figures = session.run()
    except KeyboardInterrupt:
        MESSAGES.print(session.goes_on, soft_wrap=True)
        ctx.exit(STOPPED)
    print_data(summary(session.state, figures))
    MESSAGES.print(session.goes_on, soft_wrap=True)
