"""A checked query: what the rest of towpath sees of a SQL text.

Names are resolved, types are known, nothing is planned yet.

Expressions are sqlglot trees in which
- every column is `exp.Column(this=name, table=alias)`, quoted or not does not matter, the case is the stream's own;
- `window_start` and `window_end` of a window are `exp.Column(this="window_start", table="window")`; the rank of one of
  its first rows is `exp.Column(this="rank", table="window")`, and is an output column by itself alone;
- aggregate calls are `Count(Star)`, `Count(x)`, `Count(Distinct(x))`, `Sum`, `Avg`, `Min`, `Max`, `StddevSamp`;
- only the node types listed in `typing.py` occur, so that a compiler needs to know no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp

from towpath.schema import COMPUTED_DIGITS, Catalog, Column, DecimalType, Stream, Type, reference_table

MILLISECOND = 1_000
SESSIONS = "session"  # the kind of such windows
UNITS = {
    "DAY": 86_400_000 * MILLISECOND,
    "HOUR": 3_600_000 * MILLISECOND,
    "MINUTE": 60_000 * MILLISECOND,
    "SECOND": 1_000 * MILLISECOND,
    "MILLISECOND": MILLISECOND,
}
WINDOW = "window"  # the pseudo alias of window_start and window_end, and of RANK
RANK = "rank"
SESSION = 0  # in the place of a slide: windows that a gap ends
ROW = "row"  # the pseudo alias, in what is looked up in a table, of the tuple that it is looked up for


def window_column_type(name: str) -> Type:
    """Of a column under the pseudo alias WINDOW."""
    return Type.BIGINT if name == RANK else Type.TIMESTAMP


def duration(microseconds: int) -> str:
    """`10 SECONDS`: in the largest unit that gives a whole number."""
    unit, size = next((u, s) for u, s in UNITS.items() if microseconds % s == 0)
    count = microseconds // size
    return f"{count} {unit}{'' if count == 1 else 'S'}"


def window(range_us: int, slide_us: int | None) -> str:
    if slide_us == SESSION:
        return f"[SESSION {duration(range_us)}]"
    slide = f" SLIDE {duration(slide_us)}" if slide_us and slide_us != range_us else ""
    return f"[RANGE {duration(range_us)}{slide}]"


@dataclass(frozen=True)
class Lookup:
    """A reference table that is joined to an input: its tuples have the columns of the rows that are looked up."""

    table: str
    columns: tuple[tuple[str, Column], ...]  # each column of the table, and as what the input has it
    keys: tuple[tuple[exp.Expression, str], ...]  # a value of the tuple, and the column of the table that is equal
    outer: bool = False  # a tuple without such a row stays, with NULL in these columns

    @property
    def types(self) -> dict[str, Type]:
        """Of the table's columns."""
        return {name: brought.type for name, brought in self.columns}

    @property
    def reads(self) -> Stream:
        """The table, as a catalog has it."""
        return reference_table(self.table, tuple(replace(brought, name=name) for name, brought in self.columns))


@dataclass(frozen=True)
class Input:
    """One stream in FROM, under its alias, with the RANGE of its join window (None where nothing is joined)."""

    alias: str
    stream: str
    range_us: int | None = None
    lookups: tuple[Lookup, ...] = ()  # each after those whose columns it looks up

    def read(self, catalog: Catalog) -> Stream:
        """The stream, with the columns that tables bring."""
        return with_tables(catalog[self.stream], self.lookups)


def with_tables(stream: Stream, lookups: Iterable[Lookup]) -> Stream:
    brought = tuple(column for lookup in lookups for _, column in lookup.columns)
    return replace(stream, columns=(*stream.columns, *brought)) if brought else stream


@dataclass(frozen=True)
class Window:
    """An aggregate's window: length and hop, aligned to the epoch, or the gap that ends a session and SESSION.

    Tables and the journal have its fields.
    """

    range_us: int
    slide_us: int

    @property
    def is_session(self) -> bool:
        return self.slide_us == SESSION

    @property
    def kind(self) -> str:
        """What windows of one carrier have in common."""
        if self.is_session:
            return SESSIONS
        return "tumbling" if self.range_us == self.slide_us else "hopping"

    @property
    def text(self) -> str:
        return window(self.range_us, self.slide_us)

    def last_end_us(self, reached_us: int) -> int:
        """The end of the last window that a tuple of this time falls into."""
        if self.is_session:
            return reached_us + self.range_us + MILLISECOND  # a tuple at its end is still part of it
        return reached_us // self.slide_us * self.slide_us + self.range_us


