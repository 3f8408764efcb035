"""What the source of a table holds now: the whole table, or the reason why there is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from towpath.arrow import arrow_schema
from towpath.streams import reading
from towpath.streams.definition import decimals
from towpath.streams.fields import as_pairs
from towpath.streams.reading import BadFile, Form, Reject
from towpath.tables.definition import TableDef

MOST_ROWS = 1_000_000  # every micro-batch of every carrier that looks up in it reads the table


class BadTable(Exception):
    """A source that holds no table; the message says why, the hint what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Signature(NamedTuple):
    """What another content of a file shows by."""

    changed_ns: int
    size: int
    file: int


def signature(definition: TableDef) -> Signature | None:
    """None if there is no file."""
    try:
        found = os.stat(definition.source.path)
    except OSError:
        return None
    return Signature(found.st_mtime_ns, found.st_size, found.st_ino)


def read(definition: TableDef) -> pa.Table:
    """Raises BadTable. A table is taken as a whole: without a row that cannot be read, others would find nothing."""
    source = definition.source
    path = source.path
    if not Path(path).is_file():
        raise BadTable(f"there is no file {path}", "a path is relative to the job file")
    schema = arrow_schema({c.name: c.type for c in definition.table.columns})
    try:
        if source.format == "csv" and source.header and not Path(path).stat().st_size:
            raise BadFile("it is empty, and has not even the line of column names")
        form = Form(
            source.format,
            schema,
            None,
            source.header,
            fields=as_pairs(source.fields),
            decimals=decimals(definition.table.columns),
        )
        rows, rejects = reading.read(path, form)
    except FileNotFoundError as error:
        raise BadTable(f"there is no file {path}", "a path is relative to the job file") from error
    except BadFile as error:
        hint = f"it is to be {source.format} with the columns {', '.join(schema.names)}; write it aside, then rename it"
        raise BadTable(f"{path} cannot be read: {error}", hint) from error
    if rejects:
        raise BadTable(f"{path}{_place(rejects[0])}: {rejects[0].reason}{_more(rejects)}", "a table is read whole")
    if rows.num_rows > MOST_ROWS:
        message = f"{path} has {rows.num_rows:,} rows, at most {MOST_ROWS:,} can be looked up in"
        raise BadTable(message, "leave out what no tuple asks for, or let the rows come as a stream")
    return rows


def _place(reject: Reject) -> str:
    return "" if reject.line is None else f", line {reject.line:,}"


def _more(rejects: list[Reject]) -> str:
    more = sum(reject.rows for reject in rejects) - 1
    return f"; and {more:,} more rows cannot be read" if more else ""
