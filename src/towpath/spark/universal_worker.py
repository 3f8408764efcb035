"""What Spark's Python workers do for universal carriers, and for the first rows of windows in all carriers.

A worker reads a version of a table once, and of the next version what is new: a fragment's number always stands for the
same pipeline.
"""

from __future__ import annotations

import atexit
import base64
import gc
import json
import os
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from towpath.arrow import arrow_schema
from towpath.plan.pipeline import Pipeline
from towpath.plan.ranking import RANKING, RankedBy
from towpath.plan.ranking import load as load_ranking
from towpath.plan.serial import dump_pipeline, load_pipeline
from towpath.plan.slots import after_aggregate
from towpath.schema import Type
from towpath.spark.assignment_source import read_version

if TYPE_CHECKING:
    from towpath.vector.fragments import VectorFragment

Batches = Iterator[pa.RecordBatch]
P = ParamSpec("P")
C = TypeVar("C")  # what fragments are compiled to

FILE = "_file"
WRITTEN = {FILE: Type.STRING}
"""What steps that write give back: the files that they have written."""
# So many rows are calculated at a time. Each time costs every fragment something, however few rows there are.
MOST_ROWS = 250_000
TABLES_KEPT = 16
COLLECTED_EVERY_S = 300.0
POSTS_KEPT = 65_536

# Spark has a task for every core already. To be said before Polars is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "1")


@dataclass(frozen=True)
class _CompiledTable:
    """What was made of a table's version: its fragments, and what they are compiled to for each step of a carrier."""

    files: tuple[str, ...]
    fragments: dict[int, VectorFragment]
    programs: dict[str, object]


_tables: dict[str, _CompiledTable] = {}  # those read last, by folder


_collected_at = time.monotonic()
atexit.register(gc.unfreeze)  # a process that ends cleans up as ever


def _settled(step: Callable[P, Batches]) -> Callable[P, Batches]:
    """Keeps what a step has compiled away from the garbage collector.

    PySpark calls it after every task, and it took five times as long as the task: compiled fragments are very many
    objects. Those that are left when fragments go are collected now and then.
    """

    @wraps(step)
    def settled(*args: P.args, **kwargs: P.kwargs) -> Batches:
        global _collected_at
        yield from step(*args, **kwargs)
        if time.monotonic() - _collected_at >= COLLECTED_EVERY_S:
            gc.unfreeze()
            gc.collect()
            _collected_at = time.monotonic()
        gc.freeze()

    return settled


@_settled
def filtered(table: str, joined: bool, banned: tuple[int, ...], folder: str, batches: Batches) -> Batches:
    """Writes the rows of the results log, of tuples or of pairs that a join has made."""
    from towpath.vector.evaluate import Filters, OneStream
    from towpath.vector.joins import JoinedPairs

    origin = JoinedPairs if joined else OneStream
    given = _calculable(table, batches, "filters", lambda fragments: Filters(fragments, origin))
    yield from _written(folder, (_without(banned, program.results(rows)) for rows, program in given))


@_settled
def partials(table: str, joined: bool, batches: Batches) -> Batches:
    """What goes into the aggregate."""
    from towpath.vector.evaluate import OneStream
    from towpath.vector.joins import JoinedPairs
    from towpath.vector.windows import Windows

    origin = JoinedPairs if joined else OneStream
    for rows, program in _calculable(table, batches, "windows", lambda fragments: Windows(fragments, origin)):
        yield from program.partials(rows).to_batches()


@_settled
def kept(table: str, side: int, batches: Batches) -> Batches:
    """What goes into the join of one of its inputs."""
    from towpath.vector.joins import Side

    for rows, program in _calculable(table, batches, f"side {side}", lambda fragments: Side(fragments, side)):
        yield from program.kept(rows).to_batches()


@_settled
def closed(ranked: bool, banned: tuple[int, ...], folder: str, batches: Batches) -> Batches:
    """Writes the rows of the results log, of windows that are over; nothing is calculated of `banned` fragments."""
    from towpath.vector.closing import rankings, results

    given = (_without(banned, rows) for rows in _gathered(batches))
    if ranked:
        found = ((results(rows, pipeline_of), rankings(rows, pipeline_of)) for rows in given)
        yield from _written(folder, _numbered(found))
    else:
        yield from _written(folder, (results(rows, pipeline_of) for rows in given))


