"""FROM: the streams and derived tables of one SELECT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from towpath.lang.decimals import column_units, like, scaled
from towpath.lang.dialect import LONGEST_US, Windowed
from towpath.lang.functions import did_you_mean
from towpath.lang.query import WINDOW, Input, Select, duration
from towpath.lang.refusals import refuse_clauses
from towpath.lang.scope import ScopedInput, column, lookup
from towpath.lang.underline import Problems
from towpath.lang.views import Views, WithName
from towpath.schema import RESULT_TIME

MOST_INPUTS = 5
MOST_WINDOWS = 1000  # a tuple falls into RANGE / SLIDE windows

_ONE_SELECT = "a derived table is one SELECT"
_UNION_OUTSIDE = "write FROM (SELECT ...) AS name; UNION ALL and JOIN stand outside of the parentheses"
_INNER = "joins of this kind are missing: an inner join gives the pairs that match, and nothing else"
_OF_TABLES = "this is missing: JOIN gives the rows that a tuple finds, LEFT JOIN keeps tuples that find none, too"


class ReadsSelect(Protocol):
    def read(self, raw: exp.Select) -> Select | None: ...


class FromReader:
    """`inner` gives the reader of a derived table, by the names that it knows from WITH."""

    def __init__(
        self,
        views: Views,
        problems: Problems,
        named: Mapping[str, WithName],
        inner: Callable[[Mapping[str, WithName]], ReadsSelect],
    ) -> None:
        self._views = views
        self._catalog = views.catalog
        self._problems = problems
        self._named = named
        self._inner = inner
        self._joins = False

    def read(self, raw: exp.Select) -> tuple[list[ScopedInput], list[exp.Expr]]:
        """The inputs, and the conditions of ON."""
        start = raw.args.get("from_")
        if start is None:
            self._problems.add(raw, "FROM is missing", "name a stream: SELECT ... FROM stream")
            return [], []
        joins = raw.args.get("joins") or []
        self._joins = sum(not self._is_table(node) for node in (start.this, *(join.this for join in joins))) > 1
        sources = self._distinct([self._source(start.this), *(self._joined(join) for join in joins)])
        self._check_number([source for source in sources if not source.is_table])
        outer = [source.outer_on for source in sources]
        return sources, [on for join in joins if (on := join.args.get("on")) and not any(on is o for o in outer)]

    def _joined(self, join: exp.Join) -> ScopedInput:
        source = self._source(join.this)
        words = " ".join(str(join.args[k]).upper() for k in ("method", "side", "kind") if join.args.get(k))
        if source.is_table and words in ("LEFT", "LEFT OUTER") and join.args.get("on"):
            refuse_clauses(join, "this on side kind method using", self._problems)
            return replace(source, outer_on=join.args["on"])
        if source.is_table and words not in ("", "INNER") and not join.args.get("using"):
            message = f"{words} JOIN of a table is not supported" + (" without ON" if words == "LEFT" else "")
            self._problems.add(join, message, _OF_TABLES)
            return source
        self._refuse_join(join)
        return source

    def _is_table(self, node: exp.Expr) -> bool:
        """Whether it names a reference table, which nothing has to be kept for."""
        if isinstance(node, Windowed):
            return self._is_table(node.this)
        if not isinstance(node, exp.Table) or node.name.lower() in self._named:
            return False
        name = lookup(node.name, self._catalog)
        return name is not None and self._catalog[name].is_table

    def _source(self, node: exp.Expr) -> ScopedInput:
        if not isinstance(node, Windowed):
            return self._unwindowed(node)
        refuse_clauses(node, "this range_us slide_us session", self._problems)
        source = replace(self._unwindowed(node.this), node=node)
        range_us = self._length(node, "range_us", source.alias)
        slide_us = self._length(node, "slide_us", source.alias)
        if source.is_table:
            self._problems.add(node, f"{source.alias} is a table, which has no window", "leave the window out")
            return source
        if range_us is None:
            return source
        source = replace(source, range_us=range_us, slide_us=slide_us, is_session=bool(node.args.get("session")))
        if slide_us and range_us % slide_us:
            message = f"RANGE {duration(range_us)} is not a multiple of SLIDE {duration(slide_us)}"
            self._problems.add(node, message, "such windows are missing; another SLIDE gives other results")
        elif slide_us and range_us // slide_us > MOST_WINDOWS:
            message = f"each tuple would fall into {range_us // slide_us} windows, at most {MOST_WINDOWS} are allowed"
            self._problems.add(node, message, "choose a longer SLIDE or a shorter RANGE")
        return source

    def _length(self, node: Windowed, key: str, alias: str) -> int | None:
        """RANGE or SLIDE of a window; None if there is none, or none that can be."""
        length: int | None = node.args.get(key)
        if length is None or 0 < length <= LONGEST_US:
            return length
        what = f"the {'window' if key == 'range_us' else 'SLIDE'} of {alias}" if alias else "a window"
        wrong = "has to be longer than nothing" if length <= 0 else f"is at most {duration(LONGEST_US)}"
        self._problems.add(node.meta[key], f"{what} {wrong}")
        return None

    def _unwindowed(self, node: exp.Expr) -> ScopedInput:
        alias = node.args.get("alias")
        if alias and alias.args.get("columns"):
            self._problems.add(alias, "columns are not renamed in FROM", "name them in SELECT with AS")
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            refuse_clauses(node, "this alias db catalog", self._problems)
            return self._stream(node)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            refuse_clauses(node, "this alias", self._problems)
            return self._derived(node, node.this, node.alias, self._named)
        if isinstance(node, exp.Subquery):
            self._problems.add(node, _ONE_SELECT, _UNION_OUTSIDE)
            return ScopedInput(node, node.alias, None, (), derived=True)
        hint = "FROM takes streams, and derived tables: (SELECT ...) [RANGE 10 SECONDS] AS name"
        self._problems.add(node, f"{self._problems.text(node)} is not a stream", hint)
        return ScopedInput(node, node.alias, None, ())

    def _stream(self, node: exp.Table) -> ScopedInput:
        if not node.args.get("db") and (named := self._named.get(node.name.lower())) is not None:
            return self._by_name(node, named)
        if node.args.get("db"):
            self._problems.add(node, "a stream's name has one part", "quote a name that holds a dot")
            return ScopedInput(node, node.alias or node.name, None, ())
        name = lookup(node.name, self._catalog)
        if name is None:
            hint = did_you_mean(node.name, [*self._named, *self._catalog]) or self._names()
            self._problems.add(node, f"there is no stream {node.name}", hint)
            return ScopedInput(node, node.alias or node.name, None, ())
        alias = node.alias or name
        columns = {c.name: column_units(column(alias, c.name), c.decimal) for c in self._catalog[name].columns}
        return ScopedInput(node, alias, columns, (Input(alias, name),), is_table=self._catalog[name].is_table)

    def _names(self) -> str:
        tables = [name for name, known in self._catalog.items() if known.is_table]
        streams = [name for name in self._catalog if name not in tables]
        if len(self._catalog) > 20:
            return ""
        return f"the streams are {', '.join(streams)}" + (f"; the tables {', '.join(tables)}" if tables else "")

    def _by_name(self, node: exp.Table, named: WithName) -> ScopedInput:
        alias, body = node.alias or node.name, named.node.this
        if named.node.args["alias"].args.get("columns"):
            self._problems.add(named.node, "WITH does not rename columns", "name them in its SELECT with AS")
        if isinstance(body, exp.Select):
            return self._derived(node, body, alias, named.known)
        self._problems.add(named.node, _ONE_SELECT, _UNION_OUTSIDE)
        return ScopedInput(node, alias, None, (), derived=True)

    def _derived(self, node: exp.Expr, body: exp.Select, alias: str, named: Mapping[str, WithName]) -> ScopedInput:
        inner = self._inner(named).read(body)
        if inner is None:
            return ScopedInput(node, alias, None, (), derived=True)
        if inner.window is None and not self._joins:
            # What neither aggregates nor is joined again is part of the SELECT that reads it.
            columns, hidden = self._with_result_time(inner)
            return ScopedInput(node, alias, columns, inner.inputs, inner.where, derived=True, hidden=hidden)
        if inner.window is None and len(inner.inputs) == 1 and all(isinstance(i.expr, exp.Column) for i in inner.items):
            return _renamed(node, inner, alias or inner.inputs[0].alias, *self._with_result_time(inner))
        if inner.window is not None and inner.window.is_session:
            hint = "views over sessions are missing; put the SELECT into a query of its own"
            self._problems.add(node, "sessions cannot be read by another SELECT", hint)
            return ScopedInput(node, alias, None, (), derived=True)
        view = self._views.add(inner)
        alias = alias or view.name
        columns = {
            item.name: column_units(column(alias, f"v{n}"), item.column.decimal) for n, item in enumerate(inner.items)
        }
        taken = any(name.lower() == RESULT_TIME for name in columns)
        hidden = frozenset[str]() if taken else frozenset([RESULT_TIME])
        columns |= {name: column(alias, view.stream.time) for name in hidden}
        return ScopedInput(node, alias, columns, (Input(alias, view.name),), derived=True, hidden=hidden)

    def _with_result_time(self, select: Select) -> tuple[dict[str, exp.Expression], frozenset[str]]:
        """The columns of a view that becomes part of its reader, and which of them `*` does not stand for."""
        columns = {
            item.name: item.expr if item.scale is None else scaled(item.expr, item.scale) for item in select.items
        }
        if any(name.lower() == RESULT_TIME for name in columns):
            return columns, frozenset()
        times = [column(i.alias, self._views.known[i.stream].time) for i in select.inputs]
        latest = times[0] if len(times) == 1 else exp.Greatest(this=times[0], expressions=times[1:])
        return {**columns, RESULT_TIME: latest}, frozenset([RESULT_TIME])

    def _refuse_join(self, join: exp.Join) -> None:
        refuse_clauses(join, "this on side kind method using", self._problems)
        kind = " ".join(str(join.args[k]) for k in ("method", "side", "kind") if join.args.get(k))
        if join.args.get("using"):
            self._problems.add(join, "USING is not supported", "write ON a.x = b.x")
        if kind.upper() not in ("", "INNER"):
            self._problems.add(join, f"{kind.upper()} JOIN is not supported, only inner joins are", _INNER)

    def _distinct(self, sources: list[ScopedInput]) -> list[ScopedInput]:
        """The inputs, of which one that takes another's name brings in nothing."""
        found: list[ScopedInput] = []
        for source in sources:
            if source.alias.lower() == WINDOW:
                self._problems.add(source.node, "an input cannot be called window", "give it another name with AS")
                source = replace(source, columns=None, inputs=())
            elif any(source.alias.lower() == other.alias.lower() for other in found):
                message = f"two inputs are called {source.alias}"
                self._problems.add(source.node, message, f"give one another name: AS {source.alias}2")
                source = replace(source, columns=None, inputs=())
            found.append(source)
        return found

    def _check_number(self, sources: list[ScopedInput]) -> None:
        if len(sources) > MOST_INPUTS:
            message = f"{len(sources)} inputs, at most {MOST_INPUTS} can be joined"
            self._problems.add(sources[MOST_INPUTS].node, message, "split the query")


def _renamed(
    node: exp.Expr, select: Select, alias: str, columns: Mapping[str, exp.Expression], hidden: frozenset[str]
) -> ScopedInput:
    """A filter that is joined is its stream under another name."""

    def rename(expr: exp.Expression) -> exp.Expression:
        return expr.transform(lambda n: like(n, column(alias, n.name)) if isinstance(n, exp.Column) else n)

    renamed = {name: rename(expr) for name, expr in columns.items()}
    source = replace(select.inputs[0], alias=alias)
    return ScopedInput(node, alias, renamed, (source,), tuple(map(rename, select.where)), derived=True, hidden=hidden)
