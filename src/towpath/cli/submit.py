"""`towpath submit`: new queries for a running job."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from towpath.cli.finding import Found, commands_service, leading_job
from towpath.cli.output import counted, event_time, json_option, print_json, working
from towpath.errors import StoreError

if TYPE_CHECKING:
    from towpath.service.messages import QueryStatus


@click.command("submit", epilog='Example: towpath submit hot "SELECT auction, price FROM bids WHERE price > 900"')
@click.argument("words", metavar="[JOB] NAME SQL | FILE.sql...", nargs=-1, required=True)
@click.option("--node", help="Where they begin.  [default: wherever they can be shared]")
@click.option("--sink", "sink", metavar="KEY=VALUE", multiple=True, help="As in a job file: type=parquet, path=./out.")
@click.option(
    "--from",
    "start",
    metavar="now|beginning|TIME",
    default="now",
    show_default=True,
    help="From when on they answer; for the past, what the streams still have is read again.",
)
@commands_service
@json_option
def command(
    words: tuple[str, ...], node: str | None, sink: tuple[str, ...], start: str, found: Found, as_json: bool
) -> None:
    """Submit a query by NAME and SQL (- reads it from stdin), or one for each FILE.sql, named like the file.

    A query that runs under the same name is replaced. All are taken in, or none with everything that is wrong.
    """
    words, found = leading_job(words, found)
    settings: dict[str, Any] = {"from": start}
    if node is not None:
        settings["node"] = node
    if sink:
        settings["sink"] = dict(_pair(text) for text in sink)
    queries = {name: settings | {"sql": sql} for name, sql in _texts(words).items()}
    with found.client() as client, working(f"submitting {counted(len(queries), 'query', 'queries')}"):
        taken = client.submit(queries)
    if as_json:
        print_json([asdict(query) for query in taken])
        return
    for query in taken:
        fragments = f"fragment{'s' if len(query.fragments) > 1 else ''} {', '.join(map(str, query.fragments))}"
        click.echo(f"{query.name} runs on {', '.join(query.nodes)} ({fragments}); {_begins(query)}")


def _begins(query: QueryStatus) -> str:
    if query.state == "starting":
        return "its first micro-batches decide from when on it answers"
    since = "the beginning" if query.from_us is None else event_time(query.from_us)
    return f"it answers from {since} on" + (f" ({query.state})" if query.state.startswith("catching") else "")


def _texts(words: tuple[str, ...]) -> dict[str, str]:
    if all(word.endswith(".sql") for word in words):
        return {Path(word).stem: _read(Path(word)) for word in words}
    if len(words) == 1 and " " in words[0].strip():
        raise click.UsageError("expected NAME and SQL, got SQL alone: say what the query is called, in front of it")
    if len(words) != 2:
        raise click.UsageError("expected NAME and SQL, or files whose names end in .sql")
    name, text = words
    return {name: sys.stdin.read() if text == "-" else _read(Path(text)) if text.endswith(".sql") else text}


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{file}: expected a file with SQL: {error}") from error


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--sink: expected KEY=VALUE, got {text!r}; for example --sink type=console")
    return key, value