def first_rows(batches: Batches) -> Batches:
    """Of windows that are over in a compiled carrier; all rows of a window are here."""
    found = ((rows.drop_columns(RANKING), _rankings(rows)) for rows in _gathered(batches))
    for rows in _numbered(found):
        yield from rows.to_batches()


def _rankings(rows: pa.Table) -> dict[int, RankedBy]:
    distinct = rows.group_by(["_fragment", RANKING]).aggregate([])
    texts = zip(distinct["_fragment"].to_pylist(), distinct[RANKING].to_pylist(), strict=True)
    return {fragment: load_ranking(text) for fragment, text in texts}


def _numbered(parts: Iterable[tuple[pa.Table, Mapping[int, RankedBy]]]) -> Iterator[pa.Table]:
    """The first rows of all windows, of rows that come in parts."""
    from towpath.vector.ranking import first_rows, numbered_rows

    kept: pa.Table | None = None
    known: dict[int, RankedBy] = {}
    for rows, rankings in parts:
        known |= rankings
        kept = first_rows(rows if kept is None else pa.concat_tables([kept, rows]), known)
    if kept is not None:
        yield numbered_rows(kept, known)


def _without(banned: tuple[int, ...], rows: pa.Table) -> pa.Table:
    if not banned:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["_fragment"], value_set=pa.array(banned, pa.int32()))))


def _written(folder: str, tables: Iterator[pa.Table]) -> Batches:
    """Puts rows into a file that counts once `spark/writers.py` has taken it over, and reports its name.

    Given back to Spark, each row would be converted twice, in all columns of the log, and then written by its columns.
    """
    path = Path(folder) / f"{uuid.uuid4().hex}.parquet"
    with ExitStack() as stack:
        writer = None
        for table in tables:
            if not table.num_rows:
                continue
            if writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = stack.enter_context(
                    pq.ParquetWriter(path, table.schema, use_dictionary=_repeated(table.schema))
                )
            writer.write_table(table)
    if writer is not None:
        yield pa.RecordBatch.from_pylist([{FILE: str(path)}], schema=arrow_schema(WRITTEN))


def _repeated(schema: pa.Schema) -> list[str]:
    """Columns in which values come again and again."""
    return [f.name for f in schema if f.name.startswith("_") or pa.types.is_string(f.type)]


def _calculable(
    table: str, batches: Batches, step: str, compile_: Callable[[Iterable[VectorFragment]], C]
) -> Iterator[tuple[pa.Table, C]]:
    for rows in _gathered(batches):
        yield rows.drop_columns("_version"), _program(table, rows["_version"][0].as_py(), step, compile_)


def _gathered(batches: Batches) -> Iterator[pa.Table]:
    """Few large tables instead of many small ones."""
    kept: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        kept.append(batch)
        count += batch.num_rows
        if count >= MOST_ROWS:
            yield pa.Table.from_batches(kept)
            kept, count = [], 0
    if count:
        yield pa.Table.from_batches(kept)


def _program(folder: str, version: int, step: str, compile_: Callable[[Iterable[VectorFragment]], C]) -> C:
    files, rows = read_version(folder, version)
    known = _tables.get(folder)
    if known is None or known.files != files:
        before = {} if known is None else known.fragments
        fragments = dict(_fragments(pa.Table.from_batches(rows), before))
        while len(_tables) >= TABLES_KEPT:
            del _tables[next(iter(_tables))]
        known = _tables[folder] = _CompiledTable(files, fragments, {})
    if step not in known.programs:
        known.programs[step] = compile_(known.fragments.values())
    return cast(C, known.programs[step])  # a step is always compiled to the same


def _fragments(rows: pa.Table, before: dict[int, VectorFragment]) -> Iterator[tuple[int, VectorFragment]]:
    from towpath.vector.fragments import VectorFragment

    columns = (rows[name].to_pylist() for name in ("_fragment", "shape", "constants"))
    for number, shape, constants in zip(*columns, strict=True):
        if number in before:
            yield number, before[number]
        else:
            pipeline = load_pipeline(shape, constants)
            yield number, VectorFragment(number, pipeline, "" if pipeline.window is None else post_of(pipeline))


def post_of(pipeline: Pipeline) -> str:
    """What a window needs to be closed, as short as it can be: every row of the state has it."""
    text = json.dumps(dump_pipeline(after_aggregate(pipeline)))
    return base64.b64encode(zlib.compress(text.encode())).decode()


@lru_cache(POSTS_KEPT)
def pipeline_of(post: str) -> Pipeline:
    return load_pipeline(*json.loads(zlib.decompress(base64.b64decode(post))))
