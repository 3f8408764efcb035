"""An entry under `streams` of a job file: one stream, or a range of streams such as sensor{1..96}."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from towpath.config.columns import Kind, WrittenSchema, check_fields, check_flat, check_schema, named, paths
from towpath.config.settings import Duration, Milliseconds, Settings, listed, meant, refusal, shown
from towpath.errors import Mistake
from towpath.schema import INTEGERS, Column, DecimalType, Stream, Type, column_of
from towpath.streams.fields import as_pairs
from towpath.streams.sources import DESCRIBED, FilesSource, KafkaSource, SourceDef

MOST_STREAMS_OF_A_RANGE = 10_000

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_NUMBER = "(0|[1-9][0-9]{0,8})"
_RANGE = re.compile(rf"([^{{}}]*)\{{{_NUMBER}\.\.{_NUMBER}\}}([^{{}}]*)")

# What `where` can ask a column for. One way to write each value, because values are compared as text too.
_PART_VALUES = {
    Type.STRING: re.compile(".*", re.DOTALL),
    Type.INT: re.compile("-?[1-9][0-9]{0,9}|0"),
    Type.BIGINT: re.compile("-?[1-9][0-9]{0,18}|0"),
    Type.BOOLEAN: re.compile("true|false"),
}


@dataclass(frozen=True)
class StreamDef:
    stream: Stream
    source: SourceDef
    idle_after_ms: int  # silence after which the stream no longer holds others back; 0: never
    aligned: bool = False  # read through a feed, also if it is alone
    close_after_ms: int = 0  # silence after which its event time goes on with the clock; 0: never
    node: str | None = None  # where it enters; without it, every node is as near to it


class StreamText(Settings):
    """A stream as written."""

    source: SourceDef = Field(examples=["{type: files, path: ./bids, format: parquet}"])
    columns: WrittenSchema | None = Field(None, alias="schema", validate_default=True)
    time: str | None = Field(None, validate_default=True)
    delay_us: Duration | None = Field(None, alias="delay")
    idle_after_ms: Milliseconds = Field(10_000, alias="idle_after")
    close_after_ms: Milliseconds = Field(0, alias="close_after")
    node: str | None = Field(None, examples=["berlin"])

    @field_validator("columns")
    @classmethod
    def _belong_to_the_source(cls, columns: dict[str, Kind] | None, info: ValidationInfo) -> dict[str, Kind] | None:
        source = info.data.get("source")
        if isinstance(source, DESCRIBED) and not columns:
            raise refusal("is missing", "name the columns: schema: {price: double, at: timestamp}")
        if source and not isinstance(source, DESCRIBED) and columns is not None:
            raise refusal(f"a source of type {source.type} brings its own columns", "remove schema")
        check_schema(columns or {})
        if isinstance(source, DESCRIBED) and columns:
            if source.part:
                _check_part(*source.part, named(columns))
            check_fields(columns, source.fields)
            if isinstance(source, FilesSource) and source.format == "csv":
                check_flat(columns, source.fields, source.header)
        return columns

    @field_validator("time")
    @classmethod
    def _is_a_timestamp(cls, time: str | None, info: ValidationInfo) -> str | None:
        source, columns = info.data.get("source"), named(info.data.get("columns") or {})
        if source and not isinstance(source, DESCRIBED) and time is not None:
            raise refusal(f"a source of type {source.type} brings its own time column, {source.time}", "remove time")
        if isinstance(source, DESCRIBED) and time is None:
            raise refusal("is missing", "name the column of type timestamp that holds the event time, as in time: at")
        if columns and time is not None and time not in columns:
            raise refusal(f"there is no column {shown(time)} in the schema", meant(time, columns))
        if columns and time is not None and columns[time] is not Type.TIMESTAMP:
            hint = "name another column, or make it a timestamp in the schema"
            raise refusal(f"expected a column of type timestamp, but {time} is {columns[time].value}", hint)
        return time


def _check_part(column: str, value: str, columns: dict[str, Kind]) -> None:
    if column not in columns:
        raise refusal(f"there is no column {shown(column)}, which where asks for", meant(column, columns))
    type_ = columns[column]
    form = None if isinstance(type_, DecimalType) else _PART_VALUES.get(type_)
    if form is None or isinstance(type_, DecimalType):
        message = f"where distinguishes streams by {column}, which is {type_.value}"
        raise refusal(message, f"use a column of type {listed(t.value for t in _PART_VALUES)}")
    if not form.fullmatch(value) or (type_.integral and int(value) not in INTEGERS[type_]):
        message = f"where asks {column} for {shown(value)}, but it is {type_.value}: {_values(type_)}"
        raise refusal(message, "no row has that")


def _values(type_: Type) -> str:
    if type_.integral:
        return f"whole numbers from {INTEGERS[type_][0]} to {INTEGERS[type_][-1]}"
    return "true or false" if type_ is Type.BOOLEAN else "texts"


def define(name: str, text: StreamText) -> StreamDef:
    source = text.source
    if isinstance(source, DESCRIBED):
        assert text.columns and text.time  # its validators saw to it
        columns = tuple(column_of(*item) for item in named(text.columns).items())
        source = source.model_copy(update={"fields": paths(text.columns, source.fields)})
        stream = Stream(name, columns, text.time, text.delay_us or 0, origin=source.origin)
    else:
        delay_us = source.disorder_us if text.delay_us is None else text.delay_us
        stream = Stream(name, source.columns, source.time, delay_us, source.stream_rate)
    return StreamDef(stream, source, text.idle_after_ms, close_after_ms=text.close_after_ms, node=text.node)


def described(definition: StreamDef) -> dict[str, Any]:
    """A stream as a feed's workers know it."""
    source = definition.source
    return {
        "name": definition.stream.name,
        "source": source.model_dump(),
        "part": source.part if isinstance(source, FilesSource) else None,
        "idle_after_ms": definition.idle_after_ms,
        "decimals": decimals(definition.stream.columns),
    }


