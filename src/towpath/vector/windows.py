"""Fragments with windows over one batch: their partial aggregates.

A batch is reduced to one row for each fragment, window and group that it touches. A hopping window is made of panes as
long as its slide: rows are added to panes, and panes to all windows that they are part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from towpath.arrow import arrow_schema
from towpath.lang.query import Window
from towpath.plan.slots import GROUPS, MERGED, Measure
from towpath.schema import Type
from towpath.vector.aggregates import Contribution, measured, reduced
from towpath.vector.evaluate import (
    Numbered,
    OneStream,
    Origin,
    Pairs,
    Program,
    arrow,
    calculated,
    distinct,
    numbered,
    parts,
    prepared,
    table_of,
    with_null,
)
from towpath.vector.fragments import NamedExpression, VectorFragment

PARTIALS: pa.Schema = arrow_schema(
    {"_fragment": Type.INT, "_end": Type.BIGINT, "_post": Type.STRING}
    | dict(GROUPS)
    | {name: type_ for name, (_, type_) in MERGED.items()}
)
"""What goes into the aggregate, and comes out of it: the window's end is in microseconds."""

Grouping = tuple[tuple[str, NamedExpression], ...]  # columns of the key and their values


@dataclass(frozen=True)
class _Cells:
    """The pairs of fragment, pane and group that a batch touches."""

    of_pairs: np.ndarray  # number of the cell
    places: np.ndarray  # of each cell its fragment
    panes: np.ndarray  # and the start of its pane
    groups: np.ndarray  # and the number of its group

    @property
    def size(self) -> int:
        return len(self.places)


class _Merged:
    """A column of the aggregate: what each fragment merges in it, or nothing."""

    def __init__(self, fragments: Sequence[VectorFragment], name: str) -> None:
        self._merge, self._type = MERGED[name]
        self._numbers: dict[tuple[Measure, NamedExpression | None], int] = {}
        self._which = np.array([self._number(f, name) for f in fragments], np.int64)
        self._measures = list(self._numbers)

    def _number(self, fragment: VectorFragment, name: str) -> int:
        if name not in fragment.partials:
            return -1
        partial, argument = fragment.partials[name]
        return self._numbers.setdefault((partial.measure, argument), len(self._numbers))

    def _used(self, active: np.ndarray) -> list[int]:
        return [int(n) for n in np.unique(self._which[active]) if n >= 0]

    def arguments(self, active: np.ndarray) -> Iterator[NamedExpression]:
        return (named for n in self._used(active) if (named := self._measures[n][1]) is not None)

    def reduced(
        self, found: Mapping[NamedExpression, pl.Series], pairs: Pairs, cells: _Cells, height: int
    ) -> pl.Series | None:
        used = self._used(pairs.active)
        if not used:
            return None
        each = [self._measured(n, found, height) for n in used]
        order = np.full(len(self._measures) + 1, -1)  # the last is where -1 leads to
        order[used] = np.arange(len(used))
        mine = order[self._which[pairs.places]]
        taken = mine >= 0
        at, of = mine[taken] * height + pairs.rows[taken], cells.of_pairs[taken]
        values = np.concatenate([m.values + o if o else m.values for m, o in zip(each, _offsets(each), strict=True)])
        totals = reduced(self._merge, self._type, values[at], of, cells.size)
        empty = self._which[cells.places] < 0
        if any(m.valid is not None for m in each):
            valid = np.concatenate([np.ones(height, bool) if m.valid is None else m.valid for m in each])
            empty |= np.bincount(of, weights=valid[at], minlength=cells.size) == 0
        return _series(totals, empty, [m.texts for m in each if m.texts is not None])

    def _measured(self, n: int, found: Mapping[NamedExpression, pl.Series], height: int) -> Contribution:
        measure, argument = self._measures[n]
        return measured(measure, self._merge, None if argument is None else found[argument], height)


