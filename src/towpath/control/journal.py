"""The journal: every record of the controller in SQLite, so that a job goes on where it was and results are found."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from towpath.control.archive import LIVE_FRAGMENTS, LIVE_PARTS, LIVE_QUERIES, OPEN_MOVES, Archive
from towpath.control.archive import TABLES as ARCHIVE_TABLES
from towpath.control.fence import Step
from towpath.control.history import Entry, Kind, Told
from towpath.control.records import (
    BEGINNING_US,
    CarrierRecord,
    FragmentRecord,
    MoveRecord,
    NodeRecord,
    PartRecord,
    QueryRecord,
    Record,
    Since,
    State,
    Status,
    StreamRecord,
)
from towpath.errors import StoreError
from towpath.plan.serial import dump_template, dump_value, load_template, load_value
from towpath.schema import LINK

# Whether there is something to be said of a query: it has answered for something, or was set aside.
BEGUN = (
    "(failed IS NOT NULL OR EXISTS (SELECT 1 FROM parts WHERE query = queries.id AND settled "
    f"AND (until_us IS NULL OR until_us != {BEGINNING_US})))"
)
FORMAT = 11  # raised when the tables change

TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS carriers (
    id TEXT PRIMARY KEY, node TEXT NOT NULL, template TEXT NOT NULL, delay_us INTEGER NOT NULL,
    version INTEGER NOT NULL, inputs_us TEXT NOT NULL, watermark_us INTEGER,
    late TEXT NOT NULL, epoch INTEGER NOT NULL, last INTEGER NOT NULL, highest_us INTEGER, doubtful TEXT NOT NULL,
    ends TEXT NOT NULL, unheard INTEGER NOT NULL, past INTEGER NOT NULL, first_us INTEGER);
CREATE TABLE IF NOT EXISTS fragments (
    id INTEGER PRIMARY KEY, signature TEXT NOT NULL, carrier TEXT NOT NULL, rows TEXT NOT NULL,
    lookback_us INTEGER NOT NULL, span_us INTEGER NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL,
    from_us INTEGER, until_us INTEGER);
CREATE TABLE IF NOT EXISTS parts (
    query INTEGER NOT NULL, branch INTEGER NOT NULL, turn INTEGER NOT NULL, fragment INTEGER NOT NULL,
    columns TEXT NOT NULL, windowed INTEGER NOT NULL, settled INTEGER NOT NULL, from_us INTEGER, until_us INTEGER,
    moved_us INTEGER, held_us INTEGER, keys TEXT NOT NULL, "select" INTEGER NOT NULL, ceded_us INTEGER,
    deciding INTEGER, done INTEGER NOT NULL, since TEXT NOT NULL, asked_us INTEGER,
    PRIMARY KEY (query, branch, turn));
CREATE TABLE IF NOT EXISTS queries (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, sql TEXT NOT NULL, running INTEGER NOT NULL, sink TEXT,
    origin TEXT NOT NULL, fragments TEXT NOT NULL, failed TEXT, ended_us INTEGER, fed INTEGER NOT NULL,
    replaces INTEGER, series INTEGER NOT NULL, types TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS moves (
    id INTEGER PRIMARY KEY, source INTEGER NOT NULL, target INTEGER NOT NULL, columns TEXT NOT NULL,
    reason TEXT NOT NULL, step TEXT NOT NULL, fence_us INTEGER, version INTEGER, fences INTEGER NOT NULL,
    keys TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (name TEXT PRIMARY KEY, draining INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS streams (name TEXT PRIMARY KEY, late INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS history (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    query TEXT, fragment INTEGER, nodes TEXT NOT NULL);
"""

