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

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from itertools import zip_longest
from typing import NamedTuple

from towpath.control.decide.aside import Aside
from towpath.control.decide.beginnings import Beginnings
from towpath.control.decide.choose_node import Places
from towpath.control.decide.copies import Copies
from towpath.control.decide.draining import Draining
from towpath.control.decide.failover import Failover
from towpath.control.decide.forgetting import Forgetting
from towpath.control.decide.links import Links
from towpath.control.decide.moves import Moves
from towpath.control.decide.queries import Queries, Submission
from towpath.control.decide.unused_carriers import UnusedCarriers
from towpath.control.state.controller_state import ControllerState, Instruction, Publish, StartCarrier, StopCarrier
from towpath.control.state.fence import UNDECIDED
from towpath.control.state.history import EventKind, event_text
from towpath.control.state.records import (
    BEGINNING_US,
    CarrierRecord,
    FragmentRecord,
    FragmentStatus,
    MoveRecord,
    PartRecord,
    QueryRecord,
    Record,
    State,
    StreamRecord,
)
from towpath.control.state.runs import Run, hear
from towpath.errors import MoveRefused, NodeRefused
from towpath.plan.assignment import Row, TableChange
from towpath.runtime.carriers import BatchDone
from towpath.schema import Catalog, SchemaClass, is_link

