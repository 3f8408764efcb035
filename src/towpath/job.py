"""The job file: what runs, over which streams, where, and where results go. docs/job-file.md describes every key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator

from towpath.config import network, sqlfiles, yamlfile
from towpath.config.network import Distances, NetworkDef
from towpath.config.nodes import NODES, ConnectNode, EmbeddedNode, NodeDef
from towpath.config.settings import (
    BEGINNING,
    Beginning,
    Duration,
    Kinds,
    Location,
    Milliseconds,
    Settings,
    Whole,
    listed,
    problems,
    refusal,
    shown,
)
from towpath.config.sqlfiles import NAME, NAME_HINT, Contents
from towpath.config.steering import ControlDef
from towpath.errors import JobError, Mistake
from towpath.plan import CUT, WHOLE, CarrierKinds
from towpath.problems.generate import matrix
from towpath.results.sinks import SINKS, SinkOfQuery
from towpath.schema import Stream
from towpath.streams.definition import IDENTIFIER, ReadFolders, StreamDef, StreamText, define, members, numbered, unlike
from towpath.streams.sources import SOURCES
from towpath.tables.definition import TableDef, TableText
from towpath.tables.definition import define as define_table

Fragments = Literal["one_per_query", "one_per_operator"]
KINDS: Kinds = {"source": SOURCES, "sink": SINKS}


class QueryDef(Settings):
    """A standing query as written; its SQL is not parsed yet."""

    sql: str = Field(examples=['"SELECT * FROM bids WHERE price > 900"'])
    sink: SinkOfQuery | None = None  # besides the results log, which every query has
    start: Beginning = Field(BEGINNING, alias="from", examples=["now"])
    node: str | None = Field(None, examples=["local"])  # where it begins; without it, wherever it can be shared
    copies: Annotated[Whole, Field(ge=1, le=8)] = Field(1, examples=[2])  # on so many nodes at the same time
    fragments: Fragments | None = Field(None, examples=[CUT])  # None: as the job says

    @field_validator("fragments")
    @classmethod
    def _has_one_copy(cls, fragments: str | None, info: ValidationInfo) -> str | None:
        if fragments == CUT and info.data.get("copies", 1) > 1:
            raise refusal(f"{CUT} cuts a query, and copies are made of whole ones", "remove fragments or copies")
        return fragments

    @field_validator("sql")
    @classmethod
    def _is_not_blank(cls, sql: str) -> str:
        if not sql.strip():
            raise refusal("expected a SELECT statement, got nothing", "write one, or remove the query")
        return sql


def _retention_us(value: object) -> object:
    return None if value == "forever" else value


class ResultsDef(Settings):
    retention_us: Annotated[Annotated[Duration, Field(gt=0)] | None, BeforeValidator(_retention_us)] = Field(
        7 * 86_400_000_000, alias="retention"
    )


@dataclass(frozen=True)
class Job:
    store: Path
    trigger_ms: int
    streams: dict[str, StreamDef]
    nodes: dict[str, NodeDef]
    queries: dict[str, QueryDef]
    queries_folder: Path | None
    results: ResultsDef
    control: ControlDef | None = None
    fragments: str = WHOLE  # of queries that say nothing else
    folder: Contents = field(default_factory=Contents)  # of `queries_folder`, when the job was loaded
    carriers: CarrierKinds = CarrierKinds.AUTO
    distances: Distances = field(default_factory=dict)  # between nodes, as far as a site knows them
    inject: bool = False  # readers wait as long as that
    tables: dict[str, TableDef] = field(default_factory=dict)

    @property
    def catalog(self) -> dict[str, Stream]:
        """All that queries can name: the streams, and the reference tables."""
        streams = {name: definition.stream for name, definition in self.streams.items()}
        return streams | {name: definition.table for name, definition in self.tables.items()}


def load(path: Path) -> Job:
    """The job of a file. Raises JobError with every mistake in it."""
    path = path.absolute()
    title = f"{path} cannot be used:"
    raw, repeated = yamlfile.read(path, title)
    reader = _JobReader(path, repeated)
    job = reader.job(raw)
    if job is None:
        raise JobError(title, reader.problems)
    return job


def queries(
    raw: Mapping[str, Any],
    folder: Path,
    nodes: Iterable[str],
    sinks: Mapping[str, str],
    streams: Mapping[str, StreamDef],
) -> dict[str, QueryDef]:
    """Queries that come while a job runs, in the words of a job file in `folder`. Raises JobError with every mistake.

    `sinks` are the folders that other queries write to, and which query it is.
    """
    reader = _JobReader(folder / "queries")
    found = reader.queries({name: _from_now(query) for name, query in raw.items()})
    reader.refuse_unknown_nodes(found, nodes)
    reader.refuse_shared_sinks(found, sinks)
    reader.refuse_sinks_among_rows(found, ReadFolders(streams))
    if reader.problems:
        raise JobError("nothing was submitted:", reader.problems)
    return found


def _from_now(query: object) -> object:
    """A query that comes while a job runs answers from then on, unless it says otherwise."""
    return {"from": "now", **query} if isinstance(query, dict) else {"from": "now", "sql": query}


class JobText(Settings):
    """The keys of the file itself; the sections are read one entry at a time."""

    store: Location | None = None
    trigger_ms: Annotated[Milliseconds, Field(gt=0)] = Field(1000, alias="trigger", examples=["1 second"])
    streams: dict[str, Any] = Field(examples=["{clock: {source: {type: rate, rate: 100}}}"])
    tables: dict[str, Any] | None = None
    nodes: dict[str, Any] | None = None
    queries: dict[str, Any] | None = None
    queries_folder: Any = None  # read apart too, so that its files are looked at whatever else is wrong
    fragments: Fragments = Field("one_per_query", examples=[CUT])
    carriers: CarrierKinds = Field(CarrierKinds.AUTO, examples=["universal"])
    results: Any = None
    control: Any = None
    network: Any = None

    @field_validator("store")
    @classmethod
    def _can_be_a_folder(cls, store: str | None) -> str | None:
        if store and ("://" in store or Path(store).is_file()):
            raise refusal(f"expected a folder of this machine, got {store}", "the folder is made if it does not exist")
        return store

    @field_validator("streams", "nodes")
    @classmethod
    def _is_not_empty(cls, section: dict[str, Any] | None) -> dict[str, Any] | None:
        if section == {}:
            raise refusal("expected at least one entry, got none", "a job has streams; nodes may be left out")
        return section


class _FolderText(Settings):
    queries_folder: Location | None = None

    @field_validator("queries_folder")
    @classmethod
    def _is_a_folder(cls, folder: str | None) -> str | None:
        if folder and not Path(folder).is_dir():
            message = f"expected a folder with .sql files, but {folder} is none"
            raise refusal(message, "a path is relative to the job file")
        return folder


_Model = TypeVar("_Model", bound=Settings)


class _JobReader:
    """Reads every section, whatever is wrong in the others, and collects the problems."""

    def __init__(self, path: Path, known: Iterable[Mistake] = ()) -> None:
        self.path = path
        self.problems: list[Mistake] = [*known]

    def job(self, raw: Any) -> Job | None:
        if not isinstance(raw, dict):
            self.refuse("", f"expected keys with values, got {shown(raw)}", "begin with streams:")
            return None
        top = self.checked(JobText, raw, "")
        owners: dict[str, str] = {}  # of names in lower case: the key that made it
        streams = self.streams(_section(raw, "streams"), owners)
        owners = {name: f"streams.{key}" for name, key in owners.items()}
        tables = self.tables(_section(raw, "tables"), owners)
        given = _section(raw, "nodes") or {"local": {"type": "embedded", "cores": 2}}
        nodes = {name: node for name, value in given.items() if (node := self.node(name, value))}
        queries = self.queries(_section(raw, "queries"))
        folder = self.queries_folder(raw.get("queries_folder"))
        contents = Contents() if folder is None else sqlfiles.usable(folder, frozenset(queries))
        queries |= {name: QueryDef.model_validate({"sql": sql}) for name, sql in contents.queries.items()}
        results = self.checked(ResultsDef, {} if raw.get("results") is None else raw["results"], "results")
        self.refuse_unknown_nodes(queries, given)
        control = None if raw.get("control") is None else self.checked(ControlDef, raw["control"], "control")
        distances, inject = self.network(raw.get("network"), given)
        self.refuse_unknown_entries(streams, given)
        self.refuse_shared_sinks(queries)
        folders = ReadFolders(streams)
        self.refuse_sinks_among_rows(queries, folders)
        store = Path(top.store) if top and top.store else self.path.with_suffix(".store")
        self.problems += folders.overlap("store", "store", str(store)) if top else []
        if top is None or results is None or self.problems:
            return None
        return Job(
            store,
            top.trigger_ms,
            streams,
            nodes,
            queries,
            folder,
            results,
            control,
            top.fragments,
            contents,
            top.carriers,
            distances,
            inject,
            tables,
        )

    def checked(
        self, model: type[_Model], value: object, where: str, note: str = "", kinds: Kinds = KINDS
    ) -> _Model | None:
        try:
            return model.model_validate(value, context={"folder": self.path.parent})
        except ValidationError as error:
            found = problems(error, where, model, kinds)
            self.problems += [replace(p, message=p.message + note) for p in found]
            return None

    def refuse(self, where: str, message: str, hint: str = "") -> None:
        self.problems.append(Mistake(where, message, hint))

    def tables(self, section: dict[str, Any], owners: dict[str, str]) -> dict[str, TableDef]:
        found: dict[str, TableDef] = {}
        for name, value in section.items():
            where = f"tables.{name}"
            text = self.checked(TableText, value, where, kinds={})  # its source is of one kind
            if self.is_free(where, where, name, owners, "table") and text is not None:
                found[name] = define_table(name, text)
        return found

    def streams(self, section: dict[str, Any], owners: dict[str, str]) -> dict[str, StreamDef]:
        streams: dict[str, StreamDef] = {}
        for key, value in section.items():
            try:
                names = members(key)
            except ValueError as error:
                self.refuse(f"streams.{key}", str(error), 'write it like "sensor{1..96}"')
                continue
            for name, n in names:
                note = "" if name == names[0][0] else f" (for n = {n})"
                text = self.stream(key, name, numbered(value, n), owners, note)
                if text is None:
                    break  # one member of a range speaks for all, or a mistake would be reported 96 times
                streams[name] = define(name, text)
        self.problems += unlike(streams)
        return streams

    def stream(self, key: str, name: str, value: object, owners: dict[str, str], note: str) -> StreamText | None:
        where = f"streams.{key}"
        text = self.checked(StreamText, value, where, note)
        return text if self.is_free(where, key, name, owners) else None

    def is_free(self, where: str, key: str, name: str, owners: dict[str, str], what: str = "stream") -> bool:
        if not IDENTIFIER.fullmatch(name):
            example = '; a range is written "sensor{1..96}"' if what == "stream" else ""
            hint = f"use letters, digits and _, not beginning with a digit{example}"
            self.refuse(where, f"{shown(name)} is not a name for a {what}", hint)
            return False
        owner = owners.setdefault(name.lower(), key)
        if owner != key:
            hint = "rename one of them; names that differ only in case are the same to SQL"
            self.refuse(where, f"the {what} {name} is already defined by {owner}", hint)
        return owner == key

    def node(self, name: str, value: object) -> NodeDef | None:
        where = f"nodes.{name}"
        self.check_name(where, name)
        kind = value.get("type") if isinstance(value, dict) else None
        if kind is not None and kind not in NODES:
            expected = f"expected one of {listed(NODES)}, got {shown(kind)}"
            self.refuse(f"{where}.type", expected, "for example type: embedded")
            return None
        model: type[EmbeddedNode] | type[ConnectNode] = NODES.get(str(kind), EmbeddedNode)
        return self.checked(model, value, where)

    def network(self, value: object, nodes: Collection[str]) -> tuple[Distances, bool]:
        text = self.checked(NetworkDef, {} if value is None else value, "network")
        if text is None:
            return {}, False
        found = dict(network.given(text))
        if text.matrix is not None:
            try:
                latencies = matrix.read(Path(text.matrix))
            except ValueError as error:
                self.refuse("network.matrix", str(error), "a row for each node, round trips in ms")
                return {}, False
            if len(latencies) != len(nodes):
                hint = "a row for each of the file's nodes, in their order"
                self.refuse("network.matrix", f"{text.matrix} has {len(latencies)} rows, and {len(nodes)} nodes", hint)
                return {}, False
            rows = zip(nodes, latencies.tolist(), strict=True)
            ways = {(a, b): seconds for a, row in rows for b, seconds in zip(nodes, row, strict=True)}
            # Both ways may have been measured, or one of them.
            for a, b in combinations(sorted(nodes), 2):
                both = [ways[way] for way in ((a, b), (b, a)) if not isnan(ways[way])]
                if both:
                    found[a, b] = sum(both) / len(both)
        self.problems += network.mistakes(text, found, nodes)
        return found, text.inject

    def refuse_unknown_entries(self, streams: Mapping[str, StreamDef], nodes: Iterable[str]) -> None:
        for name, stream in streams.items():
            if stream.node is not None and stream.node not in nodes:
                where = f"streams.{name}.node"
                self.refuse(where, f"there is no node {shown(stream.node)}", f"one of: {listed(nodes)}")

    def queries(self, section: dict[str, Any]) -> dict[str, QueryDef]:
        queries: dict[str, QueryDef] = {}
        for name, value in section.items():
            where = f"queries.{name}"
            self.check_name(where, name)
            query = self.checked(QueryDef, value if isinstance(value, dict) else {"sql": value}, where)
            if query:
                queries[name] = query
        return queries

    def queries_folder(self, value: object) -> Path | None:
        text = self.checked(_FolderText, {"queries_folder": value}, "")
        return Path(text.queries_folder) if text and text.queries_folder else None

    def check_name(self, where: str, name: str) -> None:
        if not NAME.fullmatch(name):
            self.refuse(where, f"{shown(name)} is not a valid name", NAME_HINT)

    def refuse_shared_sinks(self, queries: dict[str, QueryDef], sinks: Mapping[str, str] | None = None) -> None:
        owners = dict(sinks or {})
        for name, query in queries.items():
            folder = None if query.sink is None or query.sink.folder is None else str(query.sink.folder)
            if folder is not None and owners.setdefault(folder, name) != name:
                message = f"{folder} is already the sink of the query {owners[folder]}"
                self.refuse(f"queries.{name}.sink.path", message, "give every query a folder of its own")

    def refuse_sinks_among_rows(self, queries: dict[str, QueryDef], folders: ReadFolders) -> None:
        for name, query in queries.items():
            if query.sink is not None and query.sink.folder is not None:
                self.problems += folders.overlap(f"queries.{name}.sink.path", "sink", str(query.sink.folder))

    def refuse_unknown_nodes(self, queries: dict[str, QueryDef], nodes: Iterable[str]) -> None:
        for name, query in queries.items():
            if query.node is not None and query.node not in nodes:
                self.refuse(f"queries.{name}.node", f"there is no node {shown(query.node)}", f"one of: {listed(nodes)}")


def _section(raw: dict[str, Any], key: str) -> dict[str, Any]:
    section = raw.get(key)
    return section if isinstance(section, dict) else {}
