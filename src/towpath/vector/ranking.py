"""The first rows of windows that have closed, of rows as the results log has them.

A row may stand for several equal tuples. Whatever rows come later, one that is not among the first of those that are
there will never be: so many rows are ranked a part at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa

from towpath.plan.ranking import RankedBy
from towpath.vector.expressions import unsigned_zero

WINDOW = ("_fragment", "_time")
MOST = "_most"

Rankings = Mapping[int, RankedBy]  # by fragment


def first_rows(rows: pa.Table, rankings: Rankings) -> pa.Table:
    """Without the rows that are not among the first."""
    kept = [found.rows[found.ranks <= found.most] for found in _ranked(rows, rankings)]
    return rows.take(pa.array(np.concatenate([np.empty(0, np.int64), *kept])))


def numbered_rows(rows: pa.Table, rankings: Rankings) -> pa.Table:
    """The first rows, each as often as there are tuples that it stands for, with their ranks."""
    return pa.concat_tables([rows.slice(0, 0), *(_numbered(rows, found) for found in _ranked(rows, rankings))])


def _numbered(rows: pa.Table, found: _Ranked) -> pa.Table:
    one_by_one = found.by.function == "row_number"
    left = found.most - found.ranks + 1
    copies = np.where(left > 0, np.minimum(found.counts, left) if one_by_one else found.counts, 0)
    of = np.repeat(np.arange(len(copies)), copies)
    ranks = found.ranks[of]
    if one_by_one:
        ranks = ranks + np.arange(len(of)) - np.repeat(np.cumsum(copies) - copies, copies)
    place = rows.schema.get_field_index(found.by.rank)
    return rows.take(pa.array(found.rows[of])).set_column(place, rows.schema.field(place), [pa.array(ranks)])


@dataclass(frozen=True)
class _Ranked:
    """Rows of fragments that rank by the same columns, in their order."""

    by: RankedBy
    rows: np.ndarray  # their numbers
    counts: np.ndarray  # of the tuples that each stands for
    ranks: np.ndarray  # of several tuples the first one's
    most: np.ndarray


def _ranked(rows: pa.Table, rankings: Rankings) -> Iterator[_Ranked]:
    alike: dict[RankedBy, list[int]] = {}
    for fragment, by in rankings.items():
        alike.setdefault(replace(by, most=0), []).append(fragment)
    fragments = rows["_fragment"].to_numpy()
    for by, mine in alike.items():
        numbers = np.flatnonzero(np.isin(fragments, mine))
        if len(numbers):
            most = {fragment: rankings[fragment].most for fragment in mine}
            yield _in_order(rows, numbers, by, np.array([most[f] for f in fragments[numbers].tolist()], np.int64))


def _in_order(rows: pa.Table, numbers: np.ndarray, by: RankedBy, most: np.ndarray) -> _Ranked:
    keys = [*((name, False, True) for name in (*WINDOW, *by.partition)), *by.order]
    keys += [(name, False, True) for name in by.ties]
    keys = [key for n, key in enumerate(keys) if key[0] not in {name for name, _, _ in keys[:n]}]
    needed = dict.fromkeys([*(name for name, _, _ in keys), *([by.count] if by.count else [])])
    frame = pl.DataFrame(pl.from_arrow(rows.select(list(needed)).take(pa.array(numbers))))
    doubles = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    frame = frame.with_columns(unsigned_zero(pl.col(name)).alias(name) for name in doubles)
    frame = frame.with_columns(pl.Series(MOST, most)).with_row_index("_row")
    names, descending, nulls_first = zip(*keys, strict=True)
    frame = frame.sort(names, descending=list(descending), nulls_last=[not first for first in nulls_first])
    counts = frame[by.count].to_numpy() if by.count else np.ones(frame.height, np.int64)
    window = _first_of(frame, (*WINDOW, *by.partition))
    peers = _first_of(frame, (*WINDOW, *by.partition, *(name for name, _, _ in by.order)))
    return _Ranked(
        by, numbers[frame["_row"].to_numpy()], counts, _ranks(by, counts, window, peers), frame[MOST].to_numpy()
    )


def _ranks(by: RankedBy, counts: np.ndarray, window: np.ndarray, peers: np.ndarray) -> np.ndarray:
    """`window` and `peers` have for each row the first one that is equal to it in these."""
    if by.function == "dense_rank":
        different = np.cumsum(peers == np.arange(len(peers)))
        return different - different[window] + 1
    before = np.cumsum(counts) - counts
    first = peers if by.function == "rank" else np.arange(len(peers))
    return before[first] - before[window] + 1


def _first_of(frame: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    """For each row of a sorted frame, the number of the first row that has the same values there."""
    changes = frame.select(
        pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in dict.fromkeys(names))
    ).to_series()
    starts = changes.to_numpy().copy()
    starts[:1] = True
    return np.maximum.accumulate(np.where(starts, np.arange(frame.height), 0))
