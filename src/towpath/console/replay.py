"""The history replayed on the map: what stands now, and for each entry what it changed, the newest page of them first.

A page reads as many entries as it shows, however many there are. From what stands now a browser goes back entry by
entry, and so far only as somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field

from towpath.control.journal.journal import NEVER, Journal
from towpath.control.state.history import EventKind, SavedEntry, carrier_in, places_in
from towpath.control.state.records import CarrierRecord
from towpath.job import Job
from towpath.service.messages import HistoryEntry
from towpath.store.layout import Store

MOST_STEPS = 500  # of a page


@dataclass(frozen=True)
class ReplayRequest:
    before: Annotated[int, Field(ge=0, le=NEVER)] = NEVER  # entries that are older than the one with this number
    limit: Annotated[int, Field(ge=1, le=MOST_STEPS)] = 200


@dataclass(frozen=True)
class Spot:
    fragment: int
    carrier: str


@dataclass(frozen=True)
class Takeover:
    """A carrier that goes on on another node."""

    carrier: str
    source: str  # nodes
    target: str


@dataclass(frozen=True)
class Step(HistoryEntry):
    """An entry, with what it changed of where things are."""

    came: list[Spot]  # the fragments of a query that enters; where a fragment that moves goes
    went: list[Spot]  # those of one that leaves; where a fragment that moves was
    queries: list[str]  # of a fragment that moves, those that it answered, as far as the journal keeps them
    taken: Takeover | None


@dataclass(frozen=True)
class ReplayPage:
    steps: list[Step]  # the oldest first
    older: bool  # whether there are older ones


@dataclass(frozen=True)
class PastCarrier:
    id: str
    node: str  # where it is now
    kind: str
    carriers: str  # compiled | universal
    streams: list[str]


@dataclass(frozen=True)
class Standing:
    """What there was when the newest entry was written."""

    newest: int
    carriers: list[PastCarrier]
    fragments: list[tuple[int, str, str]]  # a fragment, its carrier, and a query that it answers


def page(store: Store, asked: ReplayRequest) -> ReplayPage:
    with closing(Journal(store.journal, read_only=True)) as journal:
        entries = journal.history(before=asked.before, limit=asked.limit + 1)
        older = len(entries) > asked.limit
        return ReplayPage([_step(entry, journal) for entry in entries[older:]], older)


def standing(store: Store, job: Job) -> Standing:
    with closing(Journal(store.journal, read_only=True)) as journal:
        newest, fragments = journal.standing()
        carriers = journal.carriers()
    return Standing(newest, list(_carriers(carriers, job)), fragments)


def _carriers(records: Iterable[CarrierRecord], job: Job) -> Iterable[PastCarrier]:
    for record in records:
        family = record.template.family
        streams = [s.name for s in job.catalog.values() if s.schema_class in family.classes]
        yield PastCarrier(record.id, record.node, family.kind, str(family.carriers), streams)


def _step(entry: SavedEntry, journal: Journal) -> Step:
    spots = [Spot(fragment, carrier) for fragment, carrier, _ in places_in(entry.text)]
    came, went = CHANGES[entry.kind](spots) if entry.kind in CHANGES else ([], [])
    moved = journal.moved_from(went[0].fragment) if came and went else []
    known = {**asdict(entry), "nodes": list(entry.nodes)}
    return Step(**known, came=came, went=went, queries=moved, taken=_takeover(entry))


CHANGES: Mapping[EventKind, Callable[[list[Spot]], tuple[list[Spot], list[Spot]]]] = {
    EventKind.SUBMITTED: lambda spots: (spots, []),
    EventKind.WITHDRAWN: lambda spots: ([], spots),
    EventKind.MOVE_PASSED: lambda spots: (spots[1:], spots[:1]),
}


def _takeover(entry: SavedEntry) -> Takeover | None:
    carrier = carrier_in(entry.text) if entry.kind is EventKind.CARRIER_RESTARTED else None
    if carrier is None or len(entry.nodes) != 2:
        return None
    return Takeover(carrier, entry.nodes[0], entry.nodes[1])
