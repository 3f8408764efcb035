"""The sections `streams`, `queries` and `fragments` of a problem file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from towpath.config.settings import shown
from towpath.errors import QueryError
from towpath.placement.cluster import Cluster
from towpath.placement.index import index
from towpath.placement.problem import Fragment, Operator, PlacementQuery, PlacementStream, Problem
from towpath.problems import from_sql, tables
from towpath.problems.entries import CostsEntry, FragmentEntry, OperatorEntry, QueryEntry, StreamEntry
from towpath.problems.reading import ProblemReader
from towpath.schema import Catalog

Workload = tuple[tuple[PlacementStream, ...], tuple[Fragment, ...], tuple[PlacementQuery, ...]]


def read(reader: ProblemReader, raw: Mapping[str, Any], cluster: Cluster) -> Workload:
    if not (given := raw.get("streams")):
        problem = "is missing" if given is None else f"expected at least one, got {shown(given)}"
        reader.refuse("streams", problem, "for example streams: {bids: {node: n1, rate: 250}}")
    streams, known = _streams(reader, raw.get("streams"), cluster)
    costs = reader.checked(CostsEntry, raw.get("costs"), "costs") or CostsEntry()
    section = _Queries(reader, streams, known, costs)
    section.read_fragments(raw.get("fragments"))
    section.read_queries(raw.get("queries"))
    return streams, tuple(section.fragments), section.queries()


def _streams(reader: ProblemReader, section: Any, cluster: Cluster) -> tuple[tuple[PlacementStream, ...], Catalog]:
    table = reader.table(section, "stream", tables.STREAMS)
    if table is not None:
        return tuple(PlacementStream(*row) for row in table.rows()), {}
    streams: list[PlacementStream] = []
    entries: dict[str, StreamEntry] = {}
    anywhere = cluster.nodes[0].name if cluster.nodes else ""
    for name, value in reader.entries(section, "streams", "streams: {bids: {node: n1, rate: 250}}").items():
        entry = reader.checked(StreamEntry, value, f"streams.{name}", ("stream", name))
        streams.append(entry.stream(name) if entry else PlacementStream(name, anywhere, 0.0))
        if entry:
            entries[name] = entry
    return tuple(streams), from_sql.catalog(entries)


class _Queries:
    def __init__(
        self, reader: ProblemReader, streams: Sequence[PlacementStream], known: Catalog, costs: CostsEntry
    ) -> None:
        self._reader = reader
        self._all_streams = streams
        self._known = known
        self._costs = costs
        self._queries: dict[str, PlacementQuery] = {}
        self.fragments: list[Fragment] = []

    @cached_property
    def _streams(self) -> Mapping[str, PlacementStream]:
        return {stream.name: stream for stream in self._all_streams}

    def queries(self) -> tuple[PlacementQuery, ...]:
        names: dict[str, list[str]] = {name: [] for name in self._queries}
        for fragment in self.fragments:
            names[fragment.query].append(fragment.name)
        return tuple(PlacementQuery(q.name, tuple(names[q.name]), q.sink, q.copies) for q in self._queries.values())

    def read_fragments(self, section: Any) -> None:
        table = self._reader.table(section, "fragment", tables.FRAGMENTS)
        if table is None:
            if section is not None:
                hint = "name a .parquet or .csv table; fragments that are written out belong to their query"
                self._reader.refuse("fragments", f"expected the name of a table, got {shown(section)}", hint)
            return
        self._reader.also(table, "operator", column=3)
        names, queries, natives, *columns = table.columns
        drafts: dict[str, tuple[str, str | None, list[Operator]]] = {}
        rows = zip(names, queries, natives, map(Operator, *columns), strict=True)
        for row, (name, query, native, operator) in enumerate(rows):
            first = drafts.get(name)
            if first is None:
                first = drafts[name] = (query, native, [])
            elif first[0] != query:
                message = f"expected one query for each fragment, but {name} is of {first[0]} and of {query}"
                self._reader.refuse(table.where(row, "query"), message, "rename the fragment in one of them")
            first[2].append(operator)
        for name, (query, native, operators) in drafts.items():
            self._queries.setdefault(query, PlacementQuery(query, ()))
            self.fragments.append(Fragment(name, query, tuple(operators), native))

    def read_queries(self, section: Any) -> None:
        table = self._reader.table(section, "query", tables.QUERIES)
        if table is not None:
            self._queries |= {name: PlacementQuery(name, (), sink, copies) for name, sink, copies in table.rows()}
            return
        given = self._reader.entries(section, "queries", "queries: {q1: {operators: {f1: {inputs: [bids]}}}}")
        for name, value in given.items():
            value = {"sql": value} if isinstance(value, str) else value
            entry = self._reader.checked(QueryEntry, value, f"queries.{name}", ("query", name))
            self._queries[name] = (
                PlacementQuery(name, (), entry.sink, entry.copies) if entry else PlacementQuery(name, ())
            )
            if entry:
                self._query(name, entry)

    def _query(self, name: str, entry: QueryEntry) -> None:
        where = f"queries.{name}"
        ways = [key for key in ("sql", "fragments", "operators") if getattr(entry, key) is not None]
        if len(ways) > 1:
            self._reader.refuse(where, f"expected one of {' and '.join(ways)}, got both", "remove one of them")
            self._reader.broken.add(("query", name))
        elif entry.sql is not None:
            self._from_sql(name, entry.sql, entry.fragmenter)
        elif entry.operators is not None:
            for operator in self._operators(entry.operators, f"{where}.operators"):
                self._reader.put(("fragment", operator.name), f"{where}.operators.{operator.name}")
                self.fragments.append(Fragment(operator.name, name, (operator,), self._first_stream(operator)))
        else:
            for fragment, value in (entry.fragments or {}).items():
                self._fragment(name, fragment, value)

    def _from_sql(self, name: str, sql: str, fragmenter: str) -> None:
        where = f"queries.{name}.sql"
        if not self._known:
            self._reader.broken.add(("query", name))
            hint = "add schema and time to a stream, as in schema: {price: double, at: timestamp}, time: at"
            self._reader.refuse(where, "SQL is written over streams with a schema, and no stream has one", hint)
            return
        try:
            made = from_sql.fragments(name, sql, fragmenter, self._known, self._streams, self._costs)
        except QueryError as error:
            for problem in error.problems:
                said = f"{problem.where}: {problem.message}" if problem.where else problem.message
                without = "; only those with a schema" if problem.hint.startswith("the streams are") else ""
                self._reader.refuse(where, said, problem.hint + without, problem.excerpt)
            self._reader.broken.add(("query", name))
            return
        self.fragments += made

    def _fragment(self, query: str, name: str, value: Any) -> None:
        where = f"queries.{query}.fragments.{name}"
        entry = self._reader.checked(FragmentEntry, value, where, ("fragment", name))
        operators = tuple(self._operators(entry.operators, f"{where}.operators")) if entry else ()
        self.fragments.append(Fragment(name, query, operators, entry.native if entry else None))

    def _operators(self, section: Mapping[str, Any], where: str) -> list[Operator]:
        made = []
        for name, value in section.items():
            entry = self._reader.checked(OperatorEntry, value, f"{where}.{name}", ("operator", name))
            made.append(entry.operator(name) if entry else Operator(name, ()))
        return made

    def _first_stream(self, operator: Operator) -> str | None:
        return next((name for name in operator.inputs if name in self._streams), None)


def inputs_first(problem: Problem) -> Problem:
    """With the operators of every fragment in an order in which each comes after those it reads."""
    columns = index(problem)
    fragments = list(problem.fragments)
    for n in set(columns.home[columns.readers[columns.late]].tolist()):
        fragments[n] = _inputs_first(fragments[n])
    # The same problem if nothing changes, as all that is known of it is kept with it.
    return problem if columns.late.size == 0 else replace(problem, fragments=tuple(fragments))


def _inputs_first(fragment: Fragment) -> Fragment:
    own = {o.name: o for o in fragment.operators}
    graph = {o.name: [i for i in o.inputs if i in own] for o in fragment.operators}
    try:
        order = tuple(own[name] for name in TopologicalSorter(graph).static_order())
    except CycleError:
        return fragment  # reported when the whole problem is looked at
    return replace(fragment, operators=order)
