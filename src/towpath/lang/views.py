"""Views: SELECTs whose results another SELECT of the same query reads as a stream."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from towpath.lang.query import Select, View
from towpath.schema import LINK, Catalog, Column, Stream, Type, level, result_time


@dataclass(frozen=True)
class WithName:
    """What a name of WITH stands for, and the names that it may use itself: those before it."""

    node: exp.CTE
    known: Mapping[str, WithName]


@dataclass
class Views:
    """The views of a query, each before those that read it. One that is read twice is one view."""

    catalog: Catalog
    found: list[View] = field(default_factory=list)
    streams: dict[str, Stream] = field(default_factory=dict)

    @property
    def known(self) -> Catalog:
        """All that a SELECT can read: streams, and views by the names they have in the tree."""
        return ChainMap(self.streams, self.catalog)  # type: ignore[arg-type]

    def copy(self) -> Views:
        return Views(self.catalog, list(self.found), dict(self.streams))

    def add(self, select: Select) -> View:
        items = tuple(replace(item, name=f"v{n}") for n, item in enumerate(select.items))
        made = replace(select, items=items)
        for view in self.found:
            if view.select == made:
                return view
        time = result_time(1 + max(level(self.known[i.stream]) for i in select.inputs))
        columns = (*(item.column for item in items), Column(time, Type.TIMESTAMP))
        # A stream's name holds no blank.
        view = View(Stream(f"view {len(self.found) + 1}", columns, time, origin=LINK), made)
        self.found.append(view)
        self.streams[view.name] = view.stream
        return view
