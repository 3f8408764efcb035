"""The assignment table as Spark reads it.

Imported by Spark's Python workers in every micro-batch, so it imports next to nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

FORMAT = "towpath_assignments"
VERSION = "towpath_version"
MANIFEST = "table.json"
NOBODY = -1  # the fragment of no query
ATTEMPTS = 50  # files vanish only when newer ones have replaced them, so this is never reached
REMEMBERED = 64  # tables

# A worker reads the tables of its carriers again and again: what it read last of each folder, by its files.
_read: dict[str, tuple[tuple[str, ...], list[pa.RecordBatch]]] = {}


def read_manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    return found


def load(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def without_gone(table: pa.Table, *, keep_gone: bool = False) -> pa.Table:
    """Without the rows of fragments that have left, and unless asked for, without the notes that say so."""
    notes = pc.is_null(table["_version"])
    gone = pc.filter(table["_fragment"], notes)
    if not len(gone):
        return table
    stays = pc.invert(pc.is_in(table["_fragment"], value_set=gone.combine_chunks()))
    if keep_gone:
        # Of who came and left in these very files nothing need be known to anybody.
        came = pc.filter(table["_fragment"], pc.invert(notes)).combine_chunks()
        stays = pc.or_(stays, pc.and_(notes, pc.invert(pc.is_in(table["_fragment"], value_set=came))))
    return table.filter(stays)


def read_table(folder: str) -> Iterator[pa.RecordBatch]:
    """One version of the table, entire."""
    for _ in range(ATTEMPTS):
        manifest = read_manifest(Path(folder))
        try:
            rows = _rows(folder, tuple(name for name, _ in manifest["files"]))
        except FileNotFoundError:
            continue  # a newer version has replaced it meanwhile
        yield from rows
        yield _nobody(rows[0].schema, manifest["version"])
        return
    raise FileNotFoundError(f"{folder}: the files of the assignment table vanished in {ATTEMPTS} attempts to read them")


def version_file(folder: Path, version: int) -> Path:
    """What a table was made of when it had this version."""
    return folder / f"{version:09d}.json"


def read_version(folder: str, version: int) -> tuple[tuple[str, ...], list[pa.RecordBatch]]:
    """The files and the rows of a version that a micro-batch was given, if there is a newer one by now, too."""
    files = tuple(name for name, _ in json.loads(version_file(Path(folder), version).read_text())["files"])
    return files, _rows(folder, files)


def _rows(folder: str, files: tuple[str, ...]) -> list[pa.RecordBatch]:
    known = _read.get(folder)
    if known is None or known[0] != files:
        table = without_gone(pa.concat_tables([load(Path(folder) / name) for name in files])).combine_chunks()
        # An empty one still has a schema.
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        known = files, batches
        while len(_read) >= REMEMBERED:
            del _read[next(iter(_read))]
        _read[folder] = known
    return known[1]


def _nobody(schema: pa.Schema, version: int) -> pa.RecordBatch:
    """A row that matches nothing, so that every version has a row that names it: the newest one in the table."""
    row = {"_version": version, "_fragment": NOBODY}
    return pa.RecordBatch.from_pylist([row], schema=schema)


class AssignmentReader(DataSourceReader):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from read_table(self._folder)


class AssignmentSource(DataSource):
    """Options: path (the table's folder), schema (its columns as DDL)."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return self.options["schema"]

    def reader(self, schema: StructType) -> DataSourceReader:
        return AssignmentReader(self.options["path"])


class VersionReader(AssignmentReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (read_manifest(Path(self._folder))["version"],)


class VersionSource(DataSource):
    """The version of a table that those read it by who do more than to join it. Options: path (the table's folder)."""

    @classmethod
    def name(cls) -> str:
        return VERSION

    def schema(self) -> str:
        return "_version int"

    def reader(self, schema: StructType) -> DataSourceReader:
        return VersionReader(self.options["path"])
