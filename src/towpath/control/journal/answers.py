"""Where the results of a query are, and for which event times it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from towpath.config.settings import close_to
from towpath.control.journal.journal import Journal
from towpath.control.state.records import BEGINNING_US, CarrierRecord, PartRecord, QueryRecord
from towpath.errors import UnknownQueryError
from towpath.plan.assignment import NOBODY
from towpath.results import Part
from towpath.schema import decimal_of
from towpath.store.layout import Store


def read_parts(journal: Journal, store: Store, query: QueryRecord) -> list[Part]:
    """Where the results of a query are, and those of the versions that it continues."""
    found: list[Part] = []
    for version in journal.versions(query):
        records = journal.parts(version.id)
        undecided = any(part.deciding is not None for part, _ in records)
        before = 1 + max((part.select for part in found), default=-1)
        for part, carrier in records:
            made = _read_part(store, part, carrier)
            found.append(replace(made, select=before + part.select, undecided=undecided, scales=_scales(version)))
    return found


def _read_part(store: Store, part: PartRecord, carrier: str) -> Part:
    # A part that no micro-batch has confirmed yet answers for nothing.
    fragment = part.fragment if part.settled else NOBODY
    times = (part.from_us, part.until_us, part.windowed, part.handed_over_us, part.pending_fence_us)
    made = Part(store.results(carrier), fragment, part.columns, *times, part.select, part.branch, part.keys)
    return replace(made, ceded_us=part.ceded_us)


def _scales(query: QueryRecord) -> tuple[int | None, ...]:
    decimals = map(decimal_of, query.types)
    return tuple(None if decimal is None else decimal.scale for decimal in decimals)


def share_read(carrier: CarrierRecord, carriers: Iterable[CarrierRecord]) -> float:
    """How much of the past a carrier has read again, by event time: from 0 to 1, where the others are."""
    classes = set(carrier.template.family.classes)
    ahead = [c.newest_us for c in carriers if not c.past and classes & set(c.template.family.classes)]
    there_us = max((us for us in ahead if us is not None), default=None)
    here_us, first_us = carrier.newest_us, carrier.first_us
    if there_us is None or (here_us is not None and here_us >= there_us):
        return 1.0
    return 0.0 if here_us is None or first_us is None else (here_us - first_us) / (there_us - first_us)


def state_of(parts: Iterable[PartRecord], past: Mapping[int, float]) -> str:
    """The state of a query that runs; `past` has how much was read again for fragments that need it."""
    now = [part for part in parts if part.handed_over_us is None]
    if not all(part.settled for part in now):
        return "starting"
    share = min((past.get(part.fragment, 1.0) for part in now), default=1.0)
    return "standing" if share >= 1 else f"catching up {int(share * 100)}%"


def _between(pick: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else pick(one, other)


def whole(parts: Sequence[PartRecord]) -> list[PartRecord]:
    """One part for each SELECT, whatever turns its fragments took and how many copies there are."""
    first: dict[int, PartRecord] = {}
    for part in parts:
        first.setdefault(part.branch, replace(part, handed_over_us=None, pending_fence_us=None))
    found: dict[int, PartRecord] = {}
    for copy in (part for part in first.values() if part.settled and part.until_us != BEGINNING_US):
        known = found.setdefault(copy.select, copy)
        # None is the beginning of time, and its end.
        known.from_us = _between(min, known.from_us, copy.from_us)
        known.until_us = _between(max, known.until_us, copy.until_us)
    for part in first.values():
        found.setdefault(part.select, part)
    return [found[select] for select in sorted(found)]


@dataclass(frozen=True)
class QueryVersion:
    """What one version of a query answers for; each SELECT has its own event times."""

    sql: str
    validity: Sequence[PartRecord]


class Answers:
    """By the names of queries, where their results are and what these must be."""

    def __init__(self, journal: Journal, store: Store) -> None:
        self._journal = journal
        self._store = store

    def parts(self, name: str) -> list[Part]:
        """Where a query's results are."""
        return read_parts(self._journal, self._store, self._query(name))

    def validity(self, name: str) -> list[PartRecord]:
        """For which event times each SELECT of a query's newest version answers."""
        return self._validity(self._query(name))

    def versions(self, name: str) -> list[QueryVersion]:
        """A query and the versions that it continues, oldest first: together they are what its results must be."""
        versions = self._journal.versions(self._query(name))
        return [QueryVersion(version.sql, self._validity(version)) for version in versions]

    def _validity(self, version: QueryRecord) -> list[PartRecord]:
        return whole([part for part, _ in self._journal.parts(version.id)])

    def _query(self, name: str) -> QueryRecord:
        query = self._journal.query(name)
        if query is None:
            raise self._unknown(name)
        return query

    def _unknown(self, name: str) -> UnknownQueryError:
        names = self._journal.names()
        close = close_to(name, names)
        return UnknownQueryError(
            f"{self._store.root}: there is no query named {name!r} among its {len(names):,}\n    -> "
            + (f"did you mean {close}? " if close else "")
            + "`towpath results JOB` lists them all"
        )
