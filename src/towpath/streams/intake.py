"""Lets the good files of a folder of Parquet into another folder, from which Spark's own reader takes them.

Spark fails at a file that it cannot read, and takes other types for something else than the readers of `reading.py` do.
So it is given only files that both take for the same: a link to each that has the stream's types, and a copy, cast, of
each that has others. What is refused is written down (rejected.py).

    <into>/<file>.parquet     a link, or a copy
    <into>/.<file>            what the file was like when it was let in

Everything follows from the file, so it does no harm when it is done twice: after a crash, or by two nodes at once.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.arrow import arrow_schema
from towpath.store import durable
from towpath.streams.definition import StreamDef, described
from towpath.streams.feed import folders
from towpath.streams.files import SUBFOLDER, Folder, Listed
from towpath.streams.reading import TEMPORAL, BadFile, Form, Reject, Unreadable, read
from towpath.streams.rejected import DeadLetters
from towpath.streams.sources import FilesSource

log = logging.getLogger(__name__)

# The ways to store each type that all readers understand in the same way: physical type and logical type.
STORED: dict[str, set[tuple[str, tuple[str | int | bool, ...]]]] = {
    "BOOLEAN": {("BOOLEAN", ("None",))},
    "INTEGER": {("INT32", ("None",)), ("INT32", ("Int", 32, True))},
    "BIGINT": {("INT64", ("None",)), ("INT64", ("Int", 64, True))},
    "DOUBLE": {("DOUBLE", ("None",))},
    "VARCHAR": {("BYTE_ARRAY", ("String",))},
    "TIMESTAMPTZ": {("INT64", ("Timestamp", "microseconds", True))},
    "DATE": {("INT32", ("Date",))},
}


@dataclass(frozen=True)
class _Taken:
    size: int | None
    modified: int
    rows: int


@dataclass
class Intake:
    folder: Folder
    into: Path
    letters: DeadLetters
    _taken: dict[str, _Taken] = field(default_factory=dict)

    def sweep(self) -> None:
        """Lets in what is new."""
        new: dict[str, _Taken] = {}
        try:
            for listed in sorted(self.folder.list()):
                known = self._known(listed.path)
                if known is None or (known.size, known.modified) != (listed.size, listed.modified):
                    self._look(listed, known, new)
        finally:
            self._remember(new)

    def _remember(self, new: Mapping[str, _Taken]) -> None:
        if any(taken.rows for taken in new.values()):
            durable.sync(self.into)  # a note without its file would keep the file out for ever
        for path, taken in new.items():
            with durable.writing(self._note(path), lasting=False, alone=False) as scratch:
                scratch.write_text(json.dumps([taken.size, taken.modified, taken.rows]))
            self._taken[path] = taken

    def _known(self, path: str) -> _Taken | None:
        if path not in self._taken:
            try:
                self._taken[path] = _Taken(*json.loads(self._note(path).read_text()))
            except (FileNotFoundError, ValueError):  # it was never let in, or the machine died over the note
                return None
        return self._taken[path]

    def _look(self, listed: Listed, known: _Taken | None, new: dict[str, _Taken]) -> None:
        """Notes in `new` what is to be remembered, unless the file has to be looked at again."""
        rows = known.rows if known else 0
        try:
            if rows:
                self.letters.changed(listed.path)
            else:
                rows = self._let_in(listed)
        except FileNotFoundError:
            return  # it was taken away again
        except Unreadable as error:
            self.letters.write(listed.path, [Reject(None, f"it cannot be read, and is tried again: {error}", rows=0)])
            return
        new[listed.path] = _Taken(listed.size, listed.modified, rows)

    def _let_in(self, listed: Listed) -> int:
        """How many rows of a file are let in."""
        if listed.size is None:
            self.letters.write(listed.path, [Reject(None, SUBFOLDER, rows=0)])
            return 0
        if rows := plain_rows(listed.path, self.folder.form):
            self._link(listed.path)
            self.letters.write(listed.path, [])
            return rows
        try:
            table, rejects = read(listed.path, self.folder.form)
        except Unreadable:
            raise
        except BadFile as error:
            self.letters.write(listed.path, [Reject(None, f"not a parquet file of these columns: {error}", rows=0)])
            return 0
        self.letters.write(listed.path, rejects)
        if table.num_rows:
            with durable.writing(self._place(listed.path), alone=False) as scratch:
                pq.write_table(table, scratch)
                os.utime(scratch, ns=(listed.modified, listed.modified))  # Spark takes files in by their times
        return table.num_rows

    def _link(self, path: str) -> None:
        # It has no content to lose; `sweep` sees to its name.
        with durable.writing(self._place(path), lasting=False, alone=False) as scratch:
            scratch.symlink_to(path)

    def _place(self, path: str) -> Path:
        return self.into / f"{_name(path)}.parquet"

    def _note(self, path: str) -> Path:
        return self.into / f".{_name(path)}"


def plain_rows(path: str, form: Form) -> int:
    """The rows of a file that has the stream's types, stored so that no reader can take it for something else.

    0 also if its footer does not say, and if a column is read as something else than it is.
    """
    if form.fields or form.decimals:
        return 0
    try:
        footer = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0
    columns = {footer.schema.column(n).path.lower(): n for n in range(footer.num_columns)}
    if sorted(columns) != sorted(field.name.lower() for field in footer.schema.to_arrow_schema()):
        return 0  # there are lists or structures
    assert form.time is not None, "streams have an event time"
    if form.time.lower() not in columns:
        return 0
    for name, type_ in form.types.items():
        place = columns.get(name.lower())
        if place is not None and not _is_plain(footer, place, name, type_, timed=name == form.time):
            return 0
    return int(footer.num_rows)


def _is_plain(footer: pq.FileMetaData, place: int, name: str, type_: str, *, timed: bool) -> bool:
    column = footer.schema.column(place)
    stored = column.path == name and column.max_repetition_level == 0 and column.max_definition_level <= 1
    if not stored or (column.physical_type, _logical(column)) not in STORED[type_]:
        return False
    return type_ not in TEMPORAL or all(
        _is_finite(footer.row_group(n).column(place).statistics, timed=timed) for n in range(footer.num_row_groups)
    )


def _logical(column: pq.ColumnSchema) -> tuple[str | int | bool, ...]:
    said = json.loads(column.logical_type.to_json())
    return said["Type"], *(said[key] for key in ("timeUnit", "isAdjustedToUTC", "bitWidth", "isSigned") if key in said)


def _is_finite(statistics: pq.Statistics | None, *, timed: bool) -> bool:
    """Whether a footer says that times and dates are not infinite, and the event time is not missing."""
    if statistics is None or not statistics.has_null_count or (timed and statistics.null_count):
        return False
    if not statistics.has_min_max:
        return not timed
    bound = 2**63 - 1 if statistics.physical_type == "INT64" else 2**31 - 1
    return -bound < statistics.min_raw and statistics.max_raw < bound


def _name(path: str) -> str:
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:24]


class Intakes:
    """All of a node, looked after by a thread."""

    def __init__(self, into: Path, rejected: Path, pause_s: float) -> None:
        self._into = into
        self._rejected = rejected
        self._pause_s = pause_s
        self._all: dict[Path, Intake] = {}
        self._failing: set[Path] = set()
        self._sweeping = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def let_in(self, streams: Sequence[StreamDef]) -> str:
        """Where Spark finds the good files of the folder of some streams; those that are there now are let in at once.

        A folder whose path has a scheme is left to Spark.
        """
        source = streams[0].source
        assert isinstance(source, FilesSource)
        if "://" in source.path:
            return source.path
        types = {c.name: c.type for c in streams[0].stream.columns}
        ((folder, _),) = folders([described(s) for s in streams], arrow_schema(types), streams[0].stream.time)
        letters = DeadLetters(self._rejected, folder.key, [name for _, name in folder.streams])
        into = self._into / folder.key
        into.mkdir(parents=True, exist_ok=True)
        self._all.setdefault(into, Intake(folder, into, letters))
        self.sweep()
        if self._thread is None or not self._thread.is_alive():
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
            self._thread.start()
        return str(into)

    def sweep(self) -> None:
        """Also when one of them fails, for a full disk or a folder that is gone for a while: it is tried again."""
        with self._sweeping:
            for into, intake in list(self._all.items()):
                try:
                    intake.sweep()
                    self._failing.discard(into)
                except Exception as error:
                    if into not in self._failing:  # reported once
                        log.warning("%s: new files cannot be let in, it is tried again: %s", intake.folder.path, error)
                    self._failing.add(into)

    def _run(self) -> None:
        while not self._stopped.wait(self._pause_s):
            self.sweep()

    def close(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
