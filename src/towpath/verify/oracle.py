"""One DuckDB statement per query: its answer over the complete input, for the event times it is valid for."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot import exp

from towpath.arrow import arrow_schema, as_decimals
from towpath.lang.query import RANK, ROW, WINDOW, Input, Lookup, Query, Select, Top, View, window_column_type
from towpath.schema import Catalog, Column, Type
from towpath.verify.render import Renderer, quoted
from towpath.verify.texts import register

# No column of a stream holds a control character, so these never hide one.
TIME = quoted("\x01time")  # a tuple's event time in microseconds
HALF = quoted("\x01half")  # 0 or 1: the two buckets of time in which a tuple can find partners
KEY = "\x01key"  # of a reference table, by which its rows are looked up
START = quoted("\x01start")  # of a window whose first rows are chosen, or of a session
END = quoted("\x01end")
FIRST, NUMBER = quoted("\x01first"), quoted("\x01number")  # whether a tuple begins a session, and which one it is of
PARTITION, SORTED = "\x01partition", "\x01sorted"  # what they are chosen by
HOP = quoted("\x01hop")  # how many slides before the newest one a window starts


def expected(
    con: duckdb.DuckDBPyConnection,
    query: Query,
    catalog: Catalog,
    from_us: int | None = None,
    until_us: int | None = None,
    ceded_us: int | None = None,
) -> pa.Table:
    """The answer over the tables of `con` that are named like the streams, for the validity [from_us, until_us).

    Of a version that another one has replaced, only results that begin before `ceded_us`.
    """
    register(con)
    answer = con.sql(batch_sql(query, catalog, from_us, until_us, ceded_us)).to_arrow_table()
    units = answer.cast(arrow_schema({c.name: c.type for c in query.columns}))
    return as_decimals(units, [c.scale for c in query.columns])


def batch_sql(
    query: Query,
    catalog: Catalog,
    from_us: int | None = None,
    until_us: int | None = None,
    ceded_us: int | None = None,
) -> str:
    """The query as one DuckDB statement; it needs the functions of `towpath.verify.texts`."""
    known = query.known(catalog)
    answers = (_Batch(select, query.columns, known, from_us, until_us, ceded_us).sql() for select in query.selects)
    views = ", ".join(f"{quoted(view.name)} AS ({_view(view, known)})" for view in query.views)
    return (f"WITH {views}\n" if views else "") + "\nUNION ALL\n".join(answers)


def _view(view: View, known: Catalog) -> str:
    """All of its results: a query stands from some time on, what it reads has always been there."""
    columns = tuple(item.column for item in view.select.items)
    return _Batch(view.select, columns, known, time=view.stream.time).sql()


@dataclass(frozen=True)
class _Batch:
    select: Select
    columns: tuple[Column, ...]
    catalog: Catalog
    from_us: int | None = None
    until_us: int | None = None
    ceded_us: int | None = None
    time: str = ""  # under this name the result time is put out, too

    def sql(self) -> str:
        render = Renderer(self._column_type, self._window_times())
        items = [
            f"{'NULL' if _is_rank(item.expr) else render.output(item.expr, column.type)} AS {quoted(column.name)}"
            for item, column in zip(self.select.items, self.columns, strict=True)
        ]
        if self.time:
            items.append(f"make_timestamp({self._result_time()}) AS {quoted(self.time)}")
        if self.select.top is None:
            return self._rows(items, render)
        return self._first_rows(self.select.top, items, render)

    def _first_rows(self, top: Top, items: list[str], render: Renderer) -> str:
        """The rows of all windows with what ranks them, and then the first ones of each window."""
        partition = [f"{render(expr)} AS {quoted(f'{PARTITION}{n}')}" for n, expr in enumerate(top.partition_by)]
        keys = [f"{render(key.expr)} AS {quoted(f'{SORTED}{n}')}" for n, key in enumerate(top.order_by)]
        rows = self._rows([*items, *partition, *keys, f"{self._window_start()} AS {START}"], render)
        parts = ", ".join([START, *(quoted(f"{PARTITION}{n}") for n in range(len(partition)))])
        order = [
            f"{quoted(f'{SORTED}{n}')} {'DESC' if key.descending else 'ASC'} "
            f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for n, key in enumerate(top.order_by)
        ]
        shown = list(zip(self.select.items, self.columns, strict=True))
        if top.function == "row_number":
            order += [f"{quoted(c.name)} ASC NULLS FIRST" for item, c in shown if not _is_rank(item.expr)]
        rank = f"{top.function}() OVER (PARTITION BY {parts} ORDER BY {', '.join(order)})"
        columns = [f"{rank} AS {quoted(c.name)}" if _is_rank(item.expr) else quoted(c.name) for item, c in shown]
        columns += [quoted(self.time)] if self.time else []
        return f"SELECT {', '.join(columns)} FROM ({rows}) QUALIFY {rank} <= {top.most}"

    def _rows(self, items: list[str], render: Renderer) -> str:
        tables, conditions = self._from(render)
        if self._gap is not None:
            tables, conditions = self._with_sessions(tables, conditions, render), []
        lines = ["SELECT " + ", ".join(items), "FROM " + tables]
        conditions += self._validity()
        if conditions:
            lines.append("WHERE " + " AND ".join(conditions))
        if self.select.window and not (self.select.top and self.select.top.of_tuples):
            bounds = [self._window_start(), *([self._window_end()] if self._gap is not None else [])]
            lines.append("GROUP BY " + ", ".join([*bounds, *map(render, self.select.group_by)]))
        if self.select.having:
            lines.append("HAVING " + " AND ".join(map(render, self.select.having)))
        return "\n".join(lines)

    @property
    def _gap(self) -> int | None:
        """What ends a session; None if there are none."""
        window = self.select.window
        return window.range_us if window is not None and window.is_session else None

    def _with_sessions(self, tuples: str, conditions: list[str], render: Renderer) -> str:
        """The tuples that count, each with the beginning and the end of its session: those at most a gap apart are of
        one."""
        (source,) = self.select.inputs
        alias, time = quoted(source.alias), _time_of(source)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        same = ", ".join(map(render, self.select.group_by))
        before = f"OVER ({f'PARTITION BY {same} ' if same else ''}ORDER BY {time})"
        first = f"coalesce({time} - lag({time}) {before} > {self._gap}, true)"
        marked = f"(SELECT *, CAST({first} AS INTEGER) AS {FIRST} FROM {tuples}{where}) AS {alias}"
        counted = f"(SELECT *, sum({FIRST}) {before} AS {NUMBER} FROM {marked}) AS {alias}"
        session = f"OVER (PARTITION BY {', '.join([*([same] if same else []), NUMBER])})"
        bounds = f"min({time}) {session} AS {START}, max({time}) {session} + {self._gap} AS {END}"
        return f"(SELECT *, {bounds} FROM {counted}) AS {alias}"

    def _from(self, render: Renderer) -> tuple[str, list[str]]:
        """The tables, each joined on all it shares with those before it, and the conditions on the first one alone."""
        waiting = list(self.select.inputs)
        placed = [waiting.pop(0)]
        where = list(self.select.where)
        first = [render(c) for c in _take(where, placed)]
        tables = [self._source(placed[0])]
        while waiting:
            new, anchor = _next_pair(placed, waiting, self.select.where)
            waiting.remove(new)
            on = [_same_bucket(anchor, new)]
            on += [condition for old in placed for condition in _in_each_others_window(old, new)]
            placed.append(new)
            on += [render(c) for c in _take(where, placed)]
            tables.append(f"JOIN {self._source(new, halves=True)} ON " + " AND ".join(on))
        if self._hops() > 1:
            tables.append(f"CROSS JOIN (SELECT range AS {HOP} FROM range({self._hops()}))")
        return "\n  ".join(tables), first

    def _source(self, source: Input, halves: bool = False) -> str:
        """The columns needed of a stream: timestamps in UTC without zone, integers in 64 bits, as in the language."""
        stream = self.catalog[source.stream]
        time = f"epoch_us({quoted(stream.time)})"
        looked_up = {c.name for t in source.lookups for value, _ in t.keys for c in value.find_all(exp.Column)}
        used = self._used_columns(source.alias) | looked_up
        columns = [f"{time} AS {TIME}"]
        columns += [f"{_as_computed(c)} AS {quoted(c.name)}" for c in stream.columns if c.name in used]
        table = quoted(source.stream)
        if halves:
            columns.append(HALF)
            table += f", (VALUES (0), (1)) AS halves({HALF})"
        # A window that starts in time has all its tuples, also the older partners of a join.
        valid = "" if self.from_us is None or self.select.window else f" WHERE {time} >= {self.from_us}"
        tuples = f"(SELECT {', '.join(columns)} FROM {table}{valid})"
        for number, lookup in enumerate(source.lookups):
            tuples = f"(SELECT * FROM {tuples} AS {quoted(ROW)} {self._joined(source, lookup, f'{KEY}{number}-')})"
        return f"{tuples} AS {quoted(source.alias)}"

    def _joined(self, source: Input, lookup: Lookup, key: str) -> str:
        """The join of a stream's tuples with a reference table, whose columns get the names that they have there."""
        columns = [f"{_as_computed(c)} AS {quoted(c.name)}" for c in self.catalog[lookup.table].columns]
        brought = [f"{quoted(name)} AS {quoted(as_.name)}" for name, as_ in lookup.columns]
        keys = [f"{quoted(name)} AS {quoted(f'{key}{n}')}" for n, (_, name) in enumerate(lookup.keys)]
        types = {c.name: c.type for c in source.read(self.catalog).columns}
        render = Renderer(lambda _, name: types[name], {})
        equal = [f"{render(value)} = {quoted(f'{key}{n}')}" for n, (value, _) in enumerate(lookup.keys)]
        kind = "LEFT JOIN" if lookup.outer else "JOIN"
        table = f"(SELECT {', '.join(columns)} FROM {quoted(lookup.table)})"
        return f"{kind} (SELECT {', '.join([*brought, *keys])} FROM {table}) ON {' AND '.join(equal)}"

    def _used_columns(self, alias: str) -> set[str]:
        select = self.select
        return {
            c.name for root in (*select.where, *select.above) for c in root.find_all(exp.Column) if c.table == alias
        }

    def _column_type(self, alias: str, name: str) -> Type:
        if alias == WINDOW:
            return window_column_type(name)
        read = next(i for i in self.select.inputs if i.alias == alias)
        return next(c.type for c in read.read(self.catalog).columns if c.name == name)

    def _time(self) -> str:
        """The time of a tuple or of a combination: the latest of its parts."""
        times = [_time_of(i) for i in self.select.inputs]
        return times[0] if len(times) == 1 else f"greatest({', '.join(times)})"

    def _result_time(self) -> str:
        window = self.select.window
        return self._window_end() if window else self._time()

    def _earliest(self) -> str:
        times = [_time_of(i) for i in self.select.inputs]
        return times[0] if len(times) == 1 else f"least({', '.join(times)})"

    def _hops(self) -> int:
        window = self.select.window
        return window.range_us // window.slide_us if window and not window.is_session else 1

    def _window_start(self) -> str:
        assert self.select.window
        if self._gap is not None:
            return f"{quoted(self.select.inputs[0].alias)}.{START}"
        slide = self.select.window.slide_us
        newest = _floor(self._time(), slide)
        return newest if self._hops() == 1 else f"({newest} - {HOP} * {slide})"

    def _window_end(self) -> str:
        assert self.select.window
        if self._gap is not None:
            return f"{quoted(self.select.inputs[0].alias)}.{END}"
        return f"{self._window_start()} + {self.select.window.range_us}"

    def _window_times(self) -> dict[str, str]:
        if not self.select.window:
            return {}
        start = self._window_start()
        end = self._window_end()
        return {"window_start": f"make_timestamp({start})", "window_end": f"make_timestamp({end})"}

    def _validity(self) -> list[str]:
        conditions = []
        if self.select.window:
            if self.from_us is not None:
                # Whether a tuple is the first of a session, those of the gap before it say.
                conditions.append(f"{self._window_start()} - {self._gap or 0} >= {self.from_us}")
            if self.until_us is not None:
                conditions.append(f"{self._window_end()} <= {self.until_us}")
        elif self.until_us is not None:
            conditions.append(f"{self._time()} < {self.until_us}")
        if self.ceded_us is not None:
            # A window belongs to who stood when it began, a combination to who stood at its earliest tuple.
            earliest = self._window_start() if self.select.window else self._earliest()
            conditions.append(f"{earliest} < {self.ceded_us}")
        return conditions


