"""The fragments of a universal carrier over one batch of its input: which rows each takes, and what filters put out.

Every distinct expression is calculated once for the whole batch, by Polars. A fragment is then a set of row numbers,
and what it puts out is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from towpath.arrow import ARROW, arrow_schema
from towpath.errors import FragmentFailed
from towpath.plan.slots import OUTPUTS
from towpath.schema import STREAM, Type
from towpath.vector.fragments import Mask, NamedExpression, VectorFragment
from towpath.vector.texts import TIMESTAMP

US = "_us"
RESULTS: pa.Schema = arrow_schema({"_fragment": Type.INT, "_time": Type.TIMESTAMP, "_born": Type.TIMESTAMP, **OUTPUTS})
"""What goes to the results log."""

# Sums of halves of so many rows are exact in doubles.
MOST_ROWS = 2**20


def prepared(batch: pa.Table) -> pl.DataFrame:
    """A batch as expressions are calculated on it: integers in 64 bits, timestamps in UTC without saying so."""
    frame = pl.DataFrame(pl.from_arrow(batch))
    return frame.with_columns(pl.col(pl.Int32).cast(pl.Int64), pl.col(pl.Datetime).cast(TIMESTAMP))


@dataclass(frozen=True)
class Pairs:
    """Fragments, by their place in the program, and the numbers of rows that they take; a fragment's are together."""

    places: np.ndarray
    rows: np.ndarray
    active: np.ndarray  # places that take at least one


@dataclass(frozen=True)
class Numbered:
    """The distinct keys of rows: the number of each row's key, and the values of each number."""

    numbers: np.ndarray
    values: dict[str, pl.Series]
    size: int


def numbered(keys: pl.DataFrame) -> Numbered:
    """(Without `group_by` of Polars, which was half of the samples of a profile of small batches.)"""
    numbers, size = np.zeros(keys.height, np.int64), 1
    for column in keys.get_columns():
        codes = arrow(column).dictionary_encode("encode")  # NULL has a code, too
        count = len(codes.dictionary)
        used, numbers = distinct(numbers * count + codes.indices.to_numpy(), size * count)
        size = len(used)
    first = np.empty(size, np.int64)
    first[numbers[::-1]] = np.arange(keys.height)[::-1]
    return Numbered(numbers, {name: keys[name].gather(first) for name in keys.columns}, size)


def distinct(raw: np.ndarray, space: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers below `space`, in order, and the place of each among them."""
    if space > 32 * len(raw) + 10_000:
        return np.unique(raw, return_inverse=True)
    present = np.zeros(space, bool)
    present[raw] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[raw]


class FragmentColumn:
    """A column that each fragment fills with an expression of its own, or leaves NULL."""

    def __init__(self, fragments: Sequence[Mapping[str, NamedExpression]], name: str) -> None:
        self._numbers: dict[NamedExpression, int] = {}
        mine = (f.get(name) for f in fragments)
        which = [-1 if n is None else self._numbers.setdefault(n, len(self._numbers)) for n in mine]
        self._which = np.array(which, np.int64)
        self._named = list(self._numbers)

    def used(self, active: np.ndarray) -> list[NamedExpression]:
        """The expressions of these fragments."""
        return [self._named[n] for n in np.unique(self._which[active]) if n >= 0]

    def looked_up(self, found: Mapping[NamedExpression, pl.Series], pairs: Pairs) -> pl.Series | None:
        """For every pair the value of its fragment's expression in its row; None if all are NULL."""
        used = self.used(pairs.active)
        if not used:
            return None
        series = [found[named].alias("") for named in used]
        height, nothing = len(series[0]), len(series)
        order = np.full(len(self._named) + 1, nothing)  # the last is where -1 leads to
        order[[self._numbers[named] for named in used]] = np.arange(nothing)
        expressions = order[self._which[pairs.places]]
        at = np.where(expressions == nothing, height * nothing, expressions * height + pairs.rows)
        return with_null(series).gather(at)


class Origin(Protocol):
    """Where the rows of a batch come from."""

    def __init__(self, fragments: Sequence[VectorFragment]) -> None: ...

    def latest(self, frame: pl.DataFrame) -> np.ndarray:
        """The result time of each row."""

    def earliest(self, frame: pl.DataFrame) -> np.ndarray:
        """The event time of the oldest tuple that a row is made of."""

    def candidates(self, frame: pl.DataFrame) -> Sequence[np.ndarray]:
        """Of each fragment, which rows it is asked about."""


class OneStream:
    """The tuples of a class of streams, of which each fragment reads one."""

    def __init__(self, fragments: Sequence[VectorFragment]) -> None:
        self._streams = [f.stream for f in fragments]

    def latest(self, frame: pl.DataFrame) -> np.ndarray:
        return frame[f"i0_{US}"].to_numpy()

    earliest = latest

    def candidates(self, frame: pl.DataFrame) -> Sequence[np.ndarray]:
        of_stream = rows_of_streams(frame[f"i0_{STREAM}"], self._streams)
        return [of_stream[stream] for stream in self._streams]


def rows_of_streams(streams: pl.Series, names: Iterable[str]) -> dict[str, np.ndarray]:
    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, truths([streams == name for name in distinct]), strict=True))