@dataclass(frozen=True)
class Item:
    """One output column."""

    name: str
    expr: exp.Expression
    type: Type
    scale: int | None = None  # of a decimal: how many places its units have

    @property
    def column(self) -> Column:
        return Column(self.name, self.type, None if self.scale is None else DecimalType(COMPUTED_DIGITS, self.scale))


RankFunction = Literal["row_number", "rank", "dense_rank"]


@dataclass(frozen=True)
class SortKey:
    expr: exp.Expression
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Top:
    """The first rows of each window, or of each partition of it; those that are equal follow in the order of their
    output columns."""

    most: int
    function: RankFunction
    partition_by: tuple[exp.Expression, ...]
    order_by: tuple[SortKey, ...]
    of_tuples: bool = False  # the rows are the tuples of a window, and not what an aggregate makes of them

    @property
    def expressions(self) -> tuple[exp.Expression, ...]:
        return (*self.partition_by, *(key.expr for key in self.order_by))

    def mapped(self, change: Callable[[exp.Expression], exp.Expression]) -> Top:
        """With other expressions."""
        keys = (replace(key, expr=change(key.expr)) for key in self.order_by)
        return replace(self, partition_by=tuple(map(change, self.partition_by)), order_by=tuple(keys))


@dataclass(frozen=True)
class Select:
    """One SELECT without subqueries: a filter, a join, an aggregate, an aggregate over a join, or the first rows of
    windows."""

    inputs: tuple[Input, ...]
    where: tuple[exp.Expression, ...]  # conjuncts
    items: tuple[Item, ...]
    window: Window | None = None  # set if and only if this is an aggregate, or has a top
    group_by: tuple[exp.Expression, ...] = ()
    having: tuple[exp.Expression, ...] = ()  # conjuncts; may hold aggregate calls and group-by expressions
    top: Top | None = None

    @property
    def above(self) -> Iterator[exp.Expression]:
        """The expressions behind WHERE."""
        yield from (item.expr for item in self.items)
        yield from (*self.group_by, *self.having, *(self.top.expressions if self.top else ()))

    def mapped(self, change: Callable[[exp.Expression], exp.Expression]) -> Select:
        """With other expressions."""
        return replace(
            self,
            where=tuple(map(change, self.where)),
            items=tuple(replace(item, expr=change(item.expr)) for item in self.items),
            group_by=tuple(map(change, self.group_by)),
            having=tuple(map(change, self.having)),
            top=self.top.mapped(change) if self.top else None,
        )


@dataclass(frozen=True)
class View:
    """A SELECT whose results others read. Its columns are v0, v1, ... and the result time, its event time."""

    stream: Stream
    select: Select

    @property
    def name(self) -> str:
        """By which inputs of the same query know it."""
        return self.stream.name


@dataclass(frozen=True)
class Query:
    """One standing query: a SELECT, or several under UNION ALL.

    All have the same number and types of columns; the first names them.
    """

    name: str
    sql: str
    selects: tuple[Select, ...]
    views: tuple[View, ...] = ()  # each before those that read it
    translated: bool = field(default=False, compare=False)  # whether the text was in the spelling of another dialect
    note: str = field(default="", compare=False)  # what the text says that a query does not

    @property
    def everything(self) -> tuple[Select, ...]:
        """The SELECTs of its views, and its own."""
        return (*(view.select for view in self.views), *self.selects)

    @property
    def streams(self) -> frozenset[str]:
        """What it reads, also through views."""
        return frozenset(name for select in self.selects for name in self.streams_of(select))

    def streams_of(self, select: Select) -> frozenset[str]:
        """What one of its SELECTs reads."""
        through: dict[str, frozenset[str]] = {}
        for view in self.views:  # in their order, so that a view that many others read is looked through once
            through[view.name] = _read(view.select, through)
        return _read(select, through)

    @property
    def tables(self) -> frozenset[str]:
        """The reference tables that it reads, also through views."""
        return frozenset(t.table for select in self.everything for i in select.inputs for t in i.lookups)

    def known(self, catalog: Catalog) -> Catalog:
        """The streams and the views that its SELECTs read."""
        return {**catalog, **{view.name: view.stream for view in self.views}} if self.views else catalog

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(i.column for i in self.selects[0].items)


def _read(select: Select, through: dict[str, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*(through.get(i.stream, {i.stream}) for i in select.inputs))
