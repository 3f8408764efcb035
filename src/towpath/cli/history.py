"""`towpath history`: what was decided and what happened, with the reasons."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import asdict

import click

from towpath.cli.finding import Found, finds_job
from towpath.cli.output import counted, json_option, print_data, print_json


@click.command("history", epilog="Example: towpath history job.yaml --query hot --since 10m")
@finds_job
@click.option("--query", metavar="NAME", help="Of this query and the fragments that answered it.")
@click.option("--node", metavar="NODE", help="Of this node.")
@click.option("--since", metavar="DURATION", help="Of the last 10m, 2h, 1d.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many, the newest.")
@json_option
def command(
    found: Found, query: str | None, node: str | None, since: str | None, limit: int | None, as_json: bool
) -> None:
    """Show the history of a job: queries, moves with their fences, carriers, nodes; each with the reason.

    JOB is the job file or its store, without it the only job of this folder. The job may be running or not.
    """
    from towpath.control.journal.journal import Journal
    from towpath.store.layout import Store

    since_us = 0 if since is None else time.time_ns() // 1000 - _duration_us(since)
    with closing(Journal(Store(found.folder().absolute()).journal, read_only=True)) as journal:
        entries = journal.history(query=query, node=node, since_us=since_us, limit=limit or -1)
    if as_json:
        print_json([asdict(entry) for entry in entries])
        return
    from towpath.cli.statusview import history_table

    print_data(history_table(entries), counted(len(entries), "entry", "entries"))


def _duration_us(text: str) -> int:
    from pydantic import TypeAdapter, ValidationError

    from towpath.config.settings import Duration

    try:
        return TypeAdapter(Duration).validate_python(text)
    except ValidationError as error:
        context = error.errors()[0].get("ctx", {})
        raise click.BadParameter(f"{context['message']}; {context['hint']}", param_hint="--since") from None
