"""`towpath results`: what a query of a job has answered, whether the job runs or not."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from towpath.cli.finding import Found, leading_job_or_words
from towpath.cli.output import MESSAGES, exact_time, json_chosen, json_option, print_data, print_json
from towpath.cli.stopping import on_stop

if TYPE_CHECKING:  # other commands need not wait for DuckDB
    import pyarrow as pa

    from towpath.api.reader import Reader, StandingQuery

FORMATS = ("table", "json", "csv", "parquet")
MOST_LEAVING = 3  # queries that are named


@click.command("results", epilog="Example: towpath results job.yaml high-bids --limit 10")
@click.argument("words", metavar="[JOB] [QUERY]", nargs=-1)
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="The job's store.")
@click.option("--follow", is_flag=True, help="Go on with new rows as they come, until Ctrl-C.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows: the newest, with --follow the first.")
@json_option
def command(
    words: tuple[str, ...],
    store: Path | None,
    follow: bool,
    format_: str,
    out: Path | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show the results of QUERY, or list all queries.

    JOB is a job file or the store of a job, by default the only one here; the job may be running or not. --json and
    --format json give an object for each row, and of the queries a list.
    """
    from towpath.api.reader import Reader

    found, words = leading_job_or_words(words, Found(store=store))
    if len(words) > 1:
        raise click.UsageError(f"expected [JOB] [QUERY], got {len(words)} queries; results shows one at a time")
    query = words[0] if words else None
    format_ = json_chosen(format_, as_json)
    reader = Reader(found.folder())
    if query is None:
        _list(reader, format_, out)
    elif follow:
        _follow(reader, query, format_, out, limit)
    else:
        _write([_newest(reader.read(query), limit)], format_, out)
    if query is not None and (why := reader.failed(query)) is not None:
        message = f"{query} was set aside, since its carrier failed with it: {why}"
        MESSAGES.print(f"{message}\n    -> submit it again to try it again", soft_wrap=True, markup=False)


def _newest(rows: pa.Table, limit: int | None) -> pa.Table:
    return rows if limit is None else rows.slice(max(0, rows.num_rows - limit))


def _follow(reader: Reader, query: str, format_: str, out: Path | None, limit: int | None) -> None:
    stopped = threading.Event()
    with on_stop(stopped.set):
        _write(_first(reader.follow(query, stopped), limit), format_, out)


def _first(tables: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    left = limit
    for table in tables:
        yield table if left is None else table.slice(0, left)
        if left is not None and (left := left - table.num_rows) <= 0:
            return


def _write(tables: Iterable[pa.Table], format_: str, out: Path | None) -> None:
    from towpath.results import render

    render(tables, format_, out=out)


def _list(reader: Reader, format_: str, out: Path | None) -> None:
    if format_ not in ("table", "json") or out is not None:
        raise click.UsageError(
            "the list of queries is a table or JSON on stdout; name a QUERY for --out and other formats"
        )
    queries = reader.queries()
    if format_ == "json":
        print_json([dataclasses.asdict(query) for query in queries])
    else:
        print_data(_table(queries), f"{len(queries):,} {'query' if len(queries) == 1 else 'queries'}")
        if leaving := [query for query in queries if query.state == "withdrawing"]:
            MESSAGES.print(_awaited(leaving), soft_wrap=True, markup=False)


def _awaited(leaving: list[StandingQuery]) -> str:
    shown = [f"{q.name} ({_end(q) if _never_began(q) else f'rows from {_end(q)} on'})" for q in leaving[:MOST_LEAVING]]
    more = [f"{len(leaving) - MOST_LEAVING:,} more"] if len(leaving) > MOST_LEAVING else []
    return (
        f"withdrawing, until every stream that they read has come to their end: {', '.join(shown + more)}\n"
        "    -> they go on by themselves; if nothing comes any more, `towpath run JOB --until-drained` ends them"
    )


def _table(queries: list[StandingQuery]) -> Table:
    table = Table("query", "state", "from", "until", "columns")
    for query in queries:
        table.add_row(
            query.name, query.state, _start(query), _end(query), f"{len(query.columns)}: {', '.join(query.columns)}"
        )
    return table


def _start(query: StandingQuery) -> str:
    """Until it is decided from when on a query answers, it answers for nothing."""
    if query.state == "starting" or _never_began(query):
        return "-"
    return "beginning" if query.from_us is None else exact_time(query.from_us)


def _end(query: StandingQuery) -> str:
    if _never_began(query):
        return "left before it began"
    return "" if query.until_us is None else exact_time(query.until_us)


def _never_began(query: StandingQuery) -> bool:
    from towpath.control.state.records import BEGINNING_US

    return BEGINNING_US in (query.from_us, query.until_us)
