"""`towpath check`: is a job file right, and every query of it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Column as Heading
from rich.table import Table

from towpath.cli.finding import runs_job_file
from towpath.cli.output import json_option, print_data, print_json, working
from towpath.schema import Column, Stream

if TYPE_CHECKING:
    from towpath.lang.query import Query


@click.command("check", epilog="Example: towpath check job.yaml")
@runs_job_file
@json_option
def command(job_file: Path, as_json: bool) -> None:
    """Check a job file and all its queries without running anything.

    Every mistake is reported at once, and the exit code is then 1.
    """
    from towpath import job
    from towpath.api import checking

    with working(f"checking {job_file}"):
        checked = job.load(job_file)
        queries = checking.check(checked)
    streams = {name: definition.stream for name, definition in checked.streams.items()}
    tables = [definition.table for definition in checked.tables.values()]
    if as_json:
        print_json(_report(streams, tables, queries))
    else:
        print_data(_streams(streams.values()), *([_tables(tables)] if tables else []), _kinds(queries.values()), "ok")


def kind(query: Query) -> str:
    if len(query.selects) > 1:
        return "union"
    select = query.selects[0]
    if select.window is None:
        return "join" if len(select.inputs) > 1 else "filter"
    return "aggregate over a join" if len(select.inputs) > 1 else "aggregate"


def _report(catalog: Mapping[str, Stream], tables: Iterable[Stream], queries: Mapping[str, Query]) -> dict[str, Any]:
    return {
        "ok": True,
        "streams": {
            name: {"columns": _types(stream.columns), "time": stream.time, "delay_us": stream.delay_us}
            for name, stream in catalog.items()
        },
        "tables": {table.name: {"columns": _types(table.columns)} for table in tables},
        "queries": {name: {"kind": kind(query), "columns": _types(query.columns)} for name, query in queries.items()},
    }


def _types(columns: Iterable[Column]) -> dict[str, str]:
    return {column.name: column.kind.value for column in columns}


def _streams(streams: Iterable[Stream]) -> Table:
    table = Table("stream", "columns", "time", "allowed delay")
    for _, alike in groupby(streams, key=lambda stream: (stream.columns, stream.time, stream.delay_us)):
        group = list(alike)
        first = group[0]
        columns = ", ".join(f"{name} {type_}" for name, type_ in _types(first.columns).items())
        table.add_row(_names(group), columns, first.time, f"{first.delay_us / 1e6:g} s")
    return table


def _tables(tables: Iterable[Stream]) -> Table:
    shown = Table("table", "columns")
    for table in tables:
        shown.add_row(table.name, ", ".join(f"{name} {type_}" for name, type_ in _types(table.columns).items()))
    return shown


def _names(streams: list[Stream]) -> str:
    names = [stream.name for stream in streams]
    # The 96 streams of "sensor{1..96}" need not be listed.
    return ", ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]} ({len(names)})"


def _kinds(queries: Iterable[Query]) -> Table:
    kinds = Counter(kind(query) for query in queries)
    table = Table(Heading("queries", "all"), Heading("number", f"{kinds.total():,}", justify="right"), show_footer=True)
    for name, number in kinds.most_common():
        table.add_row(name, f"{number:,}")
    return table