# Faults of towpath; other errors of SQLite are of the disk and the file on it.
OURS = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError)


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

    def _row(self, record: Record) -> tuple[str, tuple[Any, ...]]:
        """Whoever decides has no clock, so the journal says when."""
        if isinstance(record, Entry):
            return "history", (None, self.now_us(), *_told(record))
        if isinstance(record, QueryRecord) and not record.running and record.ended_us is None:
            record.ended_us = self.now_us()
        return _row(record)

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
        for row in self._db.execute("SELECT * FROM carriers ORDER BY length(id), id"):
            state.carriers[row[0]] = _carrier(row)
        for row in self._db.execute("SELECT * FROM fragments" if ended else LIVE_FRAGMENTS):
            state.fragments[row[0]] = _fragment(row)
        for row in self._db.execute("SELECT * FROM parts" if ended else LIVE_PARTS):
            state.parts[row[0], row[1], row[2]] = _part(row)
        for row in self._db.execute("SELECT * FROM queries" if ended else LIVE_QUERIES):
            state.queries[row[0]] = _query(row)
        for row in self._db.execute("SELECT * FROM moves" if ended else OPEN_MOVES):
            state.moves[row[0]] = _move(row)
        for name, draining in self._db.execute("SELECT * FROM nodes"):
            state.nodes[name] = NodeRecord(name, bool(draining))
        for name, late in self._db.execute("SELECT * FROM streams"):
            state.streams[name] = StreamRecord(name, late)
        return state

    def history(
        self, *, query: str | None = None, node: str | None = None, since_us: int = 0, after: int = 0, limit: int = -1
    ) -> list[Told]:
        """What was told, oldest first, the newest `limit`: of a query and the fragments that answered it, of a node."""
        found = self._db.execute(
            "SELECT kind, text, query, fragment, nodes, number, at_us FROM history "
            "WHERE at_us >= :since AND number > :after "
            "AND (:query IS NULL OR query = :query OR fragment IN "
            "(SELECT p.fragment FROM parts p JOIN queries q ON q.id = p.query WHERE q.name = :query)) "
            "AND (:node IS NULL OR EXISTS (SELECT 1 FROM json_each(nodes) WHERE value = :node)) "
            "ORDER BY number DESC LIMIT :limit",
            {"query": query, "node": node, "since": since_us, "after": after, "limit": limit},
        )
        return [
            Told(Kind(kind), text, about, fragment, tuple(json.loads(nodes)), number, at_us)
            for kind, text, about, fragment, nodes, number, at_us in found
        ][::-1]

    def latest(self, *kinds: Kind) -> Kind | None:
        """Which of these was told last."""
        marks = ", ".join("?" * len(kinds))
        found = self._db.execute(
            f"SELECT kind FROM history WHERE kind IN ({marks}) ORDER BY number DESC LIMIT 1", tuple(map(str, kinds))
        ).fetchone()
        return None if found is None else Kind(found[0])

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
        return None if row is None else _query(row)

    def parts(self, query: int) -> list[tuple[PartRecord, str]]:
        """The parts of a query with their carriers, by SELECT and turn."""
        found = self._db.execute(
            "SELECT p.*, f.carrier FROM parts p JOIN fragments f ON f.id = p.fragment WHERE query = ? "
            "ORDER BY branch, turn",
            (query,),
        )
        return [(_part(row[:-1]), row[-1]) for row in found]

    def versions(self, query: QueryRecord) -> list[QueryRecord]:
        """A query and the versions that it continues, oldest first: their results are one series."""
        series = "SELECT * FROM queries WHERE series = ? AND id <= ? ORDER BY id"
        return [_query(row) for row in self._db.execute(series, (query.series, query.id))]

    def queries(self) -> list[tuple[QueryRecord, list[PartRecord]]]:
        """Of every name the query that runs, else the one with results, with its parts."""
        order = f"PARTITION BY name ORDER BY running DESC, {BEGUN} DESC, id DESC"
        ranked = f"SELECT id, row_number() OVER ({order}) AS n FROM queries WHERE origin != '{LINK}'"
        newest = f"SELECT id FROM ({ranked}) WHERE n = 1"
        parts: dict[int, list[PartRecord]] = {}
        for row in self._db.execute(f"SELECT * FROM parts WHERE query IN ({newest}) ORDER BY query, branch, turn"):
            parts.setdefault(row[0], []).append(_part(row))
        found = self._db.execute(f"SELECT * FROM queries WHERE id IN ({newest}) ORDER BY name")
        return [(query, parts[query.id]) for query in map(_query, found)]

    def carriers(self) -> list[CarrierRecord]:
        return [_carrier(row) for row in self._db.execute("SELECT * FROM carriers")]

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
        return [_query(row) for row in found]

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


