"""`towpath drain`: empties a node of a running job."""

from __future__ import annotations

from dataclasses import asdict, replace

import click

from towpath.cli.finding import Found, commands_service, leading_job_and_word
from towpath.cli.output import counted, json_option, print_json, working
from towpath.errors import ServiceError


@click.command("drain", epilog="Example: towpath drain left --wait")
@click.argument("words", metavar="[JOB] NODE", nargs=-1, required=True)
@click.option("--undo", is_flag=True, help="Let the node take queries again. What has left it stays away.")
@click.option("--wait", is_flag=True, help="Show the moves as they happen, until nothing runs there any more.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="With --wait: fail after so long.")
@commands_service
@json_option
def command(words: tuple[str, ...], undo: bool, wait: bool, timeout: float | None, found: Found, as_json: bool) -> None:
    """Move everything away from a node, spread over the others, and put nothing new on it.

    Queries go on answering meanwhile. Also after a restart of the job the node takes nothing, until --undo.
    """
    if undo and wait:
        raise click.UsageError("--undo has nothing to --wait for")
    node, found = leading_job_and_word(words, found, "NODE")
    with found.client() as client:
        from towpath.cli.following import follow, newest

        after = newest(client)
        with working(f"asking to drain {node}"):
            status = client.drain(node, undo=undo)

        def at_rest() -> bool:
            nonlocal status
            status = next((n for n in client.status().nodes if n.name == node), replace(status, state="drained"))
            return status.state != "draining"  # nothing of a lost node's has to be waited for

        in_time = not wait or follow(client, after, lambda entry: node in entry.nodes, at_rest, timeout)
    if as_json:
        print_json(asdict(status))
    else:
        click.echo(f"node {node} is {status.state} ({counted(status.fragments, 'fragment', 'fragments')})")
    if not in_time:
        raise ServiceError(f"not done within {timeout:g} seconds; it goes on, `towpath status` shows it")