class Windows(Program):
    """Fragments with windows."""

    def __init__(self, fragments: Iterable[VectorFragment], origin: type[Origin] = OneStream) -> None:
        super().__init__(fragments, origin)
        self._merged = {name: _Merged(self.fragments, name) for name in MERGED}
        groupings: dict[Grouping, int] = {}
        kinds: dict[tuple[int, int], int] = {}
        windows = [_window(f) for f in self.fragments]
        mine = [groupings.setdefault(tuple(sorted(f.groups.items())), len(groupings)) for f in self.fragments]
        self._groupings = list(groupings)
        self._grouping_of = np.array(mine, np.int64)
        self._slides = np.array([w.slide_us for w in windows], np.int64)
        self._hops = np.array([w.range_us // w.slide_us for w in windows], np.int64)
        self._kind_of = np.array(
            [kinds.setdefault((g, w.slide_us), len(kinds)) for g, w in zip(mine, windows, strict=True)], np.int64
        )
        self._kinds = list(kinds)  # each a grouping and a slide
        self._posts = pl.Series("", [f.post for f in self.fragments], pl.String)

    def partials(self, batch: pa.Table) -> pa.Table:
        """What the rows of a batch add to the windows that they are in."""
        return pa.concat_tables([PARTIALS.empty_table(), *(self._partials(prepared(part)) for part in parts(batch))])

    def _partials(self, frame: pl.DataFrame) -> pa.Table:
        pairs = self.pairs(frame)
        if not len(pairs.active):
            return PARTIALS.empty_table()
        used = [int(g) for g in np.unique(self._grouping_of[pairs.active])]
        keys = (named for g in used for _, named in self._groupings[g])
        arguments = (named for column in self._merged.values() for named in column.arguments(pairs.active))
        wanted = list(dict.fromkeys([*keys, *arguments]))
        found = dict(zip(wanted, calculated(frame, wanted, self.fragments), strict=True))
        groups = {g: _groups(self._groupings[g], found, frame.height) for g in used}
        cells = self._cells(self.origin.latest(frame), pairs, groups)
        columns = self._group_values(cells, groups)
        for name, column in self._merged.items():
            if (values := column.reduced(found, pairs, cells, frame.height)) is not None:
                columns[name] = values
        return self._in_windows(cells, columns)

    def _cells(self, times: np.ndarray, pairs: Pairs, groups: Mapping[int, Numbered]) -> _Cells:
        """Every kind of grouping and slide numbers its cells; those of a fragment follow those of the one before."""
        kinds = [int(k) for k in np.unique(self._kind_of[pairs.active])]
        slides = {self._kinds[k][1] for k in kinds}
        panes = {slide: np.unique(times - times % slide, return_inverse=True) for slide in slides}
        order = np.full(len(self._kinds), -1)
        order[kinds] = np.arange(len(kinds))
        kind_of = order[self._kind_of]
        mine = [(groups[g], *panes[slide]) for g, slide in (self._kinds[k] for k in kinds)]
        numbers = np.stack([pane_of * group.size + group.numbers for group, _, pane_of in mine])
        sizes = np.array([len(starts) * group.size for group, starts, _ in mine])[kind_of[pairs.active]]
        ends = np.cumsum(sizes)
        first = np.zeros(len(self.fragments), np.int64)
        first[pairs.active] = ends - sizes
        raw = first[pairs.places] + numbers[kind_of[pairs.places], pairs.rows]
        cells, of_pairs = distinct(raw, int(ends[-1]))
        places = pairs.active[np.searchsorted(ends, cells, "right")]
        pane, group = np.divmod(cells - first[places], np.array([g.size for g, _, _ in mine])[kind_of[places]])
        pane_offsets = np.cumsum([0, *(len(starts) for _, starts, _ in mine[:-1])])
        starts = np.concatenate([starts for _, starts, _ in mine])[pane_offsets[kind_of[places]] + pane]
        return _Cells(of_pairs, places, starts, group)

    def _group_values(self, cells: _Cells, groups: Mapping[int, Numbered]) -> dict[str, pl.Series]:
        found = {}
        grouping_of = self._grouping_of[cells.places]
        for slot in GROUPS:
            having = [g for g in groups if slot in groups[g].values]
            if having:
                series = [groups[g].values[slot].alias("") for g in having]
                offsets = np.full(len(self._groupings), -1)
                offsets[having] = np.cumsum([0, *(len(s) for s in series[:-1])])
                at = offsets[grouping_of]
                found[slot] = with_null(series).gather(np.where(at < 0, sum(map(len, series)), at + cells.groups))
        return found

    def _in_windows(self, cells: _Cells, columns: Mapping[str, pl.Series]) -> pa.Table:
        """Each pane in all windows that it is part of."""
        hops = self._hops[cells.places]
        at = np.repeat(np.arange(cells.size), hops)
        hop = np.arange(len(at)) - np.repeat(np.cumsum(hops) - hops, hops) + 1
        places = cells.places[at]
        made = {name: arrow(column if len(at) == cells.size else column.gather(at)) for name, column in columns.items()}
        made["_fragment"] = pa.array(self.numbers[places])
        made["_end"] = pa.array(cells.panes[at] + self._slides[places] * hop)
        made["_post"] = arrow(self._posts.gather(places))
        return table_of(made, PARTIALS, len(at))


def _window(fragment: VectorFragment) -> Window:
    assert fragment.pipeline.window is not None, "a fragment of windows has one"
    return fragment.pipeline.window


def _groups(grouping: Grouping, found: Mapping[NamedExpression, pl.Series], height: int) -> Numbered:
    if not grouping:
        return Numbered(np.zeros(height, np.int64), {}, 1)
    return numbered(pl.DataFrame([found[named].alias(slot) for slot, named in grouping]))


def _offsets(all_measured: list[Contribution]) -> list[int]:
    """Where the texts of each begin, when they are put one behind the other."""
    sizes = [0 if m.texts is None else len(m.texts) for m in all_measured]
    return [int(o) for o in np.cumsum([0, *sizes[:-1]])]


def _series(totals: np.ndarray, empty: np.ndarray, texts: Sequence[pl.Series]) -> pl.Series:
    if texts:
        together = with_null([t.alias("") for t in texts])
        return together.gather(np.where(empty, len(together) - 1, totals))
    return pl.Series(totals).set(pl.Series(empty), None) if empty.any() else pl.Series(totals)
