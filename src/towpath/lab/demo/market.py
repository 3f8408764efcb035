"""The market as a job: three generated streams that end, three nodes, standing queries, and some that come and go.

Each node begins with some kinds of queries, and all with filters of bids. When all run, a rush of greedy filters comes
to one of them, and the policy takes a part of it to the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import duckdb

from towpath.config.nodes import EmbeddedNode
from towpath.config.steering import ControlDef
from towpath.job import Job, QueryDef, ResultsDef
from towpath.lab.demo.queries import greedy_queries, kinds_of, market_queries
from towpath.plan import CarrierKinds
from towpath.spark.node import QUICK_JAVA
from towpath.streams.auction import EVENTS, SHARES
from towpath.streams.base import Generator
from towpath.streams.definition import StreamDef, StreamText, define
from towpath.streams.registry import generator

EVENTS_PER_S = 1000
TRIGGER_MS = 1500
SEED = 1
DISORDER = "1 second"
CHANGED_SHARE = 50  # one query in so many is submitted in the middle of the run, and one withdrawn
RUSH_SHARE = 20  # one query in so many comes with the rush

# Where queries begin, by kind; the others are dealt to all nodes in turn.
NODES = ("left", "middle", "right")
HOMES = {
    "union": "left",
    "tumbling aggregate": "middle",
    "hopping aggregate": "middle",
    "2-way join": "right",
}
RUSHED = NODES[0]

CONTROL = {
    "policy": "zhou",
    "options": {"tau": 4, "delta": 8, "alpha": 0.2, "refresh": 1000},
    "every": "4 seconds",
    "renew": "8 seconds",
    "change_carriers": False,  # a carrier more would read the market from its beginning, beside all others
    "limits": {"rest": "1 minute"},
}


@dataclass(frozen=True)
class Market:
    queries: dict[str, str]  # that come with the rush are not among them
    homes: dict[str, str]  # by query, the node where it begins
    rush: dict[str, str]
    seconds: int

    @classmethod
    def of(cls, queries: int, seconds: int) -> Market:
        """So many queries, those that come with the rush included."""
        rush = max(1, queries // RUSH_SHARE)
        turns = cycle(NODES)
        homes = {name: HOMES.get(kind) or next(turns) for name, kind in kinds_of(queries - rush).items()}
        return cls(market_queries(queries - rush), homes, greedy_queries(rush), seconds)

    @property
    def peak_s(self) -> tuple[float, float]:
        """When the rush comes: not before the first, and by the second even if not all carriers have begun."""
        return self.seconds * 0.45, self.seconds * 0.55

    @property
    def late_queries(self) -> list[str]:
        """The queries that are submitted while the market runs."""
        return list(self.queries)[-self._changes :]

    @property
    def leaving_queries(self) -> list[str]:
        """The queries that are withdrawn while the market runs, of all kinds."""
        early = list(self.queries)[: -self._changes]
        return early[1 :: len(early) // self._changes][: self._changes]

    @property
    def _changes(self) -> int:
        return max(1, len(self.queries) // CHANGED_SHARE)

    def job(self, store: Path, cores: int) -> Job:
        later = set(self.late_queries)
        early = {
            name: QueryDef.model_validate({"sql": sql, "node": self.homes[name]})
            for name, sql in self.queries.items()
            if name not in later
        }
        node = EmbeddedNode.model_validate({"type": "embedded", "cores": cores, "memory": "2g", "spark": QUICK_JAVA})
        streams = {table: self._stream(table) for table in SHARES}
        results, control = ResultsDef.model_validate({}), ControlDef.model_validate(CONTROL)
        made = Job(store, TRIGGER_MS, streams, dict.fromkeys(NODES, node), early, None, results, control)
        return replace(made, carriers=CarrierKinds.UNIVERSAL)

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
