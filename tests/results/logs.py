"""Result logs as Spark writes them, and crashes at any step."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from towpath.results import Part

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("_fragment", pa.int32()), ("_time", TIME), ("_born", TIME), ("v", pa.int64()), ("s", pa.string())])
COLUMNS = (("v", "v"),)


class Row(NamedTuple):
    fragment: int
    time: int
    v: int
    born: int = 0


class Crash(BaseException):
    """The process dies here."""


def write_batch(root: Path, number: int, rows: Iterable[Row], *, committed: bool = True) -> Path:
    """Two part files, as two tasks would write them, with the other files that Spark leaves beside them."""
    folder = root / f"batch={number}"
    folder.mkdir(parents=True)
    rows = list(rows)
    for task, some in enumerate((rows[::2], rows[1::2])):
        columns = [[r.fragment for r in some], [r.time for r in some], [r.born for r in some], [r.v for r in some]]
        table = pa.table([*columns, [f"row {r.v}" for r in some]], schema=SCHEMA)
        pq.write_table(table, folder / f"part-{task:05d}.snappy.parquet")
        (folder / f".part-{task:05d}.snappy.parquet.crc").write_bytes(b"crc")
    if committed:
        (folder / "_SUCCESS").touch()
    return folder


def part(root: Path, fragment: int, **others: Any) -> Part:
    return Part(root, fragment, **{"columns": COLUMNS, **others})


def values(table: pa.Table) -> list[int]:
    return table.column("v").to_pylist() if table.num_rows else []


@contextlib.contextmanager
def crash_at(step: int | None) -> Iterator[None]:
    """Die before the given step that changes the disk, counted from 0; all steps are done if there are fewer."""
    if step is None:
        yield
        return
    counter = itertools.count()

    def dying(action: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(counter) >= step:
                raise Crash
            return action(*args, **kwargs)

        return call

    with contextlib.ExitStack() as patches:
        for name in ("replace", "unlink", "rmdir", "fsync", "utime"):
            patches.enter_context(mock.patch.object(os, name, dying(getattr(os, name))))
        with contextlib.suppress(Crash):
            yield
