"""The streams of a job that has run before, when its file has changed since.

What a carrier has read it has read from a stream as that was then, and its checkpoint knows only that. So a stream
whose rows come from elsewhere now, or have other columns, is another version of it, of another class, which carriers of
its own read. The version before is retired; carriers that still owe results go on with it.

A carrier also goes on with the reader that it began with. Streams of files that are read through a feed can be joined
by others and left; what Spark's own reader reads cannot. Who cannot join begins a group of their own, a class too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from towpath.schema import SchemaClass, Stream, column_of
from towpath.streams.definition import StreamDef, is_native
from towpath.streams.sources import SOURCES, FilesSource, KafkaSource, SourceDef

_SAME_CLUSTER = {"servers", "options"}  # a cluster that gets new addresses or passwords is the same cluster


@dataclass(frozen=True)
class StreamVersion:
    definition: StreamDef
    group: int = 0
    retired: bool = False

    def to_json(self) -> dict[str, Any]:
        stream = self.definition.stream
        return {
            "name": stream.name,
            "columns": [(c.name, c.kind.value) for c in stream.columns],
            "time": stream.time,
            "delay_us": stream.delay_us,
            "rate": stream.rate,
            "origin": stream.origin,
            "source": self.definition.source.model_dump(mode="json"),
            "idle_after_ms": self.definition.idle_after_ms,
            "close_after_ms": self.definition.close_after_ms,
            "aligned": self.definition.aligned,
            "group": self.group,
            "retired": self.retired,
        }

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> StreamVersion:
        columns = tuple(column_of(name, type_) for name, type_ in said["columns"])
        stream = Stream(said["name"], columns, said["time"], said["delay_us"], said["rate"], said["origin"])
        # Not checked again: the folder of a stream that is gone may be gone too.
        paths = {column: tuple(path) for column, path in said["source"].get("fields", {}).items()}
        kept = said["source"] | ({"fields": paths} if paths else {})
        source: Any = SOURCES[kept["type"]].model_construct(**kept)
        definition = StreamDef(stream, source, said["idle_after_ms"], said["aligned"], said.get("close_after_ms", 0))
        return StreamVersion(definition, said["group"], said["retired"])


@dataclass(frozen=True)
class Versions:
    """The streams of a job as carriers know them."""

    all: Sequence[StreamVersion]

    @property
    def streams(self) -> dict[str, StreamDef]:
        """Those that the job has now."""
        return {v.definition.stream.name: v.definition for v in self.all if not v.retired}

    @property
    def readable(self) -> list[StreamDef]:
        """Those that carriers are to read: of a class that the job has no streams of any more, the ones it had."""
        current = {v.definition.stream.schema_class for v in self.all if not v.retired}
        return [v.definition for v in self.all if not v.retired or v.definition.stream.schema_class not in current]


def carried_on(now: Mapping[str, StreamDef], before: Iterable[StreamVersion], read: Iterable[SchemaClass]) -> Versions:
    """The streams of a job after those of its last run; `read` are the classes that there are carriers for."""
    classes = set(read)
    known = [v for v in before if v.definition.stream.schema_class in classes]
    current = {v.definition.stream.name: v for v in known if not v.retired}
    kept: dict[str, StreamVersion] = {}
    fresh: dict[SchemaClass, list[StreamDef]] = {}
    for name, definition in now.items():
        version = current.get(name)
        if version is not None and _rows(version.definition) == _rows(definition):
            stream = replace(definition.stream, origin=version.definition.stream.origin)
            kept[name] = replace(
                version, definition=replace(definition, stream=stream, aligned=version.definition.aligned)
            )
        else:
            fresh.setdefault(_base(definition), []).append(definition)
    retired = [replace(v, retired=True) for v in known if v.retired or v.definition.stream.name not in kept]
    found = [*retired, *kept.values()]
    for base, definitions in fresh.items():
        of_class = [v for v in found if _base(v.definition) == base]
        found += _grouped(definitions, of_class)
    return Versions(found)


def _grouped(fresh: Sequence[StreamDef], known: Sequence[StreamVersion]) -> list[StreamVersion]:
    """New streams of a class join its newest group if its reader can take them in, else they are a group."""
    newest = max((v.group for v in known), default=None)
    members = [v for v in known if v.group == newest]
    if newest is not None and _can_join(fresh, members):
        group, aligned = newest, members[0].definition.aligned
    else:
        group, aligned = (0 if newest is None else newest + 1), not is_native(fresh)
    return [
        StreamVersion(replace(d, stream=_in_group(d.stream, d.source, group), aligned=aligned), group) for d in fresh
    ]


def _can_join(fresh: Sequence[StreamDef], members: Sequence[StreamVersion]) -> bool:
    streams = [*(v.definition for v in members if not v.retired), *fresh]
    names = {v.definition.stream.name for v in members}
    if any(d.stream.name in names for d in fresh):
        return False  # what was read under its name came from elsewhere
    if not all(isinstance(d.source, FilesSource) for d in streams):
        return False  # a generator would begin in the middle, and a subscription is what it was
    return members[0].definition.aligned or (is_native(streams) and len(streams) > len(fresh))


def _in_group(stream: Stream, source: SourceDef, group: int) -> Stream:
    origin = source.origin if isinstance(source, FilesSource | KafkaSource) else ""
    return replace(stream, origin=", ".join(filter(None, (origin, f"group {group}" if group else ""))))


def _base(definition: StreamDef) -> SchemaClass:
    """The class of a stream, whatever its group."""
    return _in_group(definition.stream, definition.source, 0).schema_class


def _rows(definition: StreamDef) -> str:
    """What decides which rows a stream has, and what they mean."""
    source = definition.source.model_dump(mode="json")
    columns = [(c.name, c.kind.value) for c in definition.stream.columns]
    in_order = source["type"] == "files" and source["format"] == "csv" and not source["header"]
    kept = {key: value for key, value in source.items() if key not in _SAME_CLUSTER}
    return json.dumps([kept, columns if in_order else sorted(columns), definition.stream.time], sort_keys=True)
