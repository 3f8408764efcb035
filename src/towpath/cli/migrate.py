"""`towpath migrate`: moves a query to another node, or another kind of carrier, while data flows."""

from __future__ import annotations

from dataclasses import asdict

import click

from towpath.cli.finding import Found, commands_service, leading_job_and_word
from towpath.cli.output import json_option, print_json, working
from towpath.errors import MoveRefused, ServiceError

ENDED = ("done", "abandoned")


@click.command("migrate", epilog="Example: towpath migrate hot --to right --wait")
@click.argument("words", metavar="[JOB] QUERY|FRAGMENT", nargs=-1, required=True)
@click.option("--to", "node", metavar="NODE", help="Where it is to run; without it, where it is.")
@click.option("--carrier", "carriers", type=click.Choice(["compiled", "universal"]), help="The kind it is to run in.")
@click.option("--wait", is_flag=True, help="Show the steps as they happen, until it is done.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="With --wait: fail after so long.")
@commands_service
@json_option
def command(
    words: tuple[str, ...],
    node: str | None,
    carriers: str | None,
    wait: bool,
    timeout: float | None,
    found: Found,
    as_json: bool,
) -> None:
    """Move a query, or one fragment by its number, to a node, or to a compiled or universal carrier where it is.

    It goes on answering meanwhile; nothing is lost.
    A fragment that several queries share moves for all of them. The old copy stays until its last windows are closed.
    """
    if node is None and carriers is None:
        raise click.UsageError("say where to: --to NODE, --carrier compiled, --carrier universal, or both")
    subject, found = leading_job_and_word(words, found, "QUERY|FRAGMENT")
    with found.client() as client:
        from towpath.cli.following import follow, newest

        after = newest(client)
        with working(f"beginning to move {subject} to {node or f'a {carriers} carrier'}"):
            moves = client.migrate(subject, node, carriers)
        numbers, fragments = [move.number for move in moves], {move.fragment for move in moves}
        in_time = not wait or follow(
            client,
            after,
            lambda entry: entry.fragment in fragments,
            lambda: all(move.step in ENDED for move in client.moves(numbers)),
            timeout,
        )
        moves = client.moves(numbers)
    if as_json:
        print_json([asdict(move) for move in moves])
    else:
        for move in moves:
            here, there = (move.source, move.target) if move.source != move.target else move.carriers
            click.echo(f"fragment {move.fragment} ({move.used_by}) from {here} to {there}: {move.step}")
    if not in_time:
        raise ServiceError(f"not done within {timeout:g} seconds; the move goes on, `towpath status` shows it")
    if any(move.step == "abandoned" for move in moves):
        raise MoveRefused("a move was abandoned; `towpath history` says why")