def _row(record: Record) -> tuple[str, tuple[Any, ...]]:
    match record:
        case CarrierRecord():
            template, inputs = json.dumps(dump_template(record.template)), json.dumps(record.inputs_us)
            counts = (record.watermark_us, json.dumps(record.late), record.epoch, record.last)
            doubts = (record.highest_us, json.dumps(record.doubtful), json.dumps(record.ends), record.unheard)
            what = (record.id, record.node, template, record.delay_us, record.version)
            return "carriers", (*what, inputs, *counts, *doubts, record.past, record.first_us)
        case FragmentRecord():
            rows = json.dumps([{k: dump_value(v) for k, v in row.items()} for row in record.rows])
            name = (record.id, record.signature, record.carrier)
            status = (str(record.status), record.version, record.from_us, record.until_us)
            return "fragments", (*name, rows, record.lookback_us, record.span_us, *status)
        case PartRecord():
            values = list(astuple(record))
            values[4], values[11] = json.dumps(record.columns), json.dumps(record.keys)
            return "parts", tuple(values)
        case QueryRecord():
            sink = None if record.sink is None else json.dumps(record.sink)
            return "queries", (
                record.id,
                record.name,
                record.sql,
                record.running,
                sink,
                record.origin,
                record.fragments,
                record.failed,
                record.ended_us,
                record.fed,
                record.replaces,
                record.series,
                json.dumps(record.types),
            )
        case MoveRecord():
            values = list(astuple(record))
            values[3], values[9] = json.dumps(record.columns), json.dumps(record.keys)
            return "moves", tuple(values)
        case NodeRecord():
            return "nodes", astuple(record)
        case StreamRecord():
            return "streams", astuple(record)
    raise TypeError(f"expected a record of a table, got {record!r}")


def _told(entry: Entry) -> tuple[Any, ...]:
    return str(entry.kind), entry.text, entry.query, entry.fragment, json.dumps(entry.nodes)


def _carrier(row: tuple[Any, ...]) -> CarrierRecord:
    number, node, template, delay_us, version, inputs_us, watermark_us, late, epoch, last, *doubts = row
    highest_us, doubtful, ends, unheard, past, first_us = doubts
    return CarrierRecord(
        number,
        node,
        load_template(json.loads(template)),
        delay_us,
        version,
        tuple(json.loads(inputs_us)),
        watermark_us,
        tuple(json.loads(late)),
        epoch,
        last,
        highest_us,
        tuple(json.loads(doubtful)),
        tuple(json.loads(ends)),
        unheard,
        bool(past),
        first_us,
    )


def _fragment(row: tuple[Any, ...]) -> FragmentRecord:
    number, signature, carrier, rows, lookback_us, span_us, status, *rest = row
    table = tuple({k: load_value(v) for k, v in r.items()} for r in json.loads(rows))
    return FragmentRecord(number, signature, carrier, table, lookback_us, span_us, Status(status), *rest)


def _part(row: tuple[Any, ...]) -> PartRecord:
    *times, keys, select, ceded_us, deciding, done, since, asked_us = row[7:]
    query, branch, turn, fragment, columns, windowed, settled = row[:7]
    names = tuple((out, log) for out, log in json.loads(columns))
    part = PartRecord(query, branch, turn, fragment, names, bool(windowed), bool(settled), *times)
    how = {"ceded_us": ceded_us, "deciding": deciding, "done": bool(done), "since": Since(since), "asked_us": asked_us}
    return replace(part, keys=tuple(json.loads(keys)), select=select, **how)


def _move(row: tuple[Any, ...]) -> MoveRecord:
    number, source, target, columns, reason, step, *rest, keys = row
    move = MoveRecord(number, source, target, tuple(json.loads(columns)), reason, Step(step), *rest)
    return replace(move, keys=tuple(json.loads(keys)))


def _query(row: tuple[Any, ...]) -> QueryRecord:
    number, name, sql, running, sink, *rest, fed, replaces, series, types = row
    known = QueryRecord(number, name, sql, bool(running), None if sink is None else json.loads(sink), *rest)
    return replace(known, fed=bool(fed), replaces=replaces, series=series, types=tuple(json.loads(types)))
