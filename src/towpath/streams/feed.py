"""Several streams of one schema class as one replayable, time-aligned feed.

A carrier has one watermark for everything it reads, so a stream that lags behind its neighbours would be dropped as
late. The feed prevents that: it releases rows only up to the *frontier*, the event time that every stream has reached
(idle streams apart).

A position says how many files are known and up to which event time they were released, and how far generators have run.
Between two positions lies a fixed set of rows, so a micro-batch can be repeated:
    rows of known files with time in (released, released'], and rows of new files with time <= released'.
A row older than what was released (it is late, or its file came late) belongs to the batch that finds its file.

Streams of one folder that differ in the value of a column are read together, once; they have one producer, who keeps
them in step. Rows and files that are refused are written down (rejected.py) before the index counts on the others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from towpath.schema import BEFORE_ALL_US
from towpath.store.linefile import LineFile
from towpath.streams.base import Generator
from towpath.streams.fields import as_pairs
from towpath.streams.files import FIELD, Folder, Listed, StoredFile
from towpath.streams.portions import Pending, until_us
from towpath.streams.reading import Form, Reject, Unreadable
from towpath.streams.registry import generator
from towpath.streams.rejected import DeadLetters

# How much stream time one batch of a generator may hold at least, so that catching up comes in portions.
CATCH_UP_US = 20_000_000


@dataclass(frozen=True)
class FeedPosition:
    files: int = 0
    released_us: int = BEFORE_ALL_US
    elapsed_us: int = 0

    def to_json(self) -> dict[str, int]:
        return {"files": self.files, "released_us": self.released_us, "elapsed_us": self.elapsed_us}

    @staticmethod
    def from_json(value: dict[str, int]) -> FeedPosition:
        return FeedPosition(**value)


@dataclass(frozen=True)
class FeedSlice:
    """A piece of work: rows of one file between two times, or rows first to last of a generator."""

    origin: str  # the key of a folder, or the name of a generated stream
    file: StoredFile | None = None
    after_us: int = BEFORE_ALL_US
    until_us: int = 0
    first: int = 0
    last: int = 0

    @property
    def rows(self) -> int:
        return self.file.rows if self.file else self.last - self.first


@dataclass
class _Growing:
    """What is known of the streams of a folder."""

    folder: Folder
    letters: DeadLetters
    idle_after_s: float
    taken: dict[str, StoredFile] = field(default_factory=dict)
    newest_us: int | None = None
    heard_at: float = field(default_factory=time.monotonic)
    behind_since: float | None = None  # another stream is ahead, and waits for this one

    def look(self, front_us: int | None, now: float) -> None:
        """`front_us` is how far the first of all streams has come."""
        behind = front_us is not None and (self.newest_us is None or self.newest_us < front_us)
        self.behind_since = (now if self.behind_since is None else self.behind_since) if behind else None

    def silent(self, now: float) -> bool:
        """Whether others have waited for it long enough; silence alone is nobody's loss."""
        if self.behind_since is None or self.idle_after_s <= 0:
            return False
        return now - max(self.heard_at, self.behind_since) > self.idle_after_s


