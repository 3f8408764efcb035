"""What a query that came and went while data flowed must have emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import duckdb
import pyarrow as pa

from towpath.arrow import arrow_schema
from towpath.lang import parse
from towpath.lang.query import Query
from towpath.schema import Catalog
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
    schema = arrow_schema({column.name: column.type for column in query.columns})
    tables = [schema.empty_table()]
    for select, valid in zip(query.selects, validity, strict=True):
        if valid.settled:
            items = zip(select.items, query.columns, strict=True)
            named = tuple(replace(item, name=column.name, type=column.type) for item, column in items)
            single = replace(query, selects=(replace(select, items=named),))
            tables.append(expected(con, single, catalog, valid.from_us, valid.until_us, valid.ceded_us))
    return pa.concat_tables(tables)


def answers(con: duckdb.DuckDBPyConnection, catalog: Catalog, versions: Sequence[AnswerVersion]) -> pa.Table:
    """The batch answer of a query that was replaced while data flowed: of each version for the event times it stood."""
    return pa.concat_tables([answer(con, parse(v.sql, catalog), catalog, v.validity) for v in versions])
