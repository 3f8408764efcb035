"""Every answer of the market against DuckDB's answer to the same SQL over the recorded streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import duckdb

from towpath.api.reader import Reader
from towpath.results import Part, read
from towpath.schema import Catalog
from towpath.verify import Difference, answers, differences
from towpath.verify.answer import AnswerVersion


@dataclass(frozen=True)
class Checked:
    name: str
    rows: int  # of the answer
    difference: Difference | None


def check(reader: Reader, catalog: Catalog, recorded: duckdb.DuckDBPyConnection) -> Iterator[Checked]:
    """All queries of a store, as their checks end."""

    def compare(name: str, versions: Sequence[AnswerVersion], parts: list[Part]) -> Checked:
        with recorded.cursor() as database:
            wanted = answers(database, catalog, versions)
        found = read(parts)
        return Checked(name, found.num_rows, differences(wanted, found))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pending = [
            pool.submit(compare, q.name, reader.versions(q.name), reader.parts(q.name)) for q in reader.queries()
        ]
        for future in pending:
            yield future.result()
