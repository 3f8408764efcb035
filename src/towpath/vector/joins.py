"""Joins of any class over batches: which tuples are kept for which classes, and the pairs that met.

Between the two, tuples of one class, key and span meet (plan/join_class.py). What is kept of a tuple says how long some
fragment may want it, so that pairs which no fragment wants are not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from towpath.arrow import arrow_schema
from towpath.plan.assignment import input_column
from towpath.plan.join_class import CLASS, KEPT, JoinClass, key_columns, partner_bit, stream_number
from towpath.schema import STREAM
from towpath.vector.evaluate import US, Masks, arrow, calculated, parts, prepared, rows_of_streams
from towpath.vector.fragments import Mask, NamedExpression, VectorFragment, carried

_KEPT: pa.Schema = arrow_schema(KEPT)


@dataclass(frozen=True)
class _Wanted:
    """What the fragments of one class want of an input that is one of several reasons to keep a tuple."""

    of: JoinClass
    stream: str
    partner: int  # the bit of the other stream
    masks: tuple[Mask, ...]
    range_us: int  # the longest of those who want it so


@dataclass(frozen=True)
class _Kept:
    """Of every tuple, for a class: how long it is wanted by some fragment, -1 if by none, and its partners."""

    longest: np.ndarray
    partners: np.ndarray


class Side:
    """The tuples of one input of the joins."""

    def __init__(self, fragments: Iterable[VectorFragment], side: int) -> None:
        self._fragments = tuple(fragments)
        self._side, self._alias = side, f"i{side}"
        self._wanted = _wanted(self._fragments, side)
        self._masks = Masks(w.masks for w in self._wanted)
        self._keys = {f.join_class: dict(_keys(f, side)) for f in self._fragments}

    def kept(self, batch: pa.Table) -> pa.Table:
        """Each tuple once for every class and span that it is wanted in, without the name of its stream."""
        stream = f"{self._alias}_{STREAM}"
        empty = pa.schema([f for f in batch.schema if f.name != stream] + list(_KEPT)).empty_table()
        return pa.concat_tables([empty, *(self._kept(part, stream) for part in parts(batch))])

    def _kept(self, batch: pa.Table, stream: str) -> pa.Table:
        frame = prepared(batch)
        keys = list(dict.fromkeys(named for columns in self._keys.values() for named in columns.values()))
        values = calculated(frame, [*self._masks.conditions, *keys], self._fragments)
        of_stream = rows_of_streams(frame[stream], (w.stream for w in self._wanted))
        candidates = [of_stream[w.stream] for w in self._wanted]
        taken = self._masks.taken(candidates, values[: len(self._masks.conditions)])
        key_values = dict(zip(keys, values[len(self._masks.conditions) :], strict=True))
        times = frame[f"{self._alias}_{US}"].to_numpy()
        streams = np.zeros(frame.height, np.int64)
        for name, mine in of_stream.items():
            streams[mine] = stream_number(name)
        found = []
        for of, keep in self._of_classes(taken, frame.height):
            keys_of = {name: key_values[named] for name, named in self._keys[of].items()}
            found.append(_copies(of, keep, times, streams, keys_of))
        rows = np.concatenate([rows for rows, _ in found]) if found else np.empty(0, np.int64)
        kept = pa.concat_tables([_KEPT.empty_table(), *(table for _, table in found)])
        tuples = batch.drop_columns(stream).take(pa.array(rows))
        for name in kept.column_names:
            tuples = tuples.append_column(kept.schema.field(name), kept[name])
        return tuples

    def _of_classes(self, taken: Iterator[np.ndarray], height: int) -> Iterator[tuple[JoinClass, _Kept]]:
        found: dict[JoinClass, _Kept] = {}
        # The longest come last.
        for wanted, mask in zip(self._wanted, taken, strict=True):
            if wanted.of not in found:
                found[wanted.of] = _Kept(np.full(height, -1, np.int64), np.zeros(height, np.int64))
            rows = np.flatnonzero(mask)
            found[wanted.of].longest[rows] = wanted.range_us
            found[wanted.of].partners[rows] |= wanted.partner
        yield from found.items()


def _wanted(fragments: Iterable[VectorFragment], side: int) -> list[_Wanted]:
    longest: dict[tuple[JoinClass, str, int, tuple[Mask, ...]], int] = {}
    for fragment in fragments:
        mine, other = fragment.pipeline.sources[side], fragment.pipeline.sources[1 - side]
        key = (fragment.join_class, mine.stream, partner_bit(other.stream), fragment.side_masks(side))
        longest[key] = max(mine.range_us, longest.get(key, 0))
    return sorted((_Wanted(*key, us) for key, us in longest.items()), key=lambda w: w.range_us)


def _keys(fragment: VectorFragment, side: int) -> Iterator[tuple[str, NamedExpression]]:
    """The key of a fragment's class, by column; in another column it would be another key."""
    types = fragment.layout.types
    for name, key, type_ in key_columns(fragment.pipeline.keys, types):
        column = key[side]
        value = carried(pl.col(input_column(*column)), type_)
        yield name, NamedExpression(f"{column[0]}.{column[1]!r} as {type_.value}", value)


