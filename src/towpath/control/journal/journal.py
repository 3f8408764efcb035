"""The journal: every record of the controller in SQLite, so that a job goes on where it was and results are found."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from towpath.control.journal.archive import LIVE_FRAGMENTS, LIVE_PARTS, LIVE_QUERIES, OPEN_MOVES, Archive
from towpath.control.journal.archive import TABLES as ARCHIVE_TABLES
from towpath.control.journal.tables import TABLES, dump, load, shapes_of
from towpath.control.state.history import Entry, EventKind, SavedEntry
from towpath.control.state.records import (
    BEGINNING_US,
    CarrierRecord,
    FragmentRecord,
    MoveRecord,
    NodeRecord,
    PartRecord,
    QueryRecord,
    Record,
    State,
    StreamRecord,
)
from towpath.errors import StoreError
from towpath.schema import LINK

# Whether there is something to be said of a query: it has answered for something, or was set aside.
BEGUN = (
    "(failed IS NOT NULL OR EXISTS (SELECT 1 FROM parts WHERE query = queries.id AND settled "
    f"AND (until_us IS NULL OR until_us != {BEGINNING_US})))"
)
FORMAT = 14  # raised when the tables change
NEVER = 2**63 - 1  # the number of no entry

# Faults of towpath; other errors of SQLite are of the disk and the file on it.
OURS = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError)


R = TypeVar("R")


def wall_us() -> int:
    return time.time_ns() // 1000


class Journal:
    def __init__(self, path: Path, *, read_only: bool = False, now_us: Callable[[], int] = wall_us) -> None:
        self._path = path
        self.now_us = now_us
        if read_only and not path.exists():
            raise StoreError(f"{path.parent}: there is no job here yet; `towpath run JOB` makes one")
        path.parent.mkdir(parents=True, exist_ok=True)
        uri = path.absolute().as_uri()
        self._db = sqlite3.connect(f"{uri}?mode=ro" if read_only else uri, uri=True, timeout=30)
        self.archive = Archive(self._db)
        self._shapes: dict[str, str] = {}  # that were read, by name
        try:
            if not read_only:
                self._make_tables()
            self._check_format()
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{path}: expected a journal of towpath: {error}; restore the file, or start with a new store"
            ) from error

    def close(self) -> None:
        self._db.close()

    @property
    def anchor_us(self) -> int:
        """Wall-clock time at which this job first ran; generators count from here."""
        return int(self._about("anchor_us", str(self.now_us())))

    @property
    def streams(self) -> list[dict[str, Any]]:
        """The versions of the job's streams (streams/versions.py)."""
        found = self._db.execute("SELECT value FROM about WHERE key = 'streams'").fetchall()
        return [version for (said,) in found for version in json.loads(said)]

    @streams.setter
    def streams(self, versions: Sequence[dict[str, Any]]) -> None:
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO about VALUES ('streams', ?)", (json.dumps(versions),))

    @property
    def said(self) -> dict[str, Any]:
        """What the job file said of nodes and queries (edits.py)."""
        found = self._db.execute("SELECT value FROM about WHERE key = 'said'").fetchone()
        return {} if found is None else dict(json.loads(found[0]))

    @said.setter
    def said(self, said: Mapping[str, Any]) -> None:
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO about VALUES ('said', ?)", (json.dumps(said),))

    def probe(self) -> None:
        """Raises StoreError if nothing can be written down now."""
        try:
            with self._db:
                self._db.execute("INSERT OR REPLACE INTO about VALUES ('probed_us', ?)", (str(self.now_us()),))
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self._path}: nothing can be written down: {error}") from error

    def save(self, records: Iterable[Record]) -> None:
        """All or nothing. Raises StoreError, for instance when the disk is full."""
        try:
            with self._db:
                for record in records:
                    table, values = self._row(record)
                    marks = ", ".join("?" * len(values))
                    self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values)
        except OURS:
            raise
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{self._path}: what was decided could not be written down: {error}\n"
                "    -> nothing is lost, and what was asked for is not begun; see to room on the disk and ask again; "
                "a job that has ended for it is to be started again: it goes on from there"
            ) from error

    def _row(self, record: Record) -> tuple[str, list[Any]]:
        """Whoever decides has no clock, so the journal says when."""
        if isinstance(record, Entry):
            return "history", [None, self.now_us(), *_history_row(record)]
        if isinstance(record, QueryRecord) and not record.running and record.ended_us is None:
            record.ended_us = self.now_us()
        self._db.executemany("INSERT OR IGNORE INTO shapes VALUES (?, ?)", shapes_of(record))
        return dump(record)

    def _read(self, record: type[R], rows: Iterable[tuple[Any, ...]]) -> list[R]:
        return [load(record, row, self._shape) for row in rows]

    def _shape(self, name: str) -> str:
        if (known := self._shapes.get(name)) is None:
            (text,) = self._db.execute("SELECT text FROM shapes WHERE id = ?", (name,)).fetchone()
            known = self._shapes[name] = sys.intern(text)
        return known

    def load(self, *, ended: bool = False) -> State:
        """What the controller decides about; with `ended`, also what it is done with and the journal still keeps.

        Raises StoreError if it cannot be read.
        """
        try:
            return self._load(ended)
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{self._path}: cannot be read: {error}; see to its disk and start the job again; it goes on from there"
            ) from error

    def _load(self, ended: bool) -> State:
        state = State(last=self.archive.numbers())
        run, read = self._db.execute, self._read
        carriers = run("SELECT * FROM carriers ORDER BY length(id), id")
        fragments = run("SELECT * FROM fragments" if ended else LIVE_FRAGMENTS)
        parts = run("SELECT * FROM parts" if ended else LIVE_PARTS)
        queries = run("SELECT * FROM queries" if ended else LIVE_QUERIES)
        moves = run("SELECT * FROM moves" if ended else OPEN_MOVES)
        state.carriers = {carrier.id: carrier for carrier in read(CarrierRecord, carriers)}
        state.fragments = {fragment.id: fragment for fragment in read(FragmentRecord, fragments)}
        state.parts = {(part.query, part.branch, part.turn): part for part in read(PartRecord, parts)}
        state.queries = {query.id: query for query in read(QueryRecord, queries)}
        state.moves = {move.id: move for move in read(MoveRecord, moves)}
        state.nodes = {node.name: node for node in read(NodeRecord, run("SELECT * FROM nodes"))}
        state.streams = {stream.name: stream for stream in read(StreamRecord, run("SELECT * FROM streams"))}
        return state

    def history(
        self,
        *,
        query: str | None = None,
        node: str | None = None,
        since_us: int = 0,
        after: int = 0,
        before: int = NEVER,
        limit: int = -1,
    ) -> list[SavedEntry]:
        """The entries, oldest first, the newest `limit`: of a query and the fragments that answered it, of a node."""
        found = self._db.execute(
            "SELECT kind, text, query, fragment, nodes, number, at_us FROM history "
            "WHERE at_us >= :since AND number > :after AND number < :before "
            "AND (:query IS NULL OR query = :query OR fragment IN "
            "(SELECT p.fragment FROM parts p JOIN queries q ON q.id = p.query WHERE q.name = :query)) "
            "AND (:node IS NULL OR EXISTS (SELECT 1 FROM json_each(nodes) WHERE value = :node)) "
            "ORDER BY number DESC LIMIT :limit",
            {"query": query, "node": node, "since": since_us, "after": after, "before": before, "limit": limit},
        )
        return [
            SavedEntry(EventKind(kind), text, about, fragment, tuple(json.loads(nodes)), number, at_us)
            for kind, text, about, fragment, nodes, number, at_us in found
        ][::-1]

    def standing(self) -> tuple[int, list[tuple[int, str, str]]]:
        """The newest entry of the history, and what stood when it was written: fragments, carriers, queries."""
        with self._db:
            self._db.execute("BEGIN")
            (newest,) = self._db.execute("SELECT coalesce(max(number), 0) FROM history").fetchone()
            found = self._db.execute(
                "SELECT f.id, f.carrier, q.name FROM queries q JOIN parts p ON p.query = q.id "
                "JOIN fragments f ON f.id = p.fragment "
                "WHERE q.running AND p.until_us IS NULL AND p.handed_over_us IS NULL ORDER BY f.id, q.name"
            )
            return int(newest), found.fetchall()

    def moved_from(self, fragment: int) -> list[str]:
        """The queries that a fragment answered until it moved."""
        found = self._db.execute(
            "SELECT DISTINCT q.name FROM parts p JOIN queries q ON q.id = p.query "
            "WHERE p.fragment = ? AND p.handed_over_us IS NOT NULL ORDER BY q.name",
            (fragment,),
        )
        return [name for (name,) in found]

    def latest(self, *kinds: EventKind) -> EventKind | None:
        """Which of these happened last."""
        marks = ", ".join("?" * len(kinds))
        found = self._db.execute(
            f"SELECT kind FROM history WHERE kind IN ({marks}) ORDER BY number DESC LIMIT 1", tuple(map(str, kinds))
        ).fetchone()
        return None if found is None else EventKind(found[0])

    # --- for readers of results --------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Of queries that somebody asked for."""
        found = self._db.execute("SELECT DISTINCT name FROM queries WHERE origin != ? ORDER BY name", (LINK,))
        return [name for (name,) in found]

    def query(self, name: str) -> QueryRecord | None:
        """The query whose results go by that name: the newest, running or not, unless it has yet to begin."""
        row = self._db.execute(
            f"SELECT * FROM queries WHERE name = ? ORDER BY {BEGUN} DESC, id DESC LIMIT 1", (name,)
        ).fetchone()
        return None if row is None else load(QueryRecord, row, self._shape)

    def parts(self, query: int) -> list[tuple[PartRecord, str]]:
        """The parts of a query with their carriers, by SELECT and turn."""
        found = self._db.execute(
            "SELECT p.*, f.carrier FROM parts p JOIN fragments f ON f.id = p.fragment WHERE query = ? "
            "ORDER BY branch, turn",
            (query,),
        )
        return [(load(PartRecord, row, self._shape), row[-1]) for row in found]

    def versions(self, query: QueryRecord) -> list[QueryRecord]:
        """A query and the versions that it continues, oldest first: their results are one series."""
        series = "SELECT * FROM queries WHERE series = ? AND id <= ? ORDER BY id"
        return self._read(QueryRecord, self._db.execute(series, (query.series, query.id)))

    def queries(self) -> list[tuple[QueryRecord, list[PartRecord]]]:
        """Of every name the query that runs, else the one with results, with its parts."""
        order = f"PARTITION BY name ORDER BY running DESC, {BEGUN} DESC, id DESC"
        ranked = f"SELECT id, row_number() OVER ({order}) AS n FROM queries WHERE origin != '{LINK}'"
        newest = f"SELECT id FROM ({ranked}) WHERE n = 1"
        parts: dict[int, list[PartRecord]] = {}
        their = self._db.execute(f"SELECT * FROM parts WHERE query IN ({newest}) ORDER BY query, branch, turn")
        for part in self._read(PartRecord, their):
            parts.setdefault(part.query, []).append(part)
        found = self._db.execute(f"SELECT * FROM queries WHERE id IN ({newest}) ORDER BY name")
        return [(query, parts[query.id]) for query in self._read(QueryRecord, found)]

    def carriers(self) -> list[CarrierRecord]:
        return self._read(CarrierRecord, self._db.execute("SELECT * FROM carriers"))

    def fragments_of_past(self) -> dict[int, str]:
        """Those in carriers that read the past again, and which."""
        live = "f.status IN ('joining', 'live')"
        found = self._db.execute(
            f"SELECT f.id, c.id FROM fragments f JOIN carriers c ON c.id = f.carrier WHERE c.past AND {live}"
        )
        return dict(found.fetchall())

    def with_sinks(self) -> list[QueryRecord]:
        """The queries that have a sink of their own which does not have everything yet."""
        found = self._db.execute("SELECT * FROM queries WHERE sink IS NOT NULL AND NOT fed ORDER BY id")
        return self._read(QueryRecord, found)

    def owes(self, query: int) -> bool:
        """Whether a query that leaves is not complete, or windows are yet to be closed, whoever uses its fragments."""
        end = "coalesce(p.until_us, p.ceded_us + f.span_us)"
        found = self._db.execute(
            "SELECT 1 FROM parts p JOIN fragments f ON f.id = p.fragment JOIN carriers c ON c.id = f.carrier "
            "WHERE p.query = ? AND (NOT p.done "
            f"OR (p.windowed AND f.status != 'gone' AND coalesce(c.watermark_us, 0) < {end}))",
            (query,),
        )
        return found.fetchone() is not None

    def has_series(self, series: int) -> bool:
        """Whether there is a version of it left that a sink may be fed from."""
        found = self._db.execute("SELECT 1 FROM queries WHERE series = ? AND NOT fed LIMIT 1", (series,))
        return found.fetchone() is not None

    def has_links(self) -> bool:
        """Whether a derived stream is made."""
        return bool(self._db.execute("SELECT 1 FROM queries WHERE running AND origin = ? LIMIT 1", (LINK,)).fetchone())

    # --- about -------------------------------------------------------------------------------------------------------

    def _about(self, key: str, default: str) -> str:
        found = self._db.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        if found is None:
            with self._db:
                self._db.execute("INSERT INTO about VALUES (?, ?)", (key, default))
        return default if found is None else str(found[0])

    def _make_tables(self) -> None:
        self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a journal that is new
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(TABLES + ARCHIVE_TABLES)
        self._about("format", str(FORMAT))

    def _check_format(self) -> None:
        (found,) = self._db.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
        if found != str(FORMAT):
            raise StoreError(
                f"{self._path}: written by another version of towpath (format {found}, this one reads {FORMAT}); "
                "use that version, or start with a new store"
            )


def _history_row(entry: Entry) -> tuple[Any, ...]:
    return str(entry.kind), entry.text, entry.query, entry.fragment, json.dumps(entry.nodes)
