"""The journal's tables, and how a record is a row of its table: a column for each field, in the same order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from towpath.control.state.fence import MoveStep
from towpath.control.state.records import (
    CarrierRecord,
    FragmentRecord,
    FragmentStatus,
    MoveRecord,
    NodeRecord,
    PartRecord,
    QueryRecord,
    Since,
    StreamRecord,
)
from towpath.plan.serial import SHAPES_KEPT, PipelineText, dump_template, load_template

TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS carriers (
    id TEXT PRIMARY KEY, node TEXT NOT NULL, template TEXT NOT NULL, delay_us INTEGER NOT NULL,
    version INTEGER NOT NULL, inputs_us TEXT NOT NULL, watermark_us INTEGER,
    late TEXT NOT NULL, epoch INTEGER NOT NULL, last INTEGER NOT NULL, highest_us INTEGER, doubtful TEXT NOT NULL,
    ends TEXT NOT NULL, unheard INTEGER NOT NULL, past INTEGER NOT NULL, first_us INTEGER,
    known_us INTEGER);
CREATE TABLE IF NOT EXISTS shapes (id TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS fragments (
    id INTEGER PRIMARY KEY, signature TEXT NOT NULL, carrier TEXT NOT NULL, text_shape TEXT NOT NULL,
    text_values TEXT NOT NULL, lookback_us INTEGER NOT NULL, span_us INTEGER NOT NULL, status TEXT NOT NULL,
    version INTEGER NOT NULL, from_us INTEGER, until_us INTEGER);
CREATE TABLE IF NOT EXISTS parts (
    query INTEGER NOT NULL, branch INTEGER NOT NULL, turn INTEGER NOT NULL, fragment INTEGER NOT NULL,
    columns TEXT NOT NULL, windowed INTEGER NOT NULL, settled INTEGER NOT NULL, from_us INTEGER, until_us INTEGER,
    handed_over_us INTEGER, pending_fence_us INTEGER, keys TEXT NOT NULL, "select" INTEGER NOT NULL, ceded_us INTEGER,
    deciding INTEGER, done INTEGER NOT NULL, since TEXT NOT NULL, asked_us INTEGER, whole_shape TEXT,
    whole_values TEXT, PRIMARY KEY (query, branch, turn));
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

Shapes = Callable[[str], str]  # the text of a shape, by its name
R = TypeVar("R")


class Conversion(NamedTuple):
    """How a field is kept that SQLite has no type for."""

    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


BOOLEAN = Conversion(int, bool)
JSON = Conversion(
    lambda value: None if value is None else json.dumps(value),
    lambda text: None if text is None else _tuples(json.loads(text)),
)
TEMPLATE = Conversion(
    lambda template: json.dumps(dump_template(template)), lambda text: load_template(json.loads(text))
)


def _one_of(kind: Callable[[str], Any]) -> Conversion:
    return Conversion(str, kind)


class JournalTable(NamedTuple):
    name: str
    record: type
    kept: dict[str, Conversion]
    pipelines: tuple[str, ...] = ()  # fields that are two columns: the name of the shape, and the values

    @property
    def columns(self) -> Iterator[str]:
        for field in fields(self.record):
            yield from (f"{field.name}_shape", f"{field.name}_values") if field.name in self.pipelines else [field.name]


CARRIERS = JournalTable(
    "carriers",
    CarrierRecord,
    {"template": TEMPLATE, "inputs_us": JSON, "late": JSON, "doubtful": JSON, "ends": JSON, "past": BOOLEAN},
)
FRAGMENTS = JournalTable("fragments", FragmentRecord, {"status": _one_of(FragmentStatus)}, ("text",))
PARTS = JournalTable(
    "parts",
    PartRecord,
    {
        **{"columns": JSON, "keys": JSON, "since": _one_of(Since)},
        **{"windowed": BOOLEAN, "settled": BOOLEAN, "done": BOOLEAN},
    },
    ("whole",),
)
QUERIES = JournalTable("queries", QueryRecord, {"running": BOOLEAN, "sink": JSON, "fed": BOOLEAN, "types": JSON})
MOVES = JournalTable("moves", MoveRecord, {"columns": JSON, "step": _one_of(MoveStep), "keys": JSON})
NODES = JournalTable("nodes", NodeRecord, {"draining": BOOLEAN})
STREAMS = JournalTable("streams", StreamRecord, {})
BY_RECORD = {table.record: table for table in (CARRIERS, FRAGMENTS, PARTS, QUERIES, MOVES, NODES, STREAMS)}


def dump(record: Any) -> tuple[str, list[Any]]:
    """The table of a record, and its row there."""
    table, row = BY_RECORD[type(record)], list[Any]()
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name in table.pipelines:
            row += (None, None) if value is None else (shape_name(value.shape), value.values)
        else:
            row.append(value if (kept := table.kept.get(field.name)) is None else kept.dump(value))
    return table.name, row


def load(record: type[R], row: tuple[Any, ...], shapes: Shapes) -> R:
    """The record of a row, of which more columns may follow."""
    table, columns = BY_RECORD[record], iter(row)
    values: list[Any] = []
    for field in fields(record):  # type: ignore[arg-type]
        value = next(columns)
        if field.name in table.pipelines:
            constants = next(columns)
            values.append(None if value is None else PipelineText(shapes(value), constants))
        else:
            values.append(value if (kept := table.kept.get(field.name)) is None else kept.load(value))
    return record(*values)


def shapes_of(record: Any) -> Iterator[tuple[str, str]]:
    """The shapes that a record mentions, by their names."""
    for name in BY_RECORD[type(record)].pipelines:
        if (text := getattr(record, name)) is not None:
            yield shape_name(text.shape), text.shape


@lru_cache(SHAPES_KEPT)
def shape_name(shape: str) -> str:
    """It says what it is, so equal shapes are kept once, whoever comes first."""
    return hashlib.sha256(shape.encode()).hexdigest()[:24]
