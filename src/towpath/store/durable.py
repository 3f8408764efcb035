"""Files that are either there as a whole or not at all, also after a power cut."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's entries, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(temporary: Path, final: Path) -> None:
    """Give a finished file its name."""
    sync(temporary)
    os.replace(temporary, final)
    sync(final.parent)


@contextmanager
def writing(final: Path, *, lasting: bool = True, alone: bool = True) -> Iterator[Path]:
    """Gives a path to write to, and what was written its name in one step: nobody ever sees half of it.

    `lasting`: a power cut must not lose it; without, it is made again after a start, or it is nothing without the
    process. `alone`: nobody else writes the same file at the same time.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    # No suffix, and a dot: who reads whole folders passes it over. What a crash leaves, the next time writes over.
    scratch = final.with_name(f".tmp-{final.stem}" if alone else f".tmp-{uuid.uuid4().hex}")
    try:
        yield scratch
        if lasting:
            publish(scratch, final)
        else:
            os.replace(scratch, final)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, data: bytes) -> None:
    with writing(path) as scratch:
        scratch.write_bytes(data)


def write_json(path: Path, data: Any, *, lasting: bool = True) -> None:
    with writing(path, lasting=lasting) as scratch:
        scratch.write_text(json.dumps(data), encoding="utf-8")