class Feed:
    """Reads the streams of one class.

    `index` keeps the order in which files were found. `drain` is a file that, once there, says that no more is to be
    waited for: {"at_us": wall-clock time, "close": whether all that is there is to be released}.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self._schema = _schema(spec)
        self._time: str = spec["time"]
        self._anchor_us: int = spec["anchor_us"]
        self._index = LineFile(Path(spec["index"]))
        self._drain = Path(spec["drain"])
        self._most_rows: int = spec["most_rows"]
        self._files: dict[str, _Growing] = {}
        self._generators: dict[str, Generator] = {}
        for stream in spec["streams"]:
            source = stream["source"]
            if source["type"] != "files":
                # A counter has no times of its own: it starts when the job does.
                begin = {"start_us": self._anchor_us} if source["type"] == "rate" else {}
                self._generators[stream["name"]] = generator(source | begin)
        for folder, idle_after_ms in folders(spec["streams"], self._schema, self._time):
            letters = DeadLetters(Path(spec["rejected"]), folder.key, [name for _, name in folder.streams])
            self._files[folder.key] = _Growing(folder, letters, idle_after_ms / 1000)
        self._known: list[tuple[str, StoredFile]] = []
        self.known: FeedPosition | None = None  # what `advance` has found, whether or not it may be released
        self.more = False  # what may be released and was left for later
        self._passed = 0  # files at the front of the index that have nothing more to give
        self._load_index()

    # --- positions ---------------------------------------------------------------------------------------------------

    def advance(self, start: FeedPosition) -> FeedPosition:
        """The newest position that may be released now."""
        drained = self._drained()
        self._discover()
        frontier = max(start.released_us, self._frontier(drained))
        released = until_us(self._pending(start), start.released_us, frontier, self._most_rows)
        target = self._target_us(drained["at_us"] if drained else None)
        elapsed = max(start.elapsed_us, min(target, start.elapsed_us + self._portion_us))
        newest = (s.newest_us for s in self._files.values() if s.newest_us is not None)
        self.known = FeedPosition(len(self._known), max([released, *newest]), elapsed)
        self.more = released < frontier or elapsed < target
        return FeedPosition(len(self._known), released, elapsed)

    def _pending(self, start: FeedPosition) -> list[Pending]:
        found = []
        for n in range(self._passed, len(self._known)):
            file, after = self._known[n][1], start.released_us if n < start.files else BEFORE_ALL_US
            if file.rows and file.newest_us > after:
                found.append(Pending(file.oldest_us, file.newest_us, file.rows, after))
        return found

    def _frontier(self, drained: dict[str, Any] | None) -> int:
        """The event time that all have reached; an idle stream is not waited for while there is time to wait at all."""
        now = time.monotonic()
        front = max((s.newest_us for s in self._files.values() if s.newest_us is not None), default=None)
        for stream in self._files.values():
            stream.look(front, now)
        if drained is None:
            waiting = [s for s in self._files.values() if not s.silent(now)]
        else:
            waiting = [] if drained["close"] else list(self._files.values())
        if any(s.newest_us is None for s in waiting):
            return BEFORE_ALL_US
        if waiting:
            return min(s.newest_us for s in waiting if s.newest_us is not None)
        return max((s.newest_us for s in self._files.values() if s.newest_us is not None), default=BEFORE_ALL_US)

    def _target_us(self, drained_at: int | None) -> int:
        """How far the generators' clock has run; draining runs bounded generators to their end and stops the others."""
        if not self._generators:
            return 0
        ends = [g.rows / g.rate * 1e6 + 1e6 for g in self._generators.values() if g.rows is not None]
        # Beyond its end a bounded generator has nothing: a position that stays is a micro-batch that need not run.
        end = int(max(ends)) if len(ends) == len(self._generators) else None
        if drained_at is None:
            now = time.time_ns() // 1000 - self._anchor_us
            return now if end is None else min(now, end)
        return drained_at - self._anchor_us if end is None else end

    @property
    def _portion_us(self) -> int:
        rate = sum(g.rate for g in self._generators.values())
        return max(CATCH_UP_US, int(self._most_rows / rate * 1e6)) if rate else CATCH_UP_US

    def _drained(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._drain.read_text())
        except FileNotFoundError:
            return None
        return found

    # --- slices ------------------------------------------------------------------------------------------------------

    def slices(self, start: FeedPosition, end: FeedPosition) -> list[FeedSlice]:
        self._load_index()
        self._pass_over(start)
        found = []
        for n in range(self._passed, end.files):
            key, file = self._known[n]
            after = start.released_us if n < start.files else BEFORE_ALL_US
            # The job may have given a folder up since.
            if file.rows and file.newest_us > after and file.oldest_us <= end.released_us and key in self._files:
                found.append(FeedSlice(key, file, after, end.released_us))
        for stream, made in self._generators.items():
            first, last = made.count_until(start.elapsed_us), made.count_until(end.elapsed_us)
            if last > first:
                found.append(FeedSlice(stream, first=first, last=last))
        return found

    def _pass_over(self, start: FeedPosition) -> None:
        """Files at the front that were released to their end need not be looked at again; a long run has many."""
        while self._passed < start.files and self._known[self._passed][1].newest_us <= start.released_us:
            self._passed += 1

    def read(self, slices: Sequence[FeedSlice]) -> Iterator[pa.RecordBatch]:
        """The rows of some slices, with the stream's name in front."""
        tables = [self._table(s) for s in slices]
        if tables:
            yield from pa.concat_tables(tables).combine_chunks().to_batches()

    def _table(self, piece: FeedSlice) -> pa.Table:
        if piece.file is not None:
            return self._files[piece.origin].folder.read(piece.file, piece.after_us, piece.until_us)
        batch = self._generators[piece.origin].batch(piece.first, piece.last)
        table = pa.Table.from_batches([batch]).select(self._schema.names).cast(self._schema)
        return table.add_column(0, FIELD, pa.repeat(piece.origin, table.num_rows))

    # --- the index of files ------------------------------------------------------------------------------------------

    def _discover(self) -> None:
        """Adds new files to the index, oldest modification first, durably before anybody relies on it."""
        fresh = sorted(
            (listed, key)
            for key, growing in self._files.items()
            for listed in growing.folder.list()
            if self._is_new(growing, listed)
        )
        found = [(key, file) for listed, key in fresh if (file := self._inspected(self._files[key], listed))]
        self._index.append([[key, *file.to_json()] for key, file in found])
        self._note(found)

    def _is_new(self, growing: _Growing, listed: Listed) -> bool:
        """Also one that has changed since, if nothing of it was good before: it may be good now."""
        known = growing.taken.get(listed.path)
        if known is None or (known.size, known.modified) == (listed.size, listed.modified):
            return known is None
        if known.rows:
            growing.letters.changed(listed.path)
            growing.taken[listed.path] = replace(known, size=listed.size, modified=listed.modified)
        return not known.rows

    def _inspected(self, growing: _Growing, listed: Listed) -> StoredFile | None:
        try:
            file, rejects = growing.folder.inspect(listed)
        except FileNotFoundError:
            return None  # it was taken away again
        except Unreadable as error:
            growing.letters.write(
                listed.path, [Reject(None, f"it cannot be read, and is tried again: {error}", rows=0)]
            )
            return None
        growing.letters.write(listed.path, rejects)
        return file

    def _load_index(self) -> None:
        self._note([(key, StoredFile(*rest)) for key, *rest in self._index.news()])

    def _note(self, found: Sequence[tuple[str, StoredFile]]) -> None:
        self._known += found
        for key, file in found:
            growing = self._files.get(key)
            if growing is None:
                continue
            growing.taken[file.path] = file
            growing.heard_at = time.monotonic()
            if file.rows:
                before_us = growing.newest_us
                growing.newest_us = file.newest_us if before_us is None else max(file.newest_us, before_us)


