"""`towpath explain`: how queries are planned, and what they share with others."""

from __future__ import annotations

import click

from towpath.cli.finding import job_file_first
from towpath.cli.output import MESSAGES, json_option, print_json, working
from towpath.plan import CUT, WHOLE
from towpath.store.layout import Store

MOST_SHOWN = 20


@click.command("explain", epilog="Example: towpath explain job.yaml busy-auctions")
@click.argument("words", metavar="[JOB] [QUERY]...", nargs=-1)
@click.option("--sql", metavar="TEXT", help="Explain this query, as if it were submitted to the job.")
@click.option("--all", "everything", is_flag=True, help=f"Show all queries, not only the first {MOST_SHOWN}.")
@click.option(
    "--fragments", type=click.Choice([WHOLE, CUT]), help="How queries are cut.  [default: as the job file says]"
)
@json_option
def command(words: tuple[str, ...], sql: str | None, everything: bool, fragments: str | None, as_json: bool) -> None:
    """Show how the queries of JOB are planned and what they share.

    For each QUERY (all of them when none is named): the plan as a tree with estimated rates and fragments, the template
    it fits, its own constants, and which fragment and carrier it shares. When the job has run before, its store
    knows what runs already. Nothing is started or changed.
    """
    from towpath import job as jobs
    from towpath.api.explaining import explain

    job_file, names = job_file_first(words)
    with working(f"planning the queries of {job_file}"):
        job = jobs.load(job_file)
        explained = explain(job, names, sql=sql, fragments=fragments)
    if as_json:
        print_json({"store": Store(job.store).journal.exists(), "queries": {e.name: e.report() for e in explained}})
        return
    limit = len(explained) if everything else MOST_SHOWN
    for entry in explained[:limit]:
        title, rest = str(entry).split("\n", 1)
        click.echo(f"{click.style(title, bold=True)}\n{rest}")
    if len(explained) > limit:
        MESSAGES.print(f"{len(explained) - limit:,} more queries; name the ones you want, or use --all")
