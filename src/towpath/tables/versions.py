"""The versions of a table, in its folder of the store, and which of them a micro-batch reads.

    current.json       the version in force
    <version>.arrow    its rows; a file never changes

A carrier notes beside its checkpoint which version a micro-batch has (`pinned`), before it reads a row of it.

Imported by Spark's Python workers in every micro-batch, so it imports next to nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from towpath.store import durable

CURRENT = "current.json"
KEPT_S = 600.0  # so long a version stays that was replaced: a reader may be about to note that it has it


def publish(folder: Path, rows: pa.Table) -> int | None:
    """Puts a version into force; None if these are the rows that are in force already."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    content = sink.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    before: dict[str, Any] = _read_current(folder) if has_version(folder) else {"version": 0, "digest": ""}
    if before["digest"] == digest:
        return None
    version: int = before["version"] + 1
    with durable.writing(version_file(folder, version)) as scratch:
        scratch.write_bytes(content)
    if before["version"]:
        os.utime(version_file(folder, before["version"]))  # from now on it is replaced
    durable.write_json(folder / CURRENT, {"version": version, "digest": digest, "rows": rows.num_rows})
    return version


def has_version(folder: Path) -> bool:
    return (folder / CURRENT).exists()


def current(folder: Path) -> int:
    version: int = _read_current(folder)["version"]
    return version


def _read_current(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / CURRENT).read_text())
    return found


def version_file(folder: Path, version: int) -> Path:
    return folder / f"{version}.arrow"


def load(folder: Path, version: int) -> pa.Table:
    with pa.memory_map(str(version_file(folder, version))) as file:
        return pa.ipc.open_file(file).read_all()


def sweep(folder: Path, read: Collection[int]) -> None:
    """Deletes the versions that are not in force, that nobody reads, and that were replaced a while ago."""
    in_force = current(folder)
    for path in folder.glob("[0-9]*.arrow"):
        old = time.time() - path.stat().st_mtime >= KEPT_S
        if old and int(path.stem) not in {in_force, *read}:
            path.unlink(missing_ok=True)


# --- pins ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Note:
    """What a micro-batch reads, and where it begins: up to there, tuples have had the versions before."""

    version: int
    begins: str


def pinned(pins: Path, batch: int, now: Callable[[], Note]) -> int:
    """The version that a micro-batch reads: the one that was noted, or the one in force now, which is noted first.

    A note is a folder with the version as the name of the file in it: folders are renamed in one step, and never onto
    another one that has something in it. So of several who note something at once, one does.
    """
    noted = _noted(pins / str(batch))
    if noted is not None:
        return noted.version
    _make(pins)
    scratch = pins / f".{uuid.uuid4().hex}"
    scratch.mkdir()
    note = now()
    (scratch / str(note.version)).write_text(note.begins)
    durable.sync(scratch / str(note.version))
    durable.sync(scratch)
    try:
        os.rename(scratch, pins / str(batch))
        durable.sync(pins)
        _forget_repeated(pins, batch)
    except OSError:
        shutil.rmtree(scratch, ignore_errors=True)
    noted = _noted(pins / str(batch))
    if noted is None:
        raise OSError(f"{pins}: the version of the table for micro-batch {batch} could not be noted")
    return noted.version


def _make(pins: Path) -> None:
    """In the folder of an epoch that is there: one that was taken over is not to come back."""
    for folder in (pins.parent, pins):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            durable.sync(folder.parent)


def changes(pins: Path) -> dict[int, Note]:
    """From which micro-batch on a carrier has read which version. The newest micro-batch is there, too."""
    if not pins.is_dir():
        return {}
    batches = sorted(int(name) for name in os.listdir(pins) if name.isdigit())
    return {batch: noted for batch in batches if (noted := _noted(pins / str(batch))) is not None}


def newest(pins: Path) -> int | None:
    """The version of the newest micro-batch, the only one that can be repeated."""
    known = changes(pins)
    return known[max(known)].version if known else None


def _noted(note: Path) -> Note | None:
    try:
        return next((Note(int(file.name), file.read_text()) for file in note.iterdir()), None)
    except FileNotFoundError:
        return None


def _forget_repeated(pins: Path, newest: int) -> None:
    """Of micro-batches that are over, the first one of each version says enough."""
    before = None
    for batch, note in changes(pins).items():
        if batch < newest and note.version == before:
            shutil.rmtree(pins / str(batch), ignore_errors=True)
        before = note.version