def _is_rank(expr: exp.Expression) -> bool:
    return isinstance(expr, exp.Column) and (expr.table, expr.name) == (WINDOW, RANK)


def _take(conditions: list[exp.Expression], placed: list[Input]) -> list[exp.Expression]:
    """Remove and return the conditions that need only what is placed."""
    known = {i.alias for i in placed}
    ready = [c for c in conditions if {column.table for column in c.find_all(exp.Column)} <= known]
    conditions[:] = [c for c in conditions if not any(c is r for r in ready)]
    return ready


def _next_pair(placed: list[Input], waiting: list[Input], where: tuple[exp.Expression, ...]) -> tuple[Input, Input]:
    """A waiting input tied by an equality to a placed one, and that one; checked queries always have such a pair."""
    equal = {
        frozenset((c.left.table, c.right.table))
        for c in where
        if isinstance(c, exp.EQ) and isinstance(c.left, exp.Column) and isinstance(c.right, exp.Column)
    }
    pairs = [(new, old) for new in waiting for old in placed]
    return next((p for p in pairs if {p[0].alias, p[1].alias} in equal), pairs[0])


def _same_bucket(old: Input, new: Input) -> str:
    """Equality on buckets of time, implied by the windows: a join with few distinct keys would be a cross product.

    The old tuple's time lies in [t - range_old, t + range_new], which touches two buckets of its own length.
    """
    width = max(_range(old) + _range(new), 1)
    oldest = _floor(f"{_time_of(new)} - {_range(old)}", width)
    return f"{_floor(_time_of(old), width)} = {oldest} + {quoted(new.alias)}.{HALF} * {width}"


def _in_each_others_window(old: Input, new: Input) -> tuple[str, str]:
    return (
        f"{_time_of(new)} - {_time_of(old)} <= {_range(old)}",
        f"{_time_of(old)} - {_time_of(new)} <= {_range(new)}",
    )


def _range(source: Input) -> int:
    assert source.range_us is not None, f"{source.alias} is joined and has no window"
    return source.range_us


def _time_of(source: Input) -> str:
    return f"{quoted(source.alias)}.{TIME}"


def _floor(time: str, width: int) -> str:
    """The multiple of `width` at or before a time; % has the sign of its left side, and times may be negative."""
    return f"({time} - ((({time}) % {width}) + {width}) % {width})"


def _as_computed(column: Column) -> str:
    name = quoted(column.name)
    if column.type is Type.TIMESTAMP:
        return f"make_timestamp(epoch_us({name}))"
    return f"CAST({name} AS BIGINT)" if column.type.integral else name
