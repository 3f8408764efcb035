"""FROM: the streams and derived tables of one SELECT."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from towpath.lang.dialect import LONGEST_US, Windowed
from towpath.lang.functions import did_you_mean
from towpath.lang.query import WINDOW, Input, Select, duration
from towpath.lang.refusals import refuse_clauses
from towpath.lang.scope import ScopedInput, column, lookup
from towpath.lang.underline import Problems
from towpath.schema import Catalog

MOST_INPUTS = 5
MOST_WINDOWS = 1000  # a tuple falls into RANGE / SLIDE windows

_TIE = "write FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.x = b.y"


class ReadsSelect(Protocol):
    def read(self, raw: exp.Select) -> Select | None: ...


class FromReader:
    """`derived` reads derived tables; None where there must be none."""

    def __init__(self, catalog: Catalog, problems: Problems, derived: ReadsSelect | None) -> None:
        self._catalog = catalog
        self._problems = problems
        self._inner = derived

    def read(self, raw: exp.Select) -> tuple[list[ScopedInput], list[exp.Expr]]:
        """The inputs, and the conditions of ON."""
        start = raw.args.get("from_")
        if start is None:
            self._problems.add(raw, "FROM is missing", "name a stream: SELECT ... FROM stream")
            return [], []
        joins = raw.args.get("joins") or []
        for join in joins:
            self._refuse_join(join)
        sources = self._distinct([self._source(node) for node in (start.this, *(join.this for join in joins))])
        self._check_number(sources)
        return sources, [join.args["on"] for join in joins if join.args.get("on")]

    def _source(self, node: exp.Expr) -> ScopedInput:
        if not isinstance(node, Windowed):
            return self._unwindowed(node)
        refuse_clauses(node, "this range_us slide_us", self._problems)
        source = replace(self._unwindowed(node.this), node=node)
        range_us = self._length(node, "range_us", source.alias)
        slide_us = self._length(node, "slide_us", source.alias)
        if range_us is None:
            return source
        source = replace(source, range_us=range_us, slide_us=slide_us)
        if slide_us and range_us % slide_us:
            message = f"RANGE {duration(range_us)} is not a multiple of SLIDE {duration(slide_us)}"
            self._problems.add(node, message, "choose a SLIDE that divides the RANGE")
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
            return self._derived(node)
        if isinstance(node, exp.Subquery):
            hint = "write FROM (SELECT ...) AS name; UNION ALL and JOIN stand outside of the parentheses"
            self._problems.add(node, "a derived table is one SELECT", hint)
            return ScopedInput(node, node.alias, None, (), derived=True)
        hint = "FROM takes streams, and derived tables: (SELECT ...) [RANGE 10 SECONDS] AS name"
        self._problems.add(node, f"{self._problems.text(node)} is not a stream", hint)
        return ScopedInput(node, node.alias, None, ())

    def _stream(self, node: exp.Table) -> ScopedInput:
        if node.args.get("db"):
            self._problems.add(node, "a stream's name has one part", "quote a name that holds a dot")
            return ScopedInput(node, node.alias or node.name, None, ())
        name = lookup(node.name, self._catalog)
        if name is None:
            known = f"the streams are {', '.join(self._catalog)}" if len(self._catalog) <= 20 else ""
            hint = did_you_mean(node.name, self._catalog) or known
            self._problems.add(node, f"there is no stream {node.name}", hint)
            return ScopedInput(node, node.alias or node.name, None, ())
        alias = node.alias or name
        columns = {c.name: column(alias, c.name) for c in self._catalog[name].columns}
        return ScopedInput(node, alias, columns, (Input(alias, name),))

    def _derived(self, node: exp.Subquery) -> ScopedInput:
        if self._inner is None:
            self._problems.add(node, "a derived table inside a derived table is not supported", "write one SELECT")
            return ScopedInput(node, node.alias, None, (), derived=True)
        inner = self._inner.read(node.this)
        if inner is None:
            return ScopedInput(node, node.alias, None, (), derived=True)
        columns = {item.name: item.expr for item in inner.items}
        return ScopedInput(node, node.alias, columns, inner.inputs, inner.where, derived=True)

    def _refuse_join(self, join: exp.Join) -> None:
        refuse_clauses(join, "this on side kind method using", self._problems)
        kind = " ".join(str(join.args[k]) for k in ("method", "side", "kind") if join.args.get(k))
        if join.args.get("using"):
            self._problems.add(join, "USING is not supported", "write ON a.x = b.x")
        if kind.upper() not in ("", "INNER"):
            self._problems.add(join, f"{kind.upper()} JOIN is not supported, only inner joins are", _TIE)

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
        for source in sources if len(sources) > 1 else ():
            if source.derived:
                hint = "join the streams in one FROM, and aggregate over that"
                self._problems.add(source.node, "a derived table cannot be joined", hint)