class Masks:
    """Which rows fulfil the conditions of some, each of which has several masks: one that holds is enough."""

    def __init__(self, wanted: Iterable[Sequence[Mask]]) -> None:
        numbers: dict[NamedExpression, int] = {}
        self._masks = [[[numbers.setdefault(c, len(numbers)) for c in mask] for mask in masks] for masks in wanted]
        self.conditions = list(numbers)

    def taken(self, candidates: Sequence[np.ndarray], values: Sequence[pl.Series]) -> Iterator[np.ndarray]:
        truth = truths(values)
        for among, masks in zip(candidates, self._masks, strict=True):
            yield _taken(among, masks, truth)


class Program:
    """Fragments that read the same input, ready for one batch after another."""

    def __init__(self, fragments: Iterable[VectorFragment], origin: type[Origin] = OneStream) -> None:
        self.fragments = tuple(fragments)
        self.numbers = np.array([f.number for f in self.fragments], np.int32)
        self.origin = origin(self.fragments)
        self._masks = Masks(f.masks for f in self.fragments)

    def pairs(self, frame: pl.DataFrame) -> Pairs:
        values = calculated(frame, self._masks.conditions, self.fragments)
        rows, active = [], []
        for place, taken in enumerate(self._masks.taken(self.origin.candidates(frame), values)):
            numbers = np.flatnonzero(taken)
            if len(numbers):
                rows.append(numbers)
                active.append(place)
        if not active:
            return Pairs(*(np.empty(0, np.int64) for _ in range(3)))
        places = np.array(active)
        return Pairs(np.repeat(places, [len(numbers) for numbers in rows]), np.concatenate(rows), places)


def calculated(
    frame: pl.DataFrame, wanted: Sequence[NamedExpression], fragments: Sequence[VectorFragment]
) -> list[pl.Series]:
    """Each a column of the batch's length."""
    if not wanted:
        return []
    first = frame.columns[0]  # says how many rows there are
    exprs = [named.expr.alias(str(n)) for n, named in enumerate(wanted)]
    try:
        return frame.select(first, *exprs).get_columns()[1:]
    except Exception as error:
        raise _blamed(frame, wanted, fragments, error) from error


def _blamed(
    frame: pl.DataFrame, wanted: Sequence[NamedExpression], fragments: Sequence[VectorFragment], error: Exception
) -> Exception:
    """Who is at fault when something fails: nobody else is to suffer for it."""
    for named in wanted:
        try:
            frame.select(frame.columns[0], named.expr.alias("value"))
        except Exception as alone:
            owner = next((f for f in fragments if named in f.all_named()), None)
            return error if owner is None else FragmentFailed(owner.number, alone)
    return error


def truths(conditions: Sequence[pl.Series]) -> list[np.ndarray]:
    """What is NULL is not true. (All at once: Polars takes as long for one column as for fifty.)"""
    unsure = [s.alias(str(n)) for n, s in enumerate(conditions) if s.null_count()]
    filled = {s.name: s for s in pl.DataFrame(unsure).fill_null(False)} if unsure else {}
    return [filled.get(str(n), s).to_numpy() for n, s in enumerate(conditions)]


def _taken(of_stream: np.ndarray, masks: list[list[int]], truth: list[np.ndarray]) -> np.ndarray:
    taken = None
    for mask in masks:
        inside = of_stream
        for condition in mask:
            inside = inside & truth[condition]
        taken = inside if taken is None else taken | inside
    assert taken is not None, "a pipeline has a box at least"
    return taken


class Filters(Program):
    """Fragments without windows."""

    def __init__(self, fragments: Iterable[VectorFragment], origin: type[Origin] = OneStream) -> None:
        super().__init__(fragments, origin)
        outputs = [f.outputs for f in self.fragments]
        self._columns = {slot: FragmentColumn(outputs, slot) for slot in OUTPUTS}

    def results(self, batch: pa.Table) -> pa.Table:
        """The rows of the results log, fragment by fragment."""
        return pa.concat_tables([RESULTS.empty_table(), *(self._results(prepared(part)) for part in parts(batch))])

    def _results(self, frame: pl.DataFrame) -> pa.Table:
        pairs = self.pairs(frame)
        wanted = list(dict.fromkeys(n for column in self._columns.values() for n in column.used(pairs.active)))
        found = dict(zip(wanted, calculated(frame, wanted, self.fragments), strict=True))
        time, born = (times(frame)[pairs.rows] for times in (self.origin.latest, self.origin.earliest))
        columns = {
            "_fragment": pa.array(self.numbers[pairs.places]),
            "_time": _instants(time),
            "_born": _instants(born),
        }
        for slot, column in self._columns.items():
            if (values := column.looked_up(found, pairs)) is not None:
                columns[slot] = arrow(values)
        return table_of(columns, RESULTS, len(pairs.rows))


def _instants(us: np.ndarray) -> pa.Array:
    return pa.array(us).cast(ARROW[Type.TIMESTAMP])


def parts(batch: pa.Table) -> Iterable[pa.Table]:
    return (batch.slice(start, MOST_ROWS) for start in range(0, batch.num_rows, MOST_ROWS))


def with_null(series: Sequence[pl.Series]) -> pl.Series:
    """One behind the other, and a NULL at the end."""
    return pl.concat([*series, pl.Series("", [None], series[0].dtype)], rechunk=True)


def arrow(series: pl.Series) -> pa.Array:
    return series.to_arrow(compat_level=pl.CompatLevel.oldest())


def table_of(columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.Table:
    """With all columns of the schema, those that are not given being NULL."""
    made = [
        _typed(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.table(made, schema=schema)


def _typed(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)
