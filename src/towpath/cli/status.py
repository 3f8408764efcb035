"""`towpath status`: what a running job does now."""

from __future__ import annotations

from dataclasses import asdict

import click

from towpath.cli.finding import Found, finds_service
from towpath.cli.output import counted, json_option, print_data, print_json


@click.command("status", epilog="Example: towpath status job.yaml --queries")
@finds_service
@click.option("--queries", is_flag=True, help="List the queries with their nodes and fragments instead.")
@click.option("--cost", is_flag=True, help="With --queries: what each puts out and about takes, the dearest first.")
@json_option
def command(found: Found, queries: bool, cost: bool, as_json: bool) -> None:
    """Show the nodes, carriers, rates and moves of a job that runs as a service (`towpath up`).

    JOB is the job file or its store; without it, the only job of this folder.
    """
    from towpath.cli.statusview import costs_table, queries_table, view

    if cost and not queries:
        raise click.UsageError("--cost is about queries: add --queries")
    with found.client() as client:
        if cost:
            costs = client.costs()
            if as_json:
                print_json([asdict(one) for one in costs])
            else:
                print_data(costs_table(costs), counted(len(costs), "query", "queries"))
            return
        if queries:
            listed = client.queries()
            if as_json:
                print_json([asdict(query) for query in listed])
            else:
                print_data(queries_table(listed), counted(len(listed), "query", "queries"))
            return
        status = client.status()
    if as_json:
        print_json(asdict(status))
    else:
        print_data(view(status))