def _copies(
    of: JoinClass, kept: _Kept, times: np.ndarray, streams: np.ndarray, keys: dict[str, pl.Series]
) -> tuple[np.ndarray, pa.Table]:
    """The numbers of the rows that are kept for a class, and what they are kept with. NULL is equal to nothing."""
    keep = kept.longest
    for values in keys.values():
        if values.null_count():
            keep = np.where(values.is_null().to_numpy(), -1, keep)
    own = np.flatnonzero(keep >= 0)
    ends = times[own] - times[own] % of.span_us + of.span_us
    # Whoever may be paired with a later tuple of the next span is kept there, too.
    further = times[own] + keep[own] >= ends
    rows = np.concatenate([own, own[further]])
    until = np.concatenate([ends, ends[further] + of.span_us])
    columns = {
        CLASS: pa.array(np.full(len(rows), of.number, np.int64)),
        "_from": pa.array(until - of.span_us),
        "_until": pa.array(until),
        "_keep": pa.array(keep[rows]),
        "_of": pa.array(streams[rows]),
        "_partners": pa.array(kept.partners[rows]),
        **{name: arrow(values.gather(rows)) for name, values in keys.items()},
    }
    nothing = {f.name: pa.nulls(len(rows), f.type) for f in _KEPT}
    return rows, pa.table([(nothing | columns)[f.name].cast(f.type) for f in _KEPT], schema=_KEPT)


class JoinedPairs:
    """Pairs of tuples that met: each fragment is asked about those of its class, streams and windows."""

    def __init__(self, fragments: Sequence[VectorFragment]) -> None:
        self._asked = [_asked(f) for f in fragments]

    def latest(self, frame: pl.DataFrame) -> np.ndarray:
        return np.maximum(*_times(frame))

    def earliest(self, frame: pl.DataFrame) -> np.ndarray:
        return np.minimum(*_times(frame))

    def candidates(self, frame: pl.DataFrame) -> Sequence[np.ndarray]:
        latest = self.latest(frame)
        # How long each tuple must be available for the pair to be one.
        ages = [latest - times for times in _times(frame)]
        found: dict[_Term, np.ndarray] = {}
        together: dict[tuple[_Term, ...], np.ndarray] = {}
        for terms in dict.fromkeys(self._asked):
            for term in terms:
                if term not in found:
                    column, value = term
                    found[term] = (
                        ages[column] <= value if isinstance(column, int) else frame[column].to_numpy() == value
                    )
            together[terms] = np.logical_and.reduce([found[term] for term in terms])
        return [together[terms] for terms in self._asked]


_Term = tuple[str | int, int]  # a column and its value, or an input and its RANGE


def _asked(fragment: VectorFragment) -> tuple[_Term, ...]:
    sources = fragment.pipeline.sources
    streams = ((f"i{n}__of", stream_number(s.stream)) for n, s in enumerate(sources))
    return (CLASS, fragment.join_class.number), *streams, *((n, s.range_us) for n, s in enumerate(sources))


def _times(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return frame[f"i0_{US}"].to_numpy(), frame[f"i1_{US}"].to_numpy()
