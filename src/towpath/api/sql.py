"""SQL over what a job's queries have answered: by their names, in DuckDB, reading only.

A query is a table with exactly the rows that `Reader.read` gives. What a statement leaves out is not read from disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import duckdb
import pyarrow as pa
from duckdb import StatementType

from towpath.api.reader import Reader
from towpath.config.settings import close_to
from towpath.control.journal.journal import Journal
from towpath.control.state.records import BEGINNING_US
from towpath.errors import Mistake, QueryError, StoreError
from towpath.results import Part, relation
from towpath.store.layout import Store

READING = {StatementType.SELECT, StatementType.EXPLAIN}  # DESCRIBE, SUMMARIZE and SHOW are SELECT
ATTEMPTS = 10
QUERIES, HISTORY = "towpath_queries", "towpath_history"  # tables about the job; a query of that name comes first
NAME = re.compile(r'"((?:[^"]|"")+)"|(\w+)')
TIME = pa.timestamp("us", "UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Column:
    name: str
    type: str


class Sql:
    """A connection to what a job has answered so far, whether it runs or not."""

    def __init__(self, store: str | Path) -> None:
        self._store = Store(Path(store).absolute())
        self.reader = Reader(self._store.root)
        self._tables = {QUERIES: self._queries, HISTORY: self._history}
        self._database = duckdb.connect()
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.execute("SET threads = 2")  # the machine is Spark's
        self._database.execute("SET allowed_directories = ?", [[str(self._store.root / "carriers")]])
        self._database.execute("SET enable_external_access = false")
        self._database.execute("SET lock_configuration = true")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._database.close()

    def run(self, text: str) -> Iterator[pa.Table]:
        """What each statement gives. Raises QueryError with the place underlined."""
        try:
            statements = duckdb.extract_statements(text)
        except duckdb.Error as error:
            raise self._mistake(text, error) from None
        for statement in statements:
            if statement.type not in READING:
                raise _only_reads(statement.type)
        for statement in statements:
            yield self._run(statement.query)

    def columns(self, name: str) -> list[Column]:
        """The columns of a query, or of a table about the job."""
        described = self._run(f"DESCRIBE {_quoted(name)}")
        types = ("not known before the first row" if t == '"NULL"' else t for t in described["column_type"].to_pylist())
        return [Column(*both) for both in zip(described["column_name"].to_pylist(), types, strict=True)]

    def _run(self, statement: str) -> pa.Table:
        """Files are merged, and where a query ends is decided, while it is read; then it is read again."""
        for _ in range(ATTEMPTS):
            files: list[Path] = []
            try:
                parts = self._parts(statement)
                for name, found in parts.items():
                    files += self._show(name, found)
                table = self._database.sql(statement).to_arrow_table()
            except duckdb.Error as error:
                if all(file.exists() for file in files):
                    raise self._mistake(statement, self._placed(statement, error)) from None
                continue
            if all(self.reader.parts(name) == before for name, before in parts.items()):
                return _with_whole_numbers(table)
        root = self._store.root
        raise StoreError(f"{root}: files vanished in {ATTEMPTS} attempts to read them; is the store being deleted?")

    def _parts(self, statement: str) -> dict[str, list[Part]]:
        """Of the queries that a statement may name. Tables about the job are made on the way."""
        named = {(quoted.replace('""', '"') or bare).lower() for quoted, bare in NAME.findall(statement)}
        queries = [name for name in self.reader.names() if name.lower() in named]
        for name in self._tables.keys() & named - {name.lower() for name in queries}:
            self._database.register(name, self._tables[name]())
        return {name: self.reader.parts(name) for name in queries}

    def _show(self, name: str, parts: list[Part]) -> tuple[Path, ...]:
        """Makes a query a table; gives the files that it is read from."""
        shown = relation(parts)
        self._database.execute(f"CREATE OR REPLACE TEMP VIEW {_quoted(name)} AS {shown.sql}")
        return shown.files

    # --- about the job -----------------------------------------------------------------------------------------------

    def _queries(self) -> pa.Table:
        found = self.reader.queries()
        return pa.table(
            {
                "name": pa.array([query.name for query in found], pa.string()),
                "state": pa.array([query.state for query in found], pa.string()),
                "sql": pa.array([query.sql for query in found], pa.string()),
                "columns": pa.array([list(query.columns) for query in found], pa.list_(pa.string())),
                "answers_from": _times(query.from_us for query in found),
                "answers_until": _times(query.until_us for query in found),
                "failed": pa.array([query.failed for query in found], pa.string()),
            }
        )

    def _history(self) -> pa.Table:
        journal = Journal(self._store.journal, read_only=True)
        try:
            found = journal.history()
        finally:
            journal.close()
        return pa.table(
            {
                "number": pa.array([entry.number for entry in found], pa.int64()),
                "happened": _times(entry.at_us for entry in found),
                "kind": pa.array([str(entry.kind) for entry in found], pa.string()),
                "text": pa.array([entry.text for entry in found], pa.string()),
                "query": pa.array([entry.query for entry in found], pa.string()),
                "fragment": pa.array([entry.fragment for entry in found], pa.int64()),
                "nodes": pa.array([list(entry.nodes) for entry in found], pa.list_(pa.string())),
            }
        )

    # --- mistakes ----------------------------------------------------------------------------------------------------

    def _placed(self, statement: str, error: duckdb.Error) -> duckdb.Error:
        """The same with its place, which DuckDB says in one of its two ways of asking only."""
        if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
            try:
                self._database.execute(statement)
            except duckdb.Error as placed:
                return placed
        return error

    def _mistake(self, statement: str, error: duckdb.Error) -> QueryError:
        message, _, place = str(error).partition("\n\nLINE ")
        message = re.sub(r" Did you mean .*", "", " ".join(message.partition(": ")[2].split())) or str(error)
        excerpt = f"LINE {place}" if place else ""
        return QueryError("1 mistake in the statement:", [Mistake("", message, self._hint(statement, error), excerpt)])

    def _hint(self, statement: str, error: duckdb.Error) -> str:
        names = list(self.reader.names())
        if isinstance(error, duckdb.ParserException):
            bare = next((name for name in names if not name.isidentifier() and _stands_bare(name, statement)), None)
            return f'such a name stands in double quotes: "{bare}"' if bare else ""
        missing = re.search(r"Table with name (.+?) does not exist", str(error))
        if isinstance(error, duckdb.CatalogException) and missing:
            close = close_to(missing[1], [*names, *self._tables])
            return f"did you mean {_quoted(close)}?" if close else "\\d lists the queries of the job"
        return ""


def _only_reads(kind: StatementType) -> QueryError:
    hint = "SELECT ...; to write the rows into a file, give --out FILE to `towpath sql`"
    message = f"{kind.name} is not possible: results are read only"
    return QueryError("1 mistake in the statement:", [Mistake("", message, hint)])


def _stands_bare(name: str, statement: str) -> bool:
    return re.search(rf'(?<!["\w]){re.escape(name)}(?!["\w])', statement) is not None


def _times(us: Iterable[int | None]) -> pa.Array:
    known = [None if moment in (None, BEGINNING_US) else moment for moment in us]
    return pa.array([None if moment is None else EPOCH + timedelta(microseconds=moment) for moment in known], TIME)


def _with_whole_numbers(table: pa.Table) -> pa.Table:
    """Sums of whole numbers are wider than a program expects; most of them fit into 64 bits."""
    for place, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                table = table.set_column(place, field.name, table.column(place).cast(pa.int64()))
            except pa.ArrowInvalid:
                continue
    return table


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
