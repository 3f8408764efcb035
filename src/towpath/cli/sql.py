"""`towpath sql`: a shell over the results of a job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from towpath.cli.failures import show
from towpath.cli.finding import Found, leading_job_or_words
from towpath.cli.output import MESSAGES, json_chosen, json_option, print_data

if TYPE_CHECKING:  # other commands need not wait for DuckDB
    from towpath.api.sql import Sql

FORMATS = ("table", "json", "csv", "parquet")
PROMPT, MORE = "towpath> ", "      -> "
HELP = """\\d           the queries of the job
\\d NAME      the columns of a query
\\q           leave; so does Ctrl-D
SELECT ...;  over any query by its name; a name such as high-bids stands in double quotes"""


@click.command("sql", epilog="Example: towpath sql job.yaml 'SELECT count(*) FROM \"high-bids\"'")
@click.argument("words", metavar="[JOB] [STATEMENT]", nargs=-1)
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="The job's store.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@json_option
def command(words: tuple[str, ...], store: Path | None, format_: str, out: Path | None, as_json: bool) -> None:
    """Ask the results of a job in SQL: with a STATEMENT, or in a shell.

    Every query is a table with the rows that `towpath results` shows; towpath_queries and towpath_history are about the
    job, which may be running or not. Nothing is changed. JOB is a job file or the store of a job, by default the only
    one here. --json and --format json give an object for each row.
    """
    from towpath.api.sql import Sql

    found, words = leading_job_or_words(words, Found(store=store))
    if len(words) > 1:
        raise click.UsageError(f"expected [JOB] [STATEMENT], got {len(words)} more words; put the statement in quotes")
    format_ = json_chosen(format_, as_json)
    with Sql(found.folder()) as sql:
        if words:
            _answer(sql, words[0], format_, out)
        elif sys.stdin.isatty():
            _talk(sql, format_, out)
        else:
            _answer(sql, sys.stdin.read(), format_, out)


def _answer(sql: Sql, text: str, format_: str, out: Path | None) -> None:
    from towpath.results import render

    if text.strip().startswith("\\"):
        _describe(sql, text.strip().rstrip(";"))
        return
    tables = sql.run(text)
    if out is None:
        for table in tables:
            render(table, format_)
        return
    found = list(tables)
    if len(found) != 1:
        raise click.UsageError(f"--out is for one statement, got {len(found)}")
    render(found[0], format_, out=out)


def _describe(sql: Sql, text: str) -> None:
    word, _, name = text.partition(" ")
    if word != "\\d":
        print_data(HELP)
    elif name.strip():
        table = Table("column", "type")
        for column in sql.columns(name.strip().strip('"')):
            table.add_row(column.name, column.type)
        print_data(table)
    else:
        table = Table("query", "state", "columns")
        for query in sql.reader.queries():
            table.add_row(query.name, query.state, f"{len(query.columns)}: {', '.join(query.columns)}")
        print_data(table)


def _talk(sql: Sql, format_: str, out: Path | None) -> None:
    """Statements end with a semicolon; a mistake ends nothing."""
    from towpath.errors import TowpathError

    MESSAGES.print("\\d lists the queries, \\q leaves, \\? says more; a statement ends with ;", soft_wrap=True)
    for text in _statements():
        try:
            _answer(sql, text, format_, out)
        except TowpathError as error:
            show(error)
        except KeyboardInterrupt:
            MESSAGES.print("stopped")


def _statements() -> Iterator[str]:
    import readline  # noqa: F401 - gives `input` a history and keys to edit with

    lines: list[str] = []
    while True:
        try:
            line = input(MORE if lines else PROMPT)
        except EOFError:
            return
        except KeyboardInterrupt:
            lines = []
            click.echo()
            continue
        if not lines and line.strip() in ("\\q", "quit", "exit"):
            return
        if not lines and line.startswith("\\"):
            yield line
        elif lines or line.strip():
            lines.append(line)
            if line.rstrip().endswith(";"):
                yield "\n".join(lines)
                lines = []
