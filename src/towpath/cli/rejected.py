"""`towpath rejected`: rows, messages and files that a job did not take in."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from towpath.cli.finding import Found, finds_job
from towpath.cli.output import counted, json_option, print_data, print_json


@click.command("rejected", epilog="Example: towpath rejected job.yaml --stream bids")
@finds_job
@click.option("--stream", metavar="NAME", help="Of this stream.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many in the table."
)
@json_option
def command(found: Found, stream: str | None, limit: int, as_json: bool) -> None:
    """Show the rows, messages and files that a job did not take in: where each is, and what is wrong with it.

    JOB is the job file or its store, without it the only job of this folder. The job may be running or not.

    JSON has all of them, with the text of each row; of a message also its topic, partition and offset.
    """
    from rich.table import Table

    from towpath.api.reader import Reader

    rejects = Reader(found.folder()).rejected(stream)
    if as_json:
        print_json([asdict(reject) for reject in rejects])
        return
    table = Table("stream", "file or topic", "line or offset", "reason")
    for reject in rejects[:limit]:
        where = "-" if reject.line is None else str(reject.line)
        table.add_row(_streams(reject.streams), reject.file, where, reject.reason)
    messages = sum(r.topic is not None for r in rejects)
    rows, files = sum(r.rows for r in rejects) - messages, sum(not r.rows for r in rejects)
    per_stream = Counter[str]()
    for reject in rejects:
        per_stream[_streams(reject.streams)] += 1
    counts = [counted(rows, "row", "rows"), *([counted(messages, "message", "messages")] if messages else [])]
    summary = f"{', '.join(counts)} and {counted(files, 'file', 'files')} were not taken in"
    by_stream = ", ".join(f"{name}: {number:,}" for name, number in sorted(per_stream.items()))
    print_data(table, f"{summary} ({by_stream})" if by_stream else summary)


def _streams(names: tuple[str, ...]) -> str:
    """Streams of one folder have its bad rows in common."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
