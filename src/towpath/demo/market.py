"""The market as a job: three generated streams that end, standing queries, and some that come and go while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from towpath.demo.queries import market_queries
from towpath.job import Job, QueryDef, ResultsDef
from towpath.nodes import EmbeddedNode
from towpath.streams.auction import EVENTS, SHARES
from towpath.streams.base import Generator
from towpath.streams.definition import StreamDef, StreamText, define
from towpath.streams.registry import generator

EVENTS_PER_S = 2000
TRIGGER_MS = 2000
SEED = 1
DISORDER = "1 second"
CHANGED_SHARE = 50  # one query in so many is submitted in the middle of the run, and one withdrawn


@dataclass(frozen=True)
class Market:
    queries: dict[str, str]
    seconds: int

    @classmethod
    def of(cls, queries: int, seconds: int) -> Market:
        return cls(market_queries(queries), seconds)

    @property
    def late_comers(self) -> list[str]:
        """The queries that are submitted while the market runs."""
        return list(self.queries)[-self._changes :]

    @property
    def leavers(self) -> list[str]:
        """The queries that are withdrawn while the market runs, of all kinds."""
        early = list(self.queries)[: -self._changes]
        return early[1 :: len(early) // self._changes][: self._changes]

    @property
    def _changes(self) -> int:
        return max(1, len(self.queries) // CHANGED_SHARE)

    def job(self, store: Path, cores: int) -> Job:
        later = set(self.late_comers)
        early = {name: QueryDef.model_validate({"sql": sql}) for name, sql in self.queries.items() if name not in later}
        node = EmbeddedNode.model_validate({"type": "embedded", "cores": cores, "memory": "2g"})
        streams = {table: self._stream(table) for table in SHARES}
        return Job(store, TRIGGER_MS, streams, {"local": node}, early, None, ResultsDef.model_validate({}))

    @property
    def total_events(self) -> int:
        return sum(made.rows or 0 for made in self._generators().values())

    def events(self, event_us: int | None) -> int:
        """How many events the market has up to an event time."""
        if event_us is None:
            return 0
        return sum(g.count_until(event_us - g.start_us) for g in self._generators().values())

    def seconds_until(self, event_us: int | None) -> float:
        """How much of its time the market has behind it."""
        start_us = next(iter(self._generators().values())).start_us
        return 0.0 if event_us is None else min(float(self.seconds), max(0.0, (event_us - start_us) / 1e6))

    def recorded(self) -> duckdb.DuckDBPyConnection:
        """A new database in memory with everything the streams ever had."""
        database = duckdb.connect()
        for table, made in self._generators().items():
            batch = made.batch(0, made.rows or 0)  # noqa: F841 (DuckDB finds it by its name)
            database.execute(f"CREATE TABLE {table} AS SELECT * FROM batch")
        return database

    def _generators(self) -> dict[str, Generator]:
        return {table: generator(self._stream(table).source.model_dump()) for table in SHARES}

    def _stream(self, table: str) -> StreamDef:
        rows = EVENTS_PER_S * self.seconds * SHARES[table] // EVENTS
        source = {"type": "auction", "table": table, "rate": EVENTS_PER_S, "seed": SEED, "rows": rows}
        return define(table, StreamText.model_validate({"source": {**source, "disorder": DISORDER}}))
