"""What goes on beside the engine, in a thread of its own: compaction, retention, and feeding queries' own sinks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Self

from towpath.control.answers import read_part
from towpath.control.journal import Journal
from towpath.control.ledger import Ledger
from towpath.control.links import Links
from towpath.control.records import QueryRecord
from towpath.errors import SinkError
from towpath.kafka import PREFIX, revealed
from towpath.results import (
    ConsoleSink,
    KafkaSink,
    MemorySink,
    ParquetSink,
    Part,
    Sink,
    SinkFeeder,
    compact,
    retain,
)
from towpath.store import Store

log = logging.getLogger(__name__)

FEED_S, COMPACT_S = 1.0, 20.0

SINKS: dict[str, Callable[[QueryRecord], Sink]] = {
    "parquet": lambda query: ParquetSink(Path((query.sink or {})["path"])),
    "kafka": lambda query: _kafka(query.sink or {}),
    "console": lambda query: ConsoleSink(),
    "memory": lambda query: MemorySink(),
}


def _kafka(sink: Mapping[str, str]) -> Sink:
    options = {key: value for key, value in sink.items() if key.startswith(PREFIX)}
    return KafkaSink(sink["servers"], sink["topic"], revealed(options))


class Housekeeper:
    def __init__(self, store: Store, retention_us: int | None) -> None:
        self._store = store
        self._retention_us = retention_us
        self._stopped = threading.Event()
        self._busy = threading.Lock()
        self._feeders: dict[str, SinkFeeder] = {}
        self._sinks: dict[str, Sink] = {}
        self.trouble: str | None = None  # with what the last round failed
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopped.set()
        self._thread.join()

    def sink(self, query: str) -> Sink:
        """A query's own sink, for instance to read what a memory sink has."""
        return self._sinks[query]

    def feed_sinks(self) -> None:
        """Brings the sinks up to what the log has now. One that fails does not keep the others waiting."""
        failed = []
        with self._busy:
            for query, feeder, parts in self._fed():
                try:
                    feeder.feed(parts, partial(self._still, query, parts))
                except SinkError as error:
                    failed.append(f"query {feeder.query}: {error}")
        if failed:
            raise SinkError("\n".join(failed))

    def tidy(self) -> None:
        """Merges small files of the results logs and removes what is older than the retention and was fed to sinks."""
        with self._busy:
            fed, linked = self._fed(), self._linked()
            for root in self._store.result_logs:
                compact(root)
                if self._retention_us is not None:
                    needed = [feeder.position.needed_from(root, parts) for _, feeder, parts in fed]
                    first = min((batch for batch in needed if batch is not None), default=None)
                    old_us = time.time_ns() // 1000 - self._retention_us
                    retain(root, old_us, keep_from_batch=first, keep_after_us=linked.get(root.name))

    def _linked(self) -> dict[str, int]:
        """The carriers that make links, and up to when all readers have read those."""
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            return Links(Ledger(journal.load(), {}, ())).read_us() if journal.has_links() else {}

    def _fed(self) -> list[tuple[int, SinkFeeder, list[Part]]]:
        """The queries with sinks: what feeds them, and where their results are."""
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            return [(q.id, self._feeder(q), self._parts(journal, q.id)) for q in journal.with_sinks()]

    def _parts(self, journal: Journal, query: int) -> list[Part]:
        return [read_part(self._store, part, carrier) for part, carrier in journal.parts(query)]

    def _still(self, query: int, parts: list[Part]) -> bool:
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            return self._parts(journal, query) == parts

    def _feeder(self, query: QueryRecord) -> SinkFeeder:
        key = f"{query.name}-{query.id}"
        if key not in self._feeders:
            assert query.sink is not None
            sink = self._sinks[query.name] = SINKS[query.sink["type"]](query)
            state = None if query.sink["type"] == "memory" else self._store.sink(key)
            self._feeders[key] = SinkFeeder(query.name, sink, state)
        return self._feeders[key]

    def _run(self) -> None:
        tidied = time.monotonic()
        while not self._stopped.wait(FEED_S):
            try:
                if time.monotonic() - tidied > COMPACT_S:
                    tidied = time.monotonic()
                    self.tidy()
                self.feed_sinks()
                self.trouble = None
            except Exception as error:
                # Results are safe in the log; the next round tries again.
                self._note(error)

    def _note(self, error: Exception) -> None:
        """Once, until it is over or another one: a sink may be away for days."""
        text = str(error) if isinstance(error, SinkError) else f"{type(error).__name__}: {error}"
        if text != self.trouble:
            self.trouble = text
            trace = None if isinstance(error, SinkError) else error
            log.warning("housekeeping failed, and is tried again: %s", text, exc_info=trace)
