"""The assignment table of a carrier: a folder of small Arrow files that Spark reads again in every micro-batch.

A Python data source on the static side of a stream-static join is planned and read anew for each micro-batch, so
changing the table adds and removes fragments without touching the running query. The version travels in a column and
comes back through an observed metric: that is how the controller knows which micro-batch was the first to see a change.

A change is a file of its own, so what a submit writes does not depend on how many fragments there are:

    table.json               version, and the files that make it up, oldest first with their rows
    <version>-<random>.arrow rows that came, and for each fragment that left its number without a version

    <version>.json           what `table.json` said of that version, for carriers that read a version by its number

`table.json` is replaced atomically, and a file never changes: a reader gets the old or the new version, never a part of
one. The newest files are merged as long as each is no larger than those behind it together, so there are few of them
and a row is rewritten a few times only. The first one, which holds most, is rewritten when a quarter of it has changed.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from towpath.arrow import arrow_schema
from towpath.plan.assignment import Row, TableChange
from towpath.schema import Type
from towpath.spark.assignment_source import MANIFEST, load, read_manifest, version_file, without_gone
from towpath.spark.types import ddl
from towpath.store import durable

RUN = 8  # so many small files at least are merged into one
BASE_SHARE = 4  # the first file is merged with the others when they have one row for so many of its own
SMALL = 256  # rows; a smaller first file is not worth the trouble
KEPT_S = 600.0  # so long a version can be read when there is a newer one

Files = list[tuple[str, int]]  # name and rows


def table_columns(columns: Mapping[str, Type]) -> dict[str, Type]:
    return {"_version": Type.INT, **columns}


def publish(
    folder: Path, version: int, columns: Mapping[str, Type], change: TableChange, *, by_version: bool = False
) -> int:
    """Brings the table to a version; returns how many rows were written for it.

    `by_version`: a micro-batch reads the version that it was given (spark/universal.py), so that one is kept a while.
    """
    schema = arrow_schema(table_columns(columns))
    folder.mkdir(parents=True, exist_ok=True)
    files = _before(folder, change)
    fresh = _table(schema, version, change)
    written = fresh.num_rows
    if fresh.num_rows or not files:
        files.append(_write(folder, version, fresh))
    if length := _run(files):
        merged = _merged(folder, [name for name, _ in files[-length:]], whole=length == len(files))
        written += merged.num_rows
        files[-length:] = [_write(folder, version, merged)]
    content = {"version": version, "files": files}
    kept = {name for name, _ in files}
    if by_version:
        kept.add(_write_json(version_file(folder, version), content))
        _touch_replaced(folder, kept)
    _write_json(folder / MANIFEST, content)
    _sweep(folder, kept, KEPT_S if by_version else 0.0)
    return written


def schema_ddl(columns: Mapping[str, Type]) -> str:
    return ddl(table_columns(columns))


def _before(folder: Path, change: TableChange) -> Files:
    """The files that a change goes on from."""
    if change.since is None:
        return []
    found = read_manifest(folder)
    if found["version"] != change.since:
        # Whoever asked brings the whole table the next time.
        raise ValueError(f"{folder}: a change of version {change.since}, and the table has version {found['version']}")
    return [(name, rows) for name, rows in found["files"]]


def _table(schema: pa.Schema, version: int, change: TableChange) -> pa.Table:
    gone: list[Row] = [{"_fragment": number} for number in change.removed]
    everyone: Sequence[Row] = [*change.added, *gone]
    versions = [version] * len(change.added) + [None] * len(gone)
    arrays = [
        pa.array(versions, pa.int32())
        if field.name == "_version"
        else pa.array([row.get(field.name) for row in everyone], field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _run(files: Files) -> int:
    """How many of the newest files are to be merged."""
    first, *others = [rows for _, rows in files]
    if others and BASE_SHARE * sum(others) >= max(first, SMALL):
        return len(files)
    total = length = 0
    for rows in reversed(others):
        if length and rows > total:
            break
        total, length = total + rows, length + 1
    return length if length >= RUN else 0


def _merged(folder: Path, names: Sequence[str], *, whole: bool) -> pa.Table:
    """`whole`: there are no older files, so who has left need not be remembered."""
    return without_gone(pa.concat_tables([load(folder / name) for name in names]), keep_gone=not whole)


def _write(folder: Path, version: int, table: pa.Table) -> tuple[str, int]:
    # A version may be published twice, after a crash or a failover; a reader may hold what it read by its name.
    name = f"{version:09d}-{uuid.uuid4().hex[:12]}.arrow"
    with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    durable.sync(folder / name)
    return name, table.num_rows


def _write_json(path: Path, content: Mapping[str, object]) -> str:
    durable.write_json(path, content)
    return path.name


def _touch_replaced(folder: Path, kept: set[str]) -> None:
    """The files of the version before get the time at which they were replaced."""
    with suppress(FileNotFoundError):
        before = read_manifest(folder)
        for name in {version_file(folder, before["version"]).name, *(name for name, _ in before["files"])} - kept:
            os.utime(folder / name)


def _sweep(folder: Path, kept: set[str], seconds: float) -> None:
    """Who has read the manifest before and does not find a file looks again; who reads by version has so long."""
    for path in (*folder.glob("*.arrow"), *folder.glob("[0-9]*.json")):
        if path.name not in kept and time.time() - path.stat().st_mtime >= seconds:
            path.unlink(missing_ok=True)