__all__ = ["Controller", "Instruction", "Publish", "StartCarrier", "StopCarrier", "Submission"]

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
        self.state = known.state
        self._known = known
        self.links = Links(self._known)
        self._beginnings = Beginnings(self._known, self.links)
        self._moves = Moves(self._known, self._beginnings.decide)
        self._draining = Draining(self._known, self._moves, self._places)
        self._resting = UnusedCarriers(self._known)
        self._copies = Copies(self._known, self._moves, self._places)
        self._failover = Failover(self._known, self._places)
        self._queries = Queries(self._known, self._moves, self.links, self._beginnings, self._places)
        self._beginnings.waits = self._queries.endings.waits
        self._beginnings.begin()
        self.forgetting = Forgetting(self._known, self._queries)
        self._aside = Aside(self._known, self._moves, self._queries, self.links)

    @property
    def changed(self) -> dict[int, Record]:
        """The records that the journal does not have yet."""
        return self._known.changed

    @property
    def live(self) -> Live:
        known = self._known
        return Live(known.nodes, frozenset(known.lost), dict(known.runs), frozenset(known.broken))

    def take_back(self, written: State, live: Live) -> None:
        """Forgets what was decided and is not in the journal: a decision that failed half-way is none."""
        known = ControllerState(written, self._catalog, live.nodes, self._places.carriers)
        known.lost, known.runs, known.broken = set(live.lost), dict(live.runs), set(live.broken)
        self._know(known)

    def running(self, name: str) -> QueryRecord | None:
        return self._queries.running.get(name)

    def classes(self, query: QueryRecord) -> set[SchemaClass]:
        """Of the streams that a query reads, also through links."""
        found: set[SchemaClass] = set()
        for part in self.state.parts_of(query.id):
            fragment = self.state.fragments.get(part.fragment)
            if fragment is None:
                continue  # of a query that is over
            found |= {c for c in self._known.carrier_of(fragment).template.family.classes if not is_link(c)}
            for link in self._known.links_of(fragment):
                if (maker := self.running(link)) is not None:
                    found |= self.classes(maker)
        return found

    @property
    def running_names(self) -> Iterable[str]:
        return self._queries.running.keys()

    def runs(self, carrier: str) -> bool:
        """Whether a carrier is to run; those that nobody needed when the job was started do not."""
        return carrier in self._known.runs

    def is_unheard(self, carrier: str) -> bool:
        """Whether a carrier runs and has not told of a micro-batch since it was started."""
        return carrier in self._known.runs and not self._known.runs[carrier].heard

    @property
    def nodes(self) -> Sequence[str]:
        """All that the job has now, whatever their state."""
        return self._known.nodes

    def users(self, fragment: int) -> Sequence[PartRecord]:
        """The parts of queries that a fragment answers now."""
        return self._known.users.get(fragment, [])

    def add_history(
        self, kind: EventKind, text: str, *, fragment: int | None = None, nodes: Iterable[str] = ()
    ) -> None:
        """An entry of the history that somebody else decided."""
        self._known.add_history(kind, text, fragment=fragment, nodes=nodes)

    # --- queries come and go -----------------------------------------------------------------------------------------

    def submit(self, submissions: Sequence[Submission]) -> list[Instruction]:
        """Takes queries in. Those that come together may share a new carrier."""
        return self._queries.submit(submissions)

    def withdraw(self, name: str, reason: str = "asked for") -> list[Instruction]:
        return self._queries.withdraw(name, reason)

    def change_sink(self, name: str, sink: dict[str, str] | None) -> None:
        self._queries.change_sink(name, sink)

    def lacking(self) -> list[PartRecord]:
        """The parts of queries for which the past is to be read again now."""
        return self._beginnings.lacking()

    def catch_up(self) -> list[Instruction]:
        """Begins to read the past again for those who need it now."""
        return self._queries.catch_up()

    @property
    def reads_past(self) -> bool:
        """Whether the past is read again, or has to be."""
        return self._beginnings.behind

    # --- carriers that fail ------------------------------------------------------------------------------------------

    def aside(self, name: str) -> QueryRecord | None:
        """A query that was set aside, because its carrier failed with it."""
        return self._queries.aside.get(name)

    @property
    def aside_names(self) -> Iterable[str]:
        return self._queries.aside.keys()

    def present(self, carrier: str) -> list[int]:
        """The fragments in a carrier's table."""
        return list(self._known.present.get(carrier, {}))

    def calculated(self, carrier: str) -> list[int]:
        """Those in its table, and those that have left it with windows that are not closed yet."""
        waiting = self._known.waiting.get(carrier, {}).values()
        return [*self.present(carrier), *(f.id for f in waiting if f.status is FragmentStatus.LEAVING)]

    def banned(self, carrier: str) -> list[int]:
        """The fragments that were set aside because a carrier failed with them."""
        return list(self._known.banned.get(carrier, {}))

    def set_aside(self, fragment: int, reason: str) -> list[Instruction]:
        """Those who use the fragment leave, since their carrier fails with it and not without it."""
        return self._aside.set_aside(fragment, reason)

    def restart(self, carrier: str) -> list[Instruction]:
        """A carrier that its node has given up starts anew."""
        return self._aside.restart(carrier)

    def divide(self, carrier: str, halves: Sequence[Sequence[int]], reason: str) -> list[Instruction]:
        """Two carriers with narrower plans take the fragments of one that cannot run and never has."""
        return self._aside.divide(carrier, halves, reason)

    # --- fragments move ----------------------------------------------------------------------------------------------

    def move(self, fragment: int, node: str, reason: str) -> list[Instruction]:
        """Begins to move a fragment to a node. Raises MoveRefused with the reason."""
        return self._moves.begin(self.state.fragments[fragment], node, reason)

    def abandon(self, move: int, reason: str = "asked for") -> list[Instruction]:
        """Takes a move back. Raises an error once its fence is passed."""
        return self._moves.abandon(self.state.moves[move], reason)

    def abandon_links(self, reason: str) -> list[Instruction]:
        """Takes back the moves of links that are not decided: until they are, nobody is given what lies behind."""
        makers = self.links.fragments()
        moves = [m for m in self.moves_under_way if m.source in makers and m.step in UNDECIDED]
        return [instruction for move in moves for instruction in self._moves.abandon(move, reason)]

    def refuse_move(self, fragment: int, node: str) -> None:
        """Raises MoveRefused if a fragment cannot move there now."""
        record = self.state.fragments.get(fragment)
        if record is None or not self.users(fragment):
            raise MoveRefused(f"no query uses fragment {fragment}")
        self._moves.refuse_nonsense(record, node)
        if (query := self._moves.copied_on(record, node)) is not None:
            raise MoveRefused(f"another copy of query {query} is on node {node}; copies stay on nodes of their own")

    def node_of(self, fragment: int) -> str:
        return self._known.node_of(fragment)

    def used_by(self, fragment: int) -> str:
        """The queries that a fragment answers, in a few words."""
        return self._known.used_by(self.state.fragments[fragment])

    @property
    def moves_under_way(self) -> Iterable[MoveRecord]:
        return self._known.moves.values()

    # --- nodes come and go -------------------------------------------------------------------------------------------

    def add_node(self, node: str, reason: str) -> None:
        self._known.nodes = (*self._known.nodes, node)
        self._known.add_history(EventKind.NODE_JOINED, f"node {node} joins: {reason}", nodes=(node,))

    def remove_node(self, node: str, reason: str) -> None:
        """Only one that is drained. Should it come back, it takes queries again."""
        assert self.node_state(node) == "drained", "what it runs would be lost"
        self._known.nodes = tuple(name for name in self._known.nodes if name != node)
        self.state.nodes[node].draining = False
        self._known.note(self.state.nodes[node])
        self._known.add_history(EventKind.NODE_LEFT, f"node {node} is given up: {reason}", nodes=(node,))

    def lose_node(self, node: str, reason: str) -> list[Instruction]:
        """A node does not answer: others go on with its carriers."""
        return self._failover.lose(node, reason)

    def node_back(self, node: str) -> list[Instruction]:
        return self._failover.back(node)

    @property
    def lost_nodes(self) -> Set[str]:
        return self._known.lost

    # --- nodes are drained -------------------------------------------------------------------------------------------

    def refuse_node(self, node: str | None) -> None:
        """Raises NodeRefused when a query cannot be put there."""
        if node is not None and (refusal := self._known.refusal(node)) is not None:
            raise NodeRefused(refusal)

    def refuse_copies(self, submission: Submission) -> None:
        """Raises NodeRefused when there are fewer nodes than a query asks for copies."""
        takers = self._known.open_nodes
        if submission.copies > max(1, len(takers)):
            raise NodeRefused(
                f"query {submission.name} asks for {submission.copies} copies, each on a node of its own, and "
                f"{len(takers)} of the job's nodes take queries now; ask for fewer, or add nodes"
            )

    def drain_node(self, node: str) -> list[Instruction]:
        """The node takes nothing new from now on; `leaving` tells what is to move away. Raises NodeRefused."""
        return self._draining.begin(node)

    def reopen_node(self, node: str) -> None:
        self._draining.end(node)

    def leaving(self) -> list[tuple[int, str, str]]:
        """Fragments that can set out now from where they should not be, each with the node it is to go to, and why."""
        drained = [
            (f, choice.nodes[0], choice.because(f"{self.node_of(f)} is being drained"))
            for f, choice in self._draining.leaving()
        ]
        together = "another copy of the query is on that node, too"
        apart = [(f, choice.nodes[0], choice.because(together)) for f, choice in self._copies.parting()]
        behind = [(f, node, "it has caught up") for f, node in self._beginnings.leaving()]
        return drained or apart or behind

    def stop_unneeded(self, now_s: float) -> list[Instruction]:
        """Stops carriers that nobody has needed for a while, by a clock that only goes on."""
        return self._resting.stop(now_s)

    def node_state(self, node: str) -> str:
        """open, lost, draining (something still runs there), or drained."""
        return "lost" if node in self._known.lost else self._draining.state(node)

    # --- events ------------------------------------------------------------------------------------------------------

    def handle(self, event: BatchDone) -> list[Instruction]:
        carrier, run = self.state.carriers[event.carrier], self._known.runs.get(event.carrier)
        if run is not None:
            run.heard = True
        if event.batch <= carrier.last:
            return []  # of a carrier that was found running: a controller before this one has heard of it
        delays = [self._known.delay_of(c) for c in carrier.template.family.classes]
        self._fill_in(carrier, event, delays)
        # The longest delay, also of earlier runs and of streams that are gone: some of what was missed came with it.
        before_us, newest_before_us = hear(carrier, event, [carrier.delay_us] * len(delays)), carrier.newest_us
        self._observe(carrier, event)
        if run is None:
            return []  # its last micro-batch, heard after it was told to stop: nobody needs it
        behind = not run.caught_up
        run.hear(event)
        for fragment in list(self._known.waiting.get(carrier.id, {}).values()):
            if fragment.status is FragmentStatus.LEAVING:
                self._let_go(fragment, event)
            elif self._is_seen(fragment, event) and self.links.ready(fragment, event.joined):
                self._confirm(fragment, before_us, self.links.begin_us(fragment, event.joined))
        for fragment in list(self._known.banned.get(carrier.id, {}).values()):
            self._let_go(fragment, event)
        if behind and run.caught_up:
            self._catch(carrier.id)
        return [
            *self._moves.handle(event, before_us, newest_before_us),
            *self._queries.endings.handle(event, before_us),
        ]

    def rest(self, carrier: str) -> list[Instruction]:
        """A carrier was found at rest, and all that it did before was heard of."""
        run = self._known.runs.get(carrier)
        if run is None:
            return []
        if not run.caught_up:
            run.rest(self.state.carriers[carrier].newest_us)
            self._catch(carrier)
        return [*self._moves.rest(carrier), *self._queries.endings.rest(carrier)]

    @property
    def undecided(self) -> Set[str]:
        """The carriers that have yet to tell where queries end, begin or change hands; that they rest tells as much."""
        return self._queries.endings.undecided() | self._beginnings.awaited() | self._moves.undecided()

    def _catch(self, carrier: str) -> None:
        """It has read what was there when it was started."""
        record = self.state.carriers[carrier]
        self._beginnings.decide_now()
        if record.past:
            reached = event_text(record.newest_us) if record.newest_us is not None else "where there is nothing yet"
            self._known.add_history(
                EventKind.CAUGHT_UP, f"carrier {carrier} has caught up: it is at {reached}", nodes=[record.node]
            )

    def resume(self, elsewhere: Collection[str] = ()) -> list[Instruction]:
        """After a start from the journal: which carriers to run. `elsewhere` are nodes that are not where they were."""
        needed = dict.fromkeys(f.carrier for f in self.state.fragments.values() if not f.status.is_over)
        self._failover.rehome(needed, elsewhere)
        return [*self._known.publish(needed), *self._known.start(needed)]

    def drained(self) -> list[Instruction]:
        """Nothing more comes for queries that leave."""
        return self._queries.endings.drained()

    def heard_of_all(self, carriers: Sequence[str]) -> list[Instruction]:
        """Of carriers that have not been started yet: nobody has results of them that were not heard of."""
        return self._queries.endings.heard_of_all(carriers)

    def rows(self, carrier: str) -> list[Row]:
        """The assignment table of a carrier."""
        return self._known.rows(carrier)

    def rows_of(self, fragment: int) -> list[Row]:
        return self._known.rows_of(self.state.fragments[fragment])

    def publishing(self, carrier: str) -> AbstractContextManager[TableChange]:
        """What a carrier's table needs; it counts as published when nothing was raised."""
        return self._known.publishing(carrier)

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
        del self._known.waiting[fragment.carrier][fragment.id]
        self._known.note(fragment)
        for part in self._known.users.get(fragment.id, []):
            self._beginnings.decide(part)

    def _let_go(self, fragment: FragmentRecord, event: BatchDone) -> None:
        assert fragment.until_us is not None, "decided when it left"
        if event.watermark_us is not None and event.watermark_us >= fragment.until_us:
            fragment.status = FragmentStatus.GONE
            for index in (self._known.waiting, self._known.banned):
                index.get(fragment.carrier, {}).pop(fragment.id, None)
            self._known.gone.add(fragment.id)
            self._known.note(fragment)

    def _fill_in(self, carrier: CarrierRecord, event: BatchDone, delays: Sequence[int]) -> None:
        """Batches went unheard. How far each input had come in them at least, the watermark tells that they made."""
        carrier.unheard += event.batch - carrier.last - 1
        if event.batch == carrier.last + 1 or event.watermark_us is None:
            return
        before = carrier.inputs_us or (None,) * len(event.newest_us)
        carrier.inputs_us = tuple(
            max(us if us is not None else BEGINNING_US, event.watermark_us + delay_us)
            for us, delay_us in zip(before, delays, strict=True)
        )

    def _tell_late(self, carrier: CarrierRecord, event: BatchDone) -> None:
        """Of every stream once; then the counts tell."""
        known = {name for name, rows in carrier.late_rows.items() if rows}
        for name, rows in {name: rows for late in event.late for name, rows in late.items()}.items():
            if rows and name not in known:
                text = f"stream {name}: {rows:,} rows came too late for carrier {carrier.id}, the first of their kind"
                hint = "its joins and aggregates leave them out; a longer `delay` of the stream lets more of them in"
                self._known.add_history(EventKind.LATE_ROWS, f"{text}; {hint}", nodes=[carrier.node])

    def _observe(self, carrier: CarrierRecord, event: BatchDone) -> None:
        before = carrier.inputs_us or (None,) * len(event.newest_us)
        carrier.inputs_us = tuple(
            max((t for t in times if t is not None), default=None)
            for times in zip(before, event.newest_us, strict=True)
        )
        self._tell_late(carrier, event)
        carrier.first_us = carrier.newest_us if carrier.first_us is None else carrier.first_us
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
                self._known.note(stream)
        carrier.ends = event.ends
        self._known.note(carrier)
