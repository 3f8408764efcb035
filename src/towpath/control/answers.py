"""Where the results of a query are, and for which event times it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from towpath.control.records import BEGINNING_US, PartRecord
from towpath.plan.assignment import NOBODY
from towpath.results import Part
from towpath.store import Store


def read_part(store: Store, part: PartRecord, carrier: str) -> Part:
    # A part that no micro-batch has confirmed yet answers for nothing.
    fragment = part.fragment if part.settled else NOBODY
    times = (part.from_us, part.until_us, part.windowed, part.moved_us, part.held_us)
    return Part(store.results(carrier), fragment, part.columns, *times, part.select, part.branch, part.keys)


def _between(pick: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else pick(one, other)


def whole(parts: Sequence[PartRecord]) -> list[PartRecord]:
    """One part for each SELECT, whatever turns its fragments took and how many copies there are."""
    first: dict[int, PartRecord] = {}
    for part in parts:
        first.setdefault(part.branch, replace(part, moved_us=None, held_us=None))
    found: dict[int, PartRecord] = {}
    for copy in (part for part in first.values() if part.settled and part.until_us != BEGINNING_US):
        known = found.setdefault(copy.select, copy)
        # None is the beginning of time, and its end.
        known.from_us = _between(min, known.from_us, copy.from_us)
        known.until_us = _between(max, known.until_us, copy.until_us)
    for part in first.values():
        found.setdefault(part.select, part)
    return [found[select] for select in sorted(found)]
