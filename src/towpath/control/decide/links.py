"""Derived streams: which queries read them, who makes them, and from when on a reader has all of one. Decides only.

A derived stream is made by a query of its own, with the stream's name, that enters with the first query which reads it
and leaves with the last. So all that holds for queries holds for links: their fragments move, and are taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import FragmentRecord, PartRecord, QueryRecord
from towpath.results.links import Link, Turn
from towpath.schema import BEFORE_ALL_US, LINK, SchemaClass

Joined = Mapping[tuple[str, int], int]  # by name and query of a link, the event time behind which a feed has its rows


class Links:
    def __init__(self, known: ControllerState) -> None:
        self._known = known
        self._running: dict[str, QueryRecord] = {}
        self._readers: dict[str, set[int]] = {}  # queries, by the link that they read
        self._classes: dict[str, SchemaClass] = {}
        for number in sorted({part.query for parts in known.users.values() for part in parts}):
            self.enter(known.state.queries[number])

    def enter(self, query: QueryRecord) -> None:
        if query.origin == LINK and query.running:
            self._running[query.name] = query
        for name, schema_class in self._read_by(query).items():
            self._readers.setdefault(name, set()).add(query.id)
            self._classes[name] = schema_class

    def leave(self, query: QueryRecord) -> list[str]:
        """Forgets a query; returns the links that nobody reads any more."""
        if self._running.get(query.name) is query:
            del self._running[query.name]
        for name in self._read_by(query):
            self._readers[name].discard(query.id)
        return [name for name in self._read_by(query) if not self._readers[name]]

    def _read_by(self, query: QueryRecord) -> dict[str, SchemaClass]:
        found: dict[str, SchemaClass] = {}
        for part in self._known.state.parts_of(query.id):
            found |= self._known.links_of(self._known.state.fragments[part.fragment])
        return found

    def readers(self, name: str) -> list[QueryRecord]:
        """The queries that read a derived stream, if it is one."""
        return [self._known.state.queries[query] for query in sorted(self._readers.get(name, ()))]

    # --- readers -----------------------------------------------------------------------------------------------------

    def ready(self, fragment: FragmentRecord, joined: Joined) -> bool:
        """Whether the feed of a carrier has all the links that one of its fragments reads."""
        return all(self._key(name) in joined for name in self._known.links_of(fragment))

    def begin_us(self, fragment: FragmentRecord, joined: Joined) -> int | None:
        """The event time from which on the fragment sees all of its links; None: from the beginning."""
        return max((us for name in self._known.links_of(fragment) for us in self._begins(name, joined)), default=None)

    def _begins(self, name: str, joined: Joined) -> Iterator[int]:
        after = joined[self._key(name)]
        if after > BEFORE_ALL_US:
            yield after + 1
        first = self._turns(self._running[name])[0]
        if first.from_us is not None:
            # A result of this time or later has all its tuples behind `from`.
            yield first.from_us + self._known.state.fragments[first.fragment].span_us

    def _key(self, name: str) -> tuple[str, int]:
        return name, self._running[name].id if name in self._running else 0

    def read_us(self) -> dict[str, int]:
        """By carrier that makes links, the event time up to which all who read them have read."""
        found: dict[str, int] = {}
        for name, query in self._running.items():
            reached = min(
                (self._reached(name, reader) for reader in self._readers.get(name, ())), default=BEFORE_ALL_US
            )
            for part in self._turns(query):
                carrier = self._known.state.fragments[part.fragment].carrier
                found[carrier] = min(reached, found.get(carrier, reached))
        return found

    def _reached(self, link: str, query: int) -> int:
        """Of a carrier that is new, or whose query moves, it is not known."""
        fragments = [self._known.state.fragments[part.fragment] for part in self._known.state.parts_of(query)]
        carriers = [self._known.carrier_of(f) for f in fragments if link in self._known.links_of(f)]
        moving = {m.source for m in self._known.moves.values()}
        if any(f.id in moving for f in fragments):
            return BEFORE_ALL_US
        return min((c.newest_us if c.newest_us is not None else BEFORE_ALL_US for c in carriers), default=BEFORE_ALL_US)

    # --- makers ------------------------------------------------------------------------------------------------------

    def makers(self) -> set[str]:
        """The carriers that make links."""
        turns = (part for query in self._running.values() for part in self._turns(query))
        return {self._known.state.fragments[part.fragment].carrier for part in turns}

    def makers_of(self, name: str) -> list[str]:
        """The carriers that make a link, or have made it."""
        return list(dict.fromkeys(self._known.state.fragments[number].carrier for number in self.made_by(name)))

    def made_by(self, name: str) -> list[int]:
        """The fragments that make a link, one after the other."""
        return [part.fragment for part in self._turns(self._running[name])] if name in self._running else []

    def makers_below(self, fragment: FragmentRecord) -> list[str]:
        """The carriers that make the links which a fragment reads, and those which these are made of."""
        found: dict[str, None] = {}
        waiting = list(self._known.links_of(fragment))
        while waiting:
            for made in (self._known.state.fragments[number] for number in self.made_by(waiting.pop())):
                found[made.carrier] = None
                waiting += self._known.links_of(made)
        return list(found)

    def is_read(self, name: str) -> bool:
        return bool(self._readers.get(name))

    def fragments(self) -> set[int]:
        """The fragments whose turn it is to make a link."""
        return {self._turns(query)[-1].fragment for query in self._running.values()}

    def declared(self, root: Callable[[str], str]) -> Iterator[tuple[SchemaClass, Link]]:
        """What those who read links must know; `root` is where the results log of a carrier lies."""
        for query in self._running.values():
            turns = self._turns(query)
            made = tuple(self._turn(part, root) for part in turns)
            yield self._classes[query.name], Link(query.name, query.id, turns[0].settled, made)

    def _turns(self, query: QueryRecord) -> list[PartRecord]:
        return self._known.state.turns(query.id, 0)

    def _turn(self, part: PartRecord, root: Callable[[str], str]) -> Turn:
        fragment = self._known.state.fragments[part.fragment]
        columns = tuple(column for _, column in part.columns)
        times = (part.from_us, part.handed_over_us, part.pending_fence_us)
        done = fragment.status.is_over
        return Turn(
            root(fragment.carrier),
            fragment.id,
            columns,
            part.windowed,
            fragment.span_us,
            *times,
            done,
            self._known.node_of(fragment.id),
        )
