"""Every answer of the market against DuckDB's answer to the same SQL over the recorded streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import duckdb

from towpath.lang import parse
from towpath.lang.query import Query
from towpath.reader import Reader
from towpath.results import Part, read
from towpath.schema import Catalog
from towpath.verify import Difference, answer, differences
from towpath.verify.answer import Validity


@dataclass(frozen=True)
class Checked:
    name: str
    rows: int  # of the answer
    difference: Difference | None


def check(reader: Reader, catalog: Catalog, recorded: duckdb.DuckDBPyConnection) -> Iterator[Checked]:
    """All queries of a store, as their checks end."""

    def compare(query: Query, validity: list[Validity], parts: list[Part]) -> Checked:
        with recorded.cursor() as database:
            wanted = answer(database, query, catalog, validity)
        found = read(parts)
        return Checked(query.name, found.num_rows, differences(wanted, found))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pending = [
            pool.submit(compare, parse(q.sql, catalog, q.name), list(reader.validity(q.name)), reader.parts(q.name))
            for q in reader.queries()
        ]
        for future in pending:
            yield future.result()
