"""Decides; does nothing. Methods return the instructions that carry a decision out and note which records changed.

How a query comes and goes without anything being restarted:
- A fragment is put into its carrier's assignment table under a new version. The first micro-batch that reports that
  version is the first that surely saw it, so the fragment answers for all event times above the highest one of the
  batches before (`from`). What a carrier has from its very first batch on answers for everything.
- A query that leaves ends behind everything that was handed out of it (`until`), and its fragments stay until their
  inputs are complete up to there: endings.py.
- Readers of the results apply [from, until), so nothing has to be timed: no pause, no fence in the future.
- A fragment moves to another node by a fence: fence.py has the steps, moves.py takes them.
- Before a carrier is started again there may have been batches that nobody heard of, and Spark may repeat one whose
  results were written with the table of that time: runs.py says what can still be known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from itertools import zip_longest
from typing import NamedTuple

from towpath.control.decide.aside import Aside
from towpath.control.decide.beginnings import Beginnings
from towpath.control.decide.choose_node import Places
from towpath.control.decide.copies import Copies
from towpath.control.decide.draining import Draining
from towpath.control.decide.failover import Failover
from towpath.control.decide.forgetting import Forgetting
from towpath.control.decide.kinds import asked_for
from towpath.control.decide.links import Links
from towpath.control.decide.moves import Moves
from towpath.control.decide.queries import Queries, Submission
from towpath.control.decide.unused_carriers import UnusedCarriers
from towpath.control.state.controller_state import ControllerState, Instruction, PublishTable, StartCarrier, StopCarrier
from towpath.control.state.fence import UNDECIDED
from towpath.control.state.history import EventKind, event_text
from towpath.control.state.records import (
    BEGINNING_US,
    CarrierRecord,
    FragmentRecord,
    FragmentStatus,
    PartRecord,
    QueryRecord,
    Record,
    State,
    StreamRecord,
)
from towpath.control.state.runs import Run, hear
from towpath.errors import MoveRefused, NodeRefused
from towpath.plan import CarrierKinds
from towpath.plan.assignment import Row
from towpath.runtime.carriers import BatchDone
from towpath.schema import Catalog, SchemaClass, class_of, is_link, tables_of

__all__ = ["Controller", "Instruction", "PublishTable", "StartCarrier", "StopCarrier", "Submission"]

EMBEDDED = "local"  # the node of a job that names none
FIRST = 1  # version of a carrier's first table: no batch was without what it has


class Live(NamedTuple):
    """What a controller knows that no journal has."""

    nodes: Sequence[str]
    lost: Set[str]
    runs: Mapping[str, Run]
    broken: Set[str] = frozenset()


class Controller:
    def __init__(
        self, state: State, catalog: Catalog, nodes: Sequence[str] = (EMBEDDED,), places: Places | None = None
    ) -> None:
        """`places` says which node takes what is new, and which kind of carrier."""
        self._catalog = catalog
        self._places = places or Places(catalog)
        self._know(ControllerState(state, catalog, nodes, self._places.carriers))

    def _know(self, known: ControllerState) -> None:
        """Makes the deciders: each has its own part of what is to be decided, and all share what is known."""
        self.known = known
        self.state = known.state
        self.links = Links(known)
        self.beginnings = Beginnings(known, self.links)
        self.moves = Moves(known, self.beginnings.decide)
        self.draining = Draining(known, self.moves, self._places)
        self.unused = UnusedCarriers(known)
        self.copies = Copies(known, self.moves, self._places)
        self.failover = Failover(known, self._places)
        self.queries = Queries(known, self.moves, self.links, self.beginnings, self._places)
        self.beginnings.waits = self.queries.endings.waits
        self.beginnings.begin()
        self.forgetting = Forgetting(known, self.queries)
        self.failing = Aside(known, self.moves, self.queries, self.links)

    @property
    def changed(self) -> dict[int, Record]:
        """The records that the journal does not have yet."""
        return self.known.changed

    @property
    def live(self) -> Live:
        known = self.known
        return Live(known.nodes, frozenset(known.lost), dict(known.runs), frozenset(known.broken))

    def take_back(self, written: State, live: Live) -> None:
        """Forgets what was decided and is not in the journal: a decision that failed half-way is none."""
        known = ControllerState(written, self._catalog, live.nodes, self._places.carriers)
        known.lost, known.runs, known.broken = set(live.lost), dict(live.runs), set(live.broken)
        self._know(known)

    def classes(self, query: QueryRecord) -> set[SchemaClass]:
        """Of the streams and the tables that a query reads, also through links."""
        found: set[SchemaClass] = set()
        for part in self.state.parts_of(query.id):
            fragment = self.state.fragments.get(part.fragment)
            if fragment is None:
                continue  # of a query that is over
            family = self.known.carrier_of(fragment).template.family
            found |= {c for c in family.read if not is_link(c)}
            found |= {class_of(table) for c in family.classes for table in tables_of(c)}
            for link in self.known.links_of(fragment):
                if (maker := self.queries.running.get(link)) is not None:
                    found |= self.classes(maker)
        return found

    def runs(self, carrier: str) -> bool:
        """Whether a carrier is to run; those that nobody needed when the job was started do not."""
        return carrier in self.known.runs

    def is_unheard(self, carrier: str) -> bool:
        """Whether a carrier runs and has not reported a micro-batch since it was started."""
        return carrier in self.known.runs and not self.known.runs[carrier].heard

    def users(self, fragment: int) -> Sequence[PartRecord]:
        """The parts of queries that a fragment answers now."""
        return self.known.users.get(fragment, [])

    # --- carriers that fail ------------------------------------------------------------------------------------------

    def present(self, carrier: str) -> list[int]:
        """The fragments in a carrier's table."""
        return list(self.known.present.get(carrier, {}))

    def calculated(self, carrier: str) -> list[int]:
        """Those in its table, and those that have left it with windows that are not closed yet."""
        waiting = self.known.waiting.get(carrier, {}).values()
        return [*self.present(carrier), *(f.id for f in waiting if f.status is FragmentStatus.LEAVING)]

    def banned(self, carrier: str) -> list[int]:
        """The fragments that were set aside because a carrier failed with them."""
        return list(self.known.banned.get(carrier, {}))

    # --- fragments move ----------------------------------------------------------------------------------------------

    def move(self, fragment: int, node: str, reason: str, carriers: CarrierKinds | None = None) -> list[Instruction]:
        """Begins to move a fragment to a node, or to a kind of carrier there. Raises MoveRefused with the reason."""
        return self.moves.begin(self.state.fragments[fragment], node, reason, carriers)

    def change_carriers(self, fragments: Sequence[int], carriers: CarrierKinds, reason: str) -> list[Instruction]:
        """Begins to move fragments to a kind of carrier where they are; those that cannot now stay."""
        able: list[FragmentRecord] = []
        for fragment in fragments:
            with suppress(MoveRefused):
                self.refuse_move(fragment, self.known.node_of(fragment), carriers)
                able.append(self.state.fragments[fragment])
        self.moves.make_room(able, carriers)
        return [i for f in able for i in self.moves.begin(f, self.known.node_of(f.id), reason, carriers)]

    def is_there(self, fragment: int, node: str, carriers: CarrierKinds | None = None) -> bool:
        """Whether a fragment is on a node, and in that kind of carrier."""
        carrier = self.known.carrier_of(self.state.fragments[fragment])
        return carrier.node == node and carriers in (None, carrier.template.family.carriers)

    def abandon_links(self, reason: str) -> list[Instruction]:
        """Takes back the moves of links that are not decided: until they are, nobody is given what lies behind."""
        makers = self.links.fragments()
        moves = [m for m in self.known.moves.values() if m.source in makers and m.step in UNDECIDED]
        return [instruction for move in moves for instruction in self.moves.abandon(move, reason)]

    def refuse_move(self, fragment: int, node: str, carriers: CarrierKinds | None = None) -> None:
        """Raises MoveRefused if a fragment cannot move there now."""
        record = self.state.fragments.get(fragment)
        if record is None or not self.users(fragment):
            raise MoveRefused(f"no query uses fragment {fragment}")
        self.moves.refuse_impossible(record, node, carriers)
        if carriers is not None:
            asked_for(self.known.used(record), carriers)
        if (query := self.moves.copied_on(record, node)) is not None:
            raise MoveRefused(f"another copy of query {query} is on node {node}; copies stay on nodes of their own")

    def used_by(self, fragment: int) -> str:
        """The queries that a fragment answers, in a few words."""
        return self.known.used_by(self.state.fragments[fragment])

    # --- nodes come and go -------------------------------------------------------------------------------------------

    def add_node(self, node: str, reason: str) -> None:
        self.known.nodes = (*self.known.nodes, node)
        self.known.add_history(EventKind.NODE_JOINED, f"node {node} joins: {reason}", nodes=(node,))

    def remove_node(self, node: str, reason: str) -> None:
        """Only one that is drained. Should it come back, it takes queries again."""
        assert self.node_state(node) == "drained", "what it runs would be lost"
        self.known.nodes = tuple(name for name in self.known.nodes if name != node)
        self.state.nodes[node].draining = False
        self.known.note(self.state.nodes[node])
        self.known.add_history(EventKind.NODE_LEFT, f"node {node} is given up: {reason}", nodes=(node,))

    # --- nodes are drained -------------------------------------------------------------------------------------------

    def refuse_node(self, node: str | None) -> None:
        """Raises NodeRefused when a query cannot be put there."""
        if node is not None and (refusal := self.known.refusal(node)) is not None:
            raise NodeRefused(refusal)

    def refuse_copies(self, submission: Submission) -> None:
        """Raises NodeRefused when there are fewer nodes than a query asks for copies."""
        takers = self.known.open_nodes
        if submission.copies > max(1, len(takers)):
            raise NodeRefused(
                f"query {submission.name} asks for {submission.copies} copies, each on a node of its own, and "
                f"{len(takers)} of the job's nodes take queries now; ask for fewer, or add nodes"
            )

    def leaving(self) -> list[tuple[int, str, str]]:
        """Fragments that can set out now from where they should not be, each with the node it is to go to, and why."""
        drained = [
            (f, choice.nodes[0], choice.because(f"{self.known.node_of(f)} is being drained"))
            for f, choice in self.draining.leaving()
        ]
        together = "another copy of the query is on that node, too"
        apart = [(f, choice.nodes[0], choice.because(together)) for f, choice in self.copies.parting()]
        behind = [(f, node, "it has caught up") for f, node in self.beginnings.leaving()]
        return drained or apart or behind

    def go_on(self, now_s: float) -> list[Instruction]:
        """What is due by itself, by a clock that only goes on.

        What is not where it should be sets out, who needs the past gets it, carriers that nobody needs stop.
        """
        moves = [i for fragment, node, reason in self.leaving() for i in self.move(fragment, node, reason)]
        return [*moves, *self.queries.catch_up(), *self.unused.stop(now_s)]

    def node_state(self, node: str) -> str:
        """open, lost, draining (something still runs there), or drained."""
        return "lost" if node in self.known.lost else self.draining.state(node)

    # --- events ------------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone) -> list[Instruction]:
        carrier, run = self.state.carriers[event.carrier], self.known.runs.get(event.carrier)
        if run is not None:
            run.heard = True
        if event.batch <= carrier.last:
            return []  # of a carrier that was found running: a controller before this one has heard of it
        delays = [self.known.delay_of(c) for c in carrier.template.family.classes]
        self._fill_in(carrier, event, delays)
        # The longest delay, also of earlier runs and of streams that are gone: some of what was missed came with it.
        before_us, newest_before_us = hear(carrier, event, [carrier.delay_us] * len(delays)), carrier.newest_us
        self._observe(carrier, event)
        if run is None:
            return []  # its last micro-batch, heard after it was asked to stop: nobody needs it
        behind = not run.caught_up
        run.hear(event)
        for fragment in list(self.known.waiting.get(carrier.id, {}).values()):
            if fragment.status is FragmentStatus.LEAVING:
                self._let_go(fragment, event)
            elif self._is_seen(fragment, event) and self.links.ready(fragment, event.joined):
                self._confirm(fragment, before_us, self.links.begin_us(fragment, event.joined))
        for fragment in list(self.known.banned.get(carrier.id, {}).values()):
            self._let_go(fragment, event)
        if behind and run.caught_up:
            self._catch(carrier.id)
        return [
            *self.moves.handle(event, before_us, newest_before_us),
            *self.queries.endings.handle(event, before_us),
        ]

    def rest(self, carrier: str) -> list[Instruction]:
        """A carrier was found at rest, and all that it did before was heard of."""
        run = self.known.runs.get(carrier)
        if run is None:
            return []
        if not run.caught_up:
            run.rest(self.state.carriers[carrier])
            self._catch(carrier)
        return [*self.moves.rest(carrier), *self.queries.endings.rest(carrier)]

    @property
    def undecided(self) -> Set[str]:
        """The carriers that have yet to show where queries end, begin or change hands; that they rest shows as much."""
        return self.queries.endings.undecided() | self.beginnings.awaited() | self.moves.undecided()

    def _catch(self, carrier: str) -> None:
        """It has read what was there when it was started."""
        record = self.state.carriers[carrier]
        self.beginnings.decide_now()
        if record.past:
            reached = event_text(record.newest_us) if record.newest_us is not None else "where there is nothing yet"
            self.known.add_history(
                EventKind.CAUGHT_UP, f"carrier {carrier} has caught up: it is at {reached}", nodes=[record.node]
            )

    def resume(self, elsewhere: Collection[str] = ()) -> list[Instruction]:
        """After a start from the journal: which carriers to run. `elsewhere` are nodes that are not where they were."""
        needed = dict.fromkeys(f.carrier for f in self.state.fragments.values() if not f.status.is_over)
        self.failover.rehome(needed, elsewhere)
        return [*self.known.publish(needed), *self.known.start(needed)]

    def rows_of(self, fragment: int) -> list[Row]:
        return self.known.rows_of(self.state.fragments[fragment])

    # --- decisions ---------------------------------------------------------------------------------------------------

    def _is_seen(self, fragment: FragmentRecord, event: BatchDone) -> bool:
        sure = self.state.carriers[event.carrier].sure
        return sure and event.version is not None and fragment.version <= event.version

    def _confirm(self, fragment: FragmentRecord, before_us: int | None, links_us: int | None) -> None:
        """A micro-batch saw the table with the fragment; the batches before it had times up to `before_us`.

        What it reads from links is all there from `links_us` on.
        """
        fragment.status = FragmentStatus.LIVE
        unseen = before_us is not None and fragment.version > FIRST
        own_us = before_us + 1 + fragment.lookback_us if unseen and before_us is not None else None
        fragment.from_us = max((us for us in (own_us, links_us) if us is not None), default=None)
        del self.known.waiting[fragment.carrier][fragment.id]
        self.known.note(fragment)
        for part in self.known.users.get(fragment.id, []):
            self.beginnings.decide(part)

    def _let_go(self, fragment: FragmentRecord, event: BatchDone) -> None:
        assert fragment.until_us is not None, "decided when it left"
        if event.watermark_us is not None and event.watermark_us >= fragment.until_us:
            fragment.status = FragmentStatus.GONE
            for index in (self.known.waiting, self.known.banned):
                index.get(fragment.carrier, {}).pop(fragment.id, None)
            self.known.gone.add(fragment.id)
            self.known.note(fragment)

    def _fill_in(self, carrier: CarrierRecord, event: BatchDone, delays: Sequence[int]) -> None:
        """Batches went unheard. How far each input had come in them at least, the watermark that they made shows."""
        carrier.unheard += event.batch - carrier.last - 1
        if event.batch == carrier.last + 1 or event.watermark_us is None:
            return
        before = carrier.inputs_us or (None,) * len(event.newest_us)
        carrier.inputs_us = tuple(
            max(us if us is not None else BEGINNING_US, event.watermark_us + delay_us)
            for us, delay_us in zip(before, delays, strict=True)
        )

    def _note_late(self, carrier: CarrierRecord, event: BatchDone) -> None:
        """Of every stream once; then the counts show it."""
        known = {name for name, rows in carrier.late_rows.items() if rows}
        for name, rows in {name: rows for late in event.late for name, rows in late.items()}.items():
            if rows and name not in known:
                text = f"stream {name}: {rows:,} rows came too late for carrier {carrier.id}, the first of their kind"
                hint = "its joins and aggregates leave them out; a longer `delay` of the stream lets more of them in"
                self.known.add_history(EventKind.LATE_ROWS, f"{text}; {hint}", nodes=[carrier.node])

    def _observe(self, carrier: CarrierRecord, event: BatchDone) -> None:
        before = carrier.inputs_us or (None,) * len(event.newest_us)
        carrier.inputs_us = tuple(
            max((t for t in times if t is not None), default=None)
            for times in zip(before, event.newest_us, strict=True)
        )
        self._note_late(carrier, event)
        carrier.first_us = carrier.newest_us if carrier.first_us is None else carrier.first_us
        carrier.known_us = max((us for us in (carrier.known_us, event.known_us) if us is not None), default=None)
        carrier.watermark_us = event.watermark_us
        carrier.last = event.batch
        carrier.late = tuple(
            {name: counts.get(name, 0) + late.get(name, 0) for name in counts | late}
            for counts, late in zip_longest(carrier.late, event.late, fillvalue=dict[str, int]())
        )
        for name, rows in carrier.late_rows.items():
            stream = self.state.streams.setdefault(name, StreamRecord(name))
            if rows > stream.late:  # it outlives the carrier that found them
                stream.late = rows
                self.known.note(stream)
        carrier.ends = event.ends
        self.known.note(carrier)
