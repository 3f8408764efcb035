"""What a query that came and went while data flowed must have emitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import duckdb
import pyarrow as pa

from towpath.arrow import result_schema
from towpath.lang import parse
from towpath.lang.query import Query
from towpath.schema import Catalog
from towpath.verify.compare import Difference, differences
from towpath.verify.oracle import expected


class Validity(Protocol):
    """The event times [from_us, until_us) one SELECT answers for; before it is settled, none."""

    settled: bool
    from_us: int | None
    until_us: int | None
    ceded_us: int | None  # where the next version of the query has taken over


class AnswerVersion(Protocol):
    """One version of a query, with the validity of each SELECT."""

    @property
    def sql(self) -> str: ...

    @property
    def validity(self) -> Sequence[Validity]: ...


def answer(con: duckdb.DuckDBPyConnection, query: Query, catalog: Catalog, validity: Sequence[Validity]) -> pa.Table:
    """The batch answer over the tables of `con`; each SELECT of a union has its own validity."""
    schema = result_schema(query.columns)
    tables = [schema.empty_table()]
    for select, valid in zip(query.selects, validity, strict=True):
        if valid.settled:
            items = zip(select.items, query.columns, strict=True)
            named = tuple(replace(item, name=column.name, type=column.type) for item, column in items)
            single = replace(query, selects=(replace(select, items=named),))
            tables.append(expected(con, single, catalog, valid.from_us, valid.until_us, valid.ceded_us))
    return pa.concat_tables(tables)


@dataclass(frozen=True)
class Checked:
    """One query against its batch answer."""

    name: str
    rows: int  # of the answer that came
    difference: Difference | None


@dataclass(frozen=True)
class Oracle:
    """Judges what queries have answered by the batch answers to the same SQL."""

    catalog: Catalog
    database: Callable[[Query], duckdb.DuckDBPyConnection]  # the rows that count for a query, by stream

    def answers(self, versions: Sequence[AnswerVersion]) -> pa.Table:
        """Of a query that was replaced while data flowed: of each version for the event times it stood."""
        queries = [(parse(version.sql, self.catalog), version.validity) for version in versions]
        return pa.concat_tables([answer(self.database(q), q, self.catalog, validity) for q, validity in queries])

    def check(self, name: str, versions: Sequence[AnswerVersion], actual: pa.Table) -> Checked:
        return Checked(name, actual.num_rows, differences(self.answers(versions), actual))
