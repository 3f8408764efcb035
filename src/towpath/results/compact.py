"""Keeping a result log small in files and in bytes. One process at a time does this; Spark and readers go on meanwhile.

Every step leaves a log that reads the same: a merged file gets its name in one step, and from then on what it holds is
no longer read from where it came from; `sweep` removes that afterwards, now or after a crash.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from towpath.errors import StoreError
from towpath.results import log
from towpath.results.links import span
from towpath.results.log import Segment, Span
from towpath.store import durable

KEPT_RAW = 2  # the newest batches: Spark may be about to replay them
RUN = 4  # so many compacted files at least are merged into one
ROW_GROUP = 24 * 2048  # below 50,000 and a multiple of DuckDB's vectors, else a group gets longer than asked for
SETTINGS = {"threads": "1", "memory_limit": "1GB"}
TEMPORARY = ".tmp-"


@dataclass(frozen=True)
class CompactionReport:
    """What a compaction did."""

    batches: int = 0  # raw batches merged
    written: tuple[Path, ...] = ()


def compact(root: Path, *, min_batches: int = 32, target_rows: int = 4_000_000) -> CompactionReport:
    """Merge raw batches when there are enough of them, then small compacted files into larger ones."""
    root = log.place(root)
    sweep(root)
    written: list[Path] = []
    batches = 0
    raw = [segment for segment in log.segments(root) if segment.raw][:-KEPT_RAW]
    if len(raw) >= min_batches:
        for group in _groups(raw, target_rows):
            written += _merge(root, group)
            batches += len(group)
    while run := _run_of_small_ones(root, target_rows):
        written += _merge(root, run)
    return CompactionReport(batches, tuple(path for path in written if path.exists()))


def retain(
    root: Path, older_than_us_wall: int, *, keep_from_batch: int | None = None, keep_after_us: int | None = None
) -> tuple[Path, ...]:
    """Remove the compacted files whose newest rows were written before a wall-clock time, and return which they were.

    Batches from `keep_from_batch` on stay, and rows with a result time after `keep_after_us`, since somebody has yet to
    read them.
    """
    root = log.place(root)
    sweep(root)  # or batches that a removed file had replaced would count again
    old = [
        segment.path
        for segment in log.segments(root)
        if not segment.raw
        and (keep_from_batch is None or segment.last < keep_from_batch)
        and (keep_after_us is None or span(segment.path).newest_us <= keep_after_us)
        and segment.path.stat().st_mtime_ns < older_than_us_wall * 1000
    ]
    _remove(old)
    return tuple(old)


def sweep(root: Path) -> None:
    """Remove what an interrupted compaction left: unfinished files, and what its finished ones have replaced."""
    seen = log.names(root)
    live = set(seen.live_spans())
    _remove(list((root / log.COMPACT).glob(f"{TEMPORARY}*")))
    _remove(span.file(root) for span in seen.spans - live)
    _remove(path for number, path in sorted(seen.batches.items()) if number <= seen.newest_compacted)


def _groups(raw: Sequence[Segment], target_rows: int) -> Iterator[list[Segment]]:
    group: list[Segment] = []
    rows = 0
    for segment in raw:
        group.append(segment)
        rows += _rows(segment)
        if rows >= target_rows:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _run_of_small_ones(root: Path, target_rows: int) -> list[Segment]:
    """The newest compacted files, as long as each is no larger than all newer ones together.

    So sizes at least double from one file to the next once the newest few are passed: the number of files grows with
    the logarithm of the run's length, and so does how often a row is rewritten.
    """
    run: list[Segment] = []
    total = 0
    for segment in (s for s in reversed(log.segments(root)) if not s.raw):
        rows = _rows(segment)
        if run and (rows > total or total + rows > target_rows):
            break
        run.append(segment)
        total += rows
    return run[::-1] if len(run) >= RUN else []


def _merge(root: Path, group: Sequence[Segment]) -> list[Path]:
    """Put neighbours into one file. Batches without a row leave nothing behind."""
    files = [file for segment in group for file in segment.files]
    if not any(_rows(segment) for segment in group):
        _remove(segment.path for segment in group)
        return []
    final = Span(group[0].first, group[-1].last).file(root)
    if not final.parent.exists():
        final.parent.mkdir()
        durable.sync(root)
    with durable.writing(final) as scratch:
        _write(files, raw=group[0].raw, target=scratch)
        # A merged file is as old as its newest rows, whenever it was merged, so that retention goes by the rows.
        newest = max(file.stat().st_mtime_ns for file in files)
        os.utime(scratch, ns=(newest, newest))
    sweep(root)
    return [final]


def _write(files: list[Path], *, raw: bool, target: Path) -> None:
    columns = (
        "* EXCLUDE _file, regexp_extract(_file, 'batch=(\\d+)/[^/]*$', 1)::BIGINT AS _batch"
        if raw
        else "* EXCLUDE _file"
    )
    scan = "read_parquet(?, hive_partitioning = false, filename = '_file')"
    name = str(target).replace("'", "''")
    statement = f"""
        COPY (SELECT {columns} FROM {scan} ORDER BY _fragment, _time)
        TO '{name}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP})
    """
    spill = target.with_name(f"{TEMPORARY}spill")
    try:
        with duckdb.connect(config={**SETTINGS, "temp_directory": str(spill)}) as database:
            database.execute(statement, [log.patterns(files)])
    except duckdb.Error as error:
        raise StoreError(
            f"{target.parent.parent}: {files[0].name} and {len(files) - 1} more files cannot be merged: {error}\n"
            "    -> nothing is lost and the log is still read as it is; free disk space, or restore the damaged file"
        ) from error


def _rows(segment: Segment) -> int:
    try:
        return sum(pq.read_metadata(file).num_rows for file in segment.files)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{segment.path}: expected a Parquet file: {error}\n    -> restore the damaged file"
        ) from error


def _remove(paths: Iterable[Path]) -> None:
    folders = set()
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        folders.add(path.parent)
    for folder in folders:
        durable.sync(folder)
