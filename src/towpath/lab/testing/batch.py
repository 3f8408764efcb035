"""What the queries of a workload must have answered: by DuckDB, over the rows that the model says count.

Joins and aggregates answer for the rows in time, filters for all. A filter that ends, or goes on elsewhere, may have
missed late rows that came afterwards: nobody waits for those. All others it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import duckdb
import pyarrow as pa

from towpath.lab.testing.late import without_late
from towpath.lab.testing.recording import Recording
from towpath.lab.testing.workload import Workload, database_of
from towpath.lang import parse
from towpath.lang.query import Query
from towpath.schema import SchemaClass
from towpath.verify import Difference, Oracle, differences, expected
from towpath.verify.answer import AnswerVersion


class Batch:
    """The databases of a workload, one for each set of rows that somebody answers for."""

    def __init__(self, workload: Workload) -> None:
        self._recording: Recording = workload.recording
        self._databases: dict[frozenset[frozenset[SchemaClass]], duckdb.DuckDBPyConnection] = {}

    def complete(self, sql: str, from_us: int | None = None, *, settled: bool = True) -> pa.Table:
        """Of a query that stands from an event time on for ever; the answers' bounds are those that were asked for."""
        query = parse(sql, self._recording.known)
        return expected(self._database(query, settled=settled), query, self._recording.known, from_us)

    def answers(self, versions: Sequence[AnswerVersion], *, settled: bool = True) -> pa.Table:
        """Of each version for the event times that it says it stood."""
        return Oracle(self._recording.known, partial(self._database, settled=settled)).answers(versions)

    def _database(self, query: Query, *, settled: bool) -> duckdb.DuckDBPyConnection:
        """`settled`: a filter has all rows; else it has only those that nobody can have missed."""
        classes = {self._recording.catalog[i].schema_class for i in query.streams}
        if any(select.window is not None or len(select.inputs) > 1 for select in query.everything):
            groups = frozenset([frozenset(classes)])
        else:
            groups = frozenset() if settled else frozenset(frozenset([one]) for one in classes)
        if groups not in self._databases:
            recording = self._recording
            for together in groups:
                recording = without_late(recording, together)
            self._databases[groups] = database_of(recording)
        return self._databases[groups]


def between(least: pa.Table, most: pa.Table, actual: pa.Table) -> Difference | None:
    """Nothing of `least` is missing, and nothing comes that is not in `most`."""
    missing, extra = differences(least, actual), differences(most, actual)
    if missing is not None and (missing.missing or missing.columns):
        return missing
    return extra if extra is not None and (extra.extra or extra.columns) else None
