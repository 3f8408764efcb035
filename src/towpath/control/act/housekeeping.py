"""What goes on beside the engine, in a thread of its own: compaction, retention, and feeding queries' own sinks."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Self

from towpath.control.act.lanes import Lanes
from towpath.control.decide.links import Links
from towpath.control.journal.answers import read_parts
from towpath.control.journal.journal import Journal, wall_us
from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import QueryRecord
from towpath.errors import SinkError
from towpath.results import Look, Part, Sink, SinkFeeder, compact, look_at, retain
from towpath.results.sinks import SINKS
from towpath.results.sinks.base import SinkDef, SinkWaits
from towpath.store.layout import Store

log = logging.getLogger(__name__)

FEED_S, COMPACT_S = 1.0, 20.0
GRACE_US = 600_000_000  # after a query was withdrawn, for micro-batches that were under way, and for late rows


def _kind(query: QueryRecord) -> tuple[type[SinkDef], dict[str, str]]:
    """The kind of sink that a query has, and what its job file says about it."""
    assert query.sink is not None, "asked of queries with sinks only"
    return SINKS[query.sink["type"]], query.sink


def _key(query: QueryRecord) -> str:
    """The same as long as the same results go to the same place: a sink that a query comes back to goes on."""
    kind, record = _kind(query)
    place = hashlib.sha256(json.dumps(kind.identity(record), sort_keys=True).encode()).hexdigest()[:8]
    return f"{query.name}-{query.series}-{place}"


@dataclass(frozen=True)
class _Fed:
    """A query with a sink."""

    query: QueryRecord
    feeder: SinkFeeder
    parts: list[Part]
    before: tuple[QueryRecord, ...]  # versions whose results it continues and whose sink it feeds

    @property
    def key(self) -> str:
        return _key(self.query)

    @property
    def lane(self) -> str:
        """Sinks that are held up together, for instance by a cluster that is away, hold up nobody else."""
        kind, record = _kind(self.query)
        return kind.lane(record)


class Housekeeper:
    def __init__(self, store: Store, retention_us: int | None, now_us: Callable[[], int] = wall_us) -> None:
        self._store = store
        self._retention_us = retention_us
        self._now_us = now_us
        self._stopped = threading.Event()
        self._busy = threading.Lock()
        self._feeders: dict[str, tuple[dict[str, str], SinkFeeder]] = {}  # with what they are made from
        self._sinks: dict[str, Sink] = {}
        self._lanes = Lanes()
        self._waiting: dict[int, float] = {}  # by query, seconds until its sink takes more
        self._failed: dict[int, str] = {}  # by query, why its sink did not take results
        self._finished: set[int] = set()  # queries that were withdrawn and whose sinks have everything
        self._tidied = time.monotonic()
        self.trouble: str | None = None  # with what the last round failed
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._lanes.close()

    def sink(self, query: str) -> Sink:
        """A query's own sink, for instance to read what a memory sink has."""
        return self._sinks[query]

    def feed_sinks(self) -> None:
        """Brings the sinks up to what the log has now. One that fails or is slow does not keep the others waiting."""
        while (pause_s := self._feed(None)) is not None:
            time.sleep(pause_s)

    def finished(self) -> set[int]:
        """The queries that were withdrawn and whose sinks have all that they will ever get."""
        return set(self._finished)

    def _feed(self, patience_s: float | None) -> float | None:
        """One round. Who has nothing new is not visited; who is still busy with an earlier one is left alone.

        Returns after how many seconds the next sink takes more, of those that wait for their time.
        """
        with self._busy:
            if patience_s is None:
                self._lanes.wait()  # what is under way may have begun before the newest batch came
            fed = self._fed()
            for gone in self._failed.keys() - {one.query.id for one in fed}:
                del self._failed[gone]
            self._waiting.clear()
            look = look_at(part for fed_ in fed for part in fed_.parts)
            for one in fed:
                if one.feeder.is_behind(one.parts, look):
                    self._lanes.put(one.lane, one.query.id, partial(self._feed_one, one, look))
                else:
                    self._see_finished(one)
            del look
            broken = self._lanes.wait(patience_s)
            pause_s = min(self._waiting.values(), default=None)
        if broken:
            raise broken[0]
        if self._failed:
            raise SinkError("\n".join(self._failed.values()))
        return pause_s

    def _feed_one(self, one: _Fed, look: Look) -> None:
        try:
            one.feeder.feed(one.parts, partial(self._still, one.query, one.parts), look)
            self._failed.pop(one.query.id, None)
            self._see_finished(one)
        except SinkWaits as pause:
            self._failed.pop(one.query.id, None)
            self._waiting[one.query.id] = pause.seconds
        except SinkError as error:
            self._failed[one.query.id] = f"query {one.feeder.query}: {error}"

    def _see_finished(self, one: _Fed) -> None:
        """It has all that is there; a while after its query has left and its windows are closed, nothing more comes."""
        old_us = self._now_us() - GRACE_US
        ended = [q.id for q in (*one.before, one.query) if q.ended_us is not None and q.ended_us <= old_us]
        if not ended:
            return
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            self._finished.update(query for query in ended if not journal.owes(query))
        if one.query.id not in self._finished:
            return
        self._feeders.pop(one.key, None)
        if self._sinks.get(one.query.name) is one.feeder.sink:
            del self._sinks[one.query.name]

    def tidy(self) -> None:
        """Merges small files of the results logs and removes what is older than the retention and was fed to sinks."""
        with self._busy:
            fed, linked = self._fed(), self._linked()
            self._remove_states()
            for root in self._store.result_logs:
                compact(root)
                if self._retention_us is not None:
                    needed = [one.feeder.position.needed_from(root, one.parts) for one in fed]
                    first = min((batch for batch in needed if batch is not None), default=None)
                    old_us = self._now_us() - self._retention_us
                    retain(root, old_us, keep_from_batch=first, keep_after_us=linked.get(root.name))

    def _linked(self) -> dict[str, int]:
        """The carriers that make links, and up to when all readers have read those."""
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            return Links(ControllerState(journal.load(), {}, ())).read_us() if journal.has_links() else {}

    def _fed(self) -> list[_Fed]:
        """The queries with sinks that do not have everything: what feeds them, and where their results are."""
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            queries = journal.with_sinks()
            self._finished &= {query.id for query in queries}  # the journal knows of the others by now
            versions: dict[str, list[QueryRecord]] = {}
            for query in queries:
                if query.id not in self._finished:
                    versions.setdefault(_key(query), []).append(query)
            # A version that continues another one's results goes on feeding its sink, or begins with all of them.
            return [
                _Fed(newest, self._feeder(newest), read_parts(journal, self._store, newest), tuple(before))
                for *before, newest in versions.values()
            ]

    def _remove_states(self) -> None:
        """Of sinks that have everything, and of which the journal knows that."""
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            for path in self._store.sinks:
                _, series, _ = path.stem.rsplit("-", 2)
                # Not only of the sink of now: a query may come back to one that it had.
                if not journal.has_series(int(series)):
                    path.unlink(missing_ok=True)

    def _still(self, query: QueryRecord, parts: list[Part]) -> bool:
        with closing(Journal(self._store.journal, read_only=True)) as journal:
            return read_parts(journal, self._store, query) == parts

    def _feeder(self, query: QueryRecord) -> SinkFeeder:
        key = _key(query)
        kind, record = _kind(query)
        made_from, feeder = self._feeders.get(key, (None, None))
        if feeder is None or made_from != record:
            sink = self._sinks[query.name] = kind.open(record)
            state_file = self._store.sink(key) if kind.lasting else None
            feeder = SinkFeeder(query.name, sink, state_file, ordered=kind.ordered)
            self._feeders[key] = record, feeder
        return feeder

    def _run(self) -> None:
        while not self._stopped.wait(FEED_S):
            self.round()

    def round(self) -> None:
        """Feeds sinks, and tidies now and then. What fails is shown by `trouble`, and tried again the next time."""
        try:
            if time.monotonic() - self._tidied > COMPACT_S:
                self._tidied = time.monotonic()
                self.tidy()
            self._feed(FEED_S)
            self.trouble = None
        except Exception as error:
            self._note(error)  # results are safe in the log

    def _note(self, error: Exception) -> None:
        """Once, until it is over or another one: a sink may be away for days."""
        text = str(error) if isinstance(error, SinkError) else f"{type(error).__name__}: {error}"
        if text != self.trouble:
            self.trouble = text
            trace = None if isinstance(error, SinkError) else error
            log.warning("housekeeping failed, and is tried again: %s", text, exc_info=trace)