def folders(streams: Sequence[dict[str, Any]], schema: pa.Schema, time: str) -> Iterator[tuple[Folder, int]]:
    """The folders that streams of files are read from, each with its longest `idle_after_ms`."""
    together: dict[str, list[dict[str, Any]]] = {}
    for stream in streams:
        if stream["source"]["type"] == "files":
            together.setdefault(_folder([stream], schema, time).key, []).append(stream)
    for same in together.values():
        waits = [stream["idle_after_ms"] for stream in same]
        yield _folder(same, schema, time), 0 if 0 in waits else max(waits)


def _folder(streams: Sequence[dict[str, Any]], schema: pa.Schema, time: str) -> Folder:
    source, part = streams[0]["source"], streams[0].get("part")
    form = Form(
        source["format"],
        schema,
        time,
        source.get("header", True),
        source.get("delimiter", ","),
        tuple(source.get("nulls", ())),
        source.get("time_format"),
        as_pairs(source.get("fields", {})),
        tuple((name, digits, places) for name, digits, places in streams[0].get("decimals", ())),
    )
    values = [(stream["part"][1] if part else None, stream["name"]) for stream in streams]
    return Folder(source["path"], form, tuple(values), part[0] if part else None, source.get("glob", "*"))


def _schema(spec: dict[str, Any]) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(spec["schema"])))