def decimals(columns: Iterable[Column]) -> tuple[tuple[str, int, int], ...]:
    """Columns that travel as units, as readers know them: name, digits and places."""
    return tuple((c.name, c.decimal.precision, c.decimal.scale) for c in columns if c.decimal)


def is_native(streams: Sequence[StreamDef]) -> bool:
    """Whether Spark's own reader is to read the streams of a class: one folder of Parquet, or one topic."""
    if isinstance(streams[0].source, KafkaSource):
        return True
    sources = [s.source for s in streams if isinstance(s.source, FilesSource)]
    if len(sources) < len(streams) or any(s.format != "parquet" for s in sources):
        return False
    as_it_is = not any(decimals(s.stream.columns) for s in streams)
    if any((s.glob != "*" or s.fields or not as_it_is) and "://" in s.path for s in sources):
        return False  # Spark is given the whole folder
    parts = {s.part for s in sources}
    folders = {(s.path, s.format, s.header, s.glob, s.part and s.part[0], as_pairs(s.fields)) for s in sources}
    # One producer writes the folder, so its streams need no aligning; a row belongs to one stream, so parts differ.
    return len(sources) == 1 or (len(folders) == 1 and None not in parts and len(parts) == len(sources))


def unlike(streams: Mapping[str, StreamDef]) -> Iterator[Mistake]:
    """Streams that one subscription has to serve, and that ask for different ones."""
    first: dict[object, str] = {}
    for name, definition in streams.items():
        source = definition.source
        if not isinstance(source, KafkaSource):
            continue
        other = first.setdefault(definition.stream.schema_class, name)
        known = streams[other].source
        assert isinstance(known, KafkaSource)
        if (source.servers, source.options) != (known.servers, known.options):
            message = f"{name} and {other} read the topic {source.topic} with different servers or options"
            yield Mistake(f"streams.{name}.source", message, "make them the same; two clusters need two jobs")


class ReadFolders:
    """The folders that streams read. What towpath writes into one of them would be taken for rows."""

    def __init__(self, streams: Mapping[str, StreamDef]) -> None:
        read = [(_real(d.source.path), name) for name, d in streams.items() if isinstance(d.source, FilesSource)]
        self._readers = {folder: name for folder, name in reversed(read)}
        self._inside = {around: folder for folder in reversed(self._readers) for around in folder.parents}

    def overlap(self, where: str, what: str, path: str) -> Iterator[Mistake]:
        """The problem of a folder that is to be written to and lies in one that is read, or around it."""
        written = _real(path)
        hint = "choose another folder: rows that come and results are to be apart"
        if written in self._readers:
            message = f"the {what} {path} is the folder of the stream {self._readers[written]}"
            yield Mistake(where, message, hint)
            return
        around = next((folder for folder in written.parents if folder in self._readers), None)
        if around is not None:
            message = f"the {what} {path} lies in the folder of the stream {self._readers[around]}, {around}"
            yield Mistake(where, message, hint)
        inside = self._inside.get(written)
        if inside is not None:
            message = f"the folder of the stream {self._readers[inside]}, {inside}, lies in the {what} {path}"
            yield Mistake(where, message, hint)


def _real(path: str) -> PurePath:
    """Where a path leads, also by links."""
    return PurePath(path if "://" in path else os.path.realpath(path))


def members(key: str) -> list[tuple[str, int | None]]:
    """The names a key stands for, each with its number. Raises ValueError for a range nobody can mean."""
    match = _RANGE.fullmatch(key)
    if match is None:
        return [(key, None)]
    first, last = int(match[2]), int(match[3])
    if not first <= last < first + MOST_STREAMS_OF_A_RANGE:
        raise ValueError(f"expected a range of 1 to {MOST_STREAMS_OF_A_RANGE} streams, got {{{first}..{last}}}")
    return [(f"{match[1]}{n}{match[4]}", n) for n in range(first, last + 1)]


def numbered(value: Any, n: int | None) -> Any:
    """The value with {n} replaced by the number in every text in it."""
    if n is None:
        return value
    if isinstance(value, dict):
        return {key: numbered(item, n) for key, item in value.items()}
    if isinstance(value, list):
        return [numbered(item, n) for item in value]
    return value.replace("{n}", str(n)) if isinstance(value, str) else value
