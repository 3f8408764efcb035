"""The engine: runs a job. It owns the store, hears events and lets the controller decide.

What is decided is written down and done by decisions.py; finishing.py waits for the end of what there is to do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from towpath.control.act.decisions import Decisions
from towpath.control.act.finishing import Finishing
from towpath.control.act.linkfiles import LinkFiles
from towpath.control.act.memory import Memory
from towpath.control.act.quarantine import Quarantine
from towpath.control.decide.choose_node import Places
from towpath.control.decide.controller import Controller, Instruction, PublishTable, Submission
from towpath.control.decide.requests import Request, planned, take_in
from towpath.control.journal.answers import Answers
from towpath.control.journal.journal import Journal
from towpath.control.observe.idle import Idle, Patience
from towpath.control.state.history import EventKind
from towpath.control.state.records import CarrierRecord
from towpath.errors import RuntimeFailure, StoreError, UnknownQueryError
from towpath.plan import CarrierKinds
from towpath.results import committed
from towpath.results.log import newest, segments
from towpath.runtime.carriers import BatchDone, CarrierEvent, Runtime
from towpath.schema import Catalog, SchemaClass
from towpath.store.layout import Store

log = logging.getLogger(__name__)

PATIENCE = 50  # failed questions in a row, about ten seconds, until the Spark of this process counts as gone


Open = Callable[[Controller], list[Instruction]]
Admit = Callable[[Sequence[Submission]], None]  # raises AdmissionRefused


class Engine:
    def __init__(
        self,
        store: Store,
        journal: Journal,
        nodes: Mapping[str, Runtime],
        catalog: Catalog,
        *,
        opening: Open = Controller.resume,
        places: Places | None = None,
        patience: Mapping[SchemaClass, Patience] | None = None,
        retention_us: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`opening` decides what is to run, `places` where. `patience`: how long streams of a class may be silent."""
        self._store = store
        self._journal = journal
        self.answers = Answers(journal, store)
        self._nodes = dict(nodes)
        self._catalog = catalog
        self._clock = clock  # it only goes on
        self.admit: Admit | None = None
        self._slow: set[str] = set()  # nodes
        self._patience = dict(patience or {})
        self._idle = Idle()
        self.controller = Controller(journal.load(), catalog, list(nodes), places)
        links = LinkFiles(store)
        self.decisions = Decisions(self.controller, journal, self._nodes, links)
        self.guard = self.decisions.guard
        self.add_history = self.decisions.add_history
        self._quarantine = Quarantine(self.decisions, self._untouched)
        self.memory = Memory(store, journal, retention_us)
        self.finishing = Finishing(
            self.decisions,
            self._nodes,
            self._quarantine,
            links,
            carriers=lambda: self.carriers,
            look_after_nodes=self._look_after_nodes,
            poll=self.poll,
        )
        with self.decisions.decision() as todo:
            todo += opening(self.controller)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for node in self._nodes.values():
            node.close()
        self.decisions.give_up()
        try:
            self.poll()
        except (RuntimeFailure, StoreError) as error:
            log.warning("on the way out: %s", error)  # the next start finds out again
        finally:
            self._journal.close()

    def probe_journal(self) -> None:
        """Raises StoreError if no decision could be written down now."""
        self._journal.probe()

    # --- queries -----------------------------------------------------------------------------------------------------

    def submit(self, requests: Iterable[Request]) -> None:
        """Takes checked queries in; an unchanged one goes on, also with another sink.

        One that runs under the same name and asks something else is replaced: it goes on until the new one takes over.
        """
        wanted = planned(requests, self.controller, self._catalog)
        # What a job file says must not keep the job from starting.
        asked = [s for w in wanted if w.request.origin != "job" for s in w.submissions]
        for submission in asked:
            self.controller.refuse_node(submission.node)
            self.controller.refuse_copies(submission)
        if self.admit is not None:
            self.admit(asked)
        with self.decisions.decision() as todo:
            todo += take_in(wanted, self.controller)
            todo += self.controller.queries.catch_up()

    def withdraw(self, name: str, reason: str = "asked for") -> None:
        if self.controller.queries.running.get(name) is None:
            raise UnknownQueryError(f"no query named {name!r} is running")
        with self.decisions.decision() as todo:
            todo += self.controller.queries.withdraw(name, reason)

    def move(
        self,
        name: str,
        node: str | None = None,
        reason: str = "asked for",
        carriers: CarrierKinds | None = None,
    ) -> list[int]:
        """Begins to move a query's fragments; they go on answering meanwhile. Returns the moves' numbers.

        To a node, without one where they are, and to a kind of carrier, if one is named. Raises MoveRefused, and moves
        none then. Fragments that are there already stay.
        """
        query = self.controller.queries.running.get(name)
        if query is None:
            raise UnknownQueryError(f"no query named {name!r} is running")
        fragments = dict.fromkeys(part.fragment for part in self.controller.state.parts_of(query.id))
        places = {fragment: node or self.controller.known.node_of(fragment) for fragment in fragments}
        away = {f: place for f, place in places.items() if not self.controller.is_there(f, place, carriers)}
        for fragment, place in (away or places).items():
            self.controller.refuse_move(fragment, place, carriers)
        return self._move(away, reason, carriers)

    def move_fragment(
        self, fragment: int, node: str | None, reason: str = "asked for", carriers: CarrierKinds | None = None
    ) -> int:
        """Begins to move one fragment; returns the number of the move. Raises MoveRefused."""
        record = self.controller.state.fragments.get(fragment)
        place = node or ("" if record is None else self.controller.known.carrier_of(record).node)
        self.controller.refuse_move(fragment, place, carriers)
        return self._move({fragment: place}, reason, carriers)[0]

    def change_carriers(self, fragments: Sequence[int], carriers: CarrierKinds, reason: str) -> None:
        """Begins to move fragments to a kind of carrier on the node where each is."""
        with self.decisions.decision() as todo:
            todo += self.controller.change_carriers(fragments, carriers, reason)

    def _move(self, places: Mapping[int, str], reason: str, carriers: CarrierKinds | None) -> list[int]:
        known = set(self.controller.state.moves)
        with self.decisions.decision() as todo:
            for fragment, place in places.items():
                todo += self.controller.move(fragment, place, reason, carriers)
        return [number for number in self.controller.state.moves if number not in known]

    def drain_node(self, node: str) -> None:
        """Moves everything away from a node, with every poll what can move then, and puts nothing new on it.

        Raises NodeRefused.
        """
        with self.decisions.decision() as todo:
            todo += self.controller.draining.begin(node)

    def reopen_node(self, node: str) -> None:
        """The node takes queries again. Raises NodeRefused."""
        with self.decisions.decision():
            self.controller.draining.end(node)

    def add_node(self, name: str, runtime: Runtime, reason: str) -> None:
        """From now on fragments can move to a node that was not there when the job was started."""
        with self.decisions.decision():
            self.controller.add_node(name, reason)
        self._nodes[name] = runtime

    def remove_node(self, name: str, reason: str) -> None:
        """Forgets a node that is drained."""
        with self.decisions.decision():
            self.controller.remove_node(name, reason)
        self._nodes.pop(name).close()

    def round_trips(self) -> list[tuple[str, float]]:
        """To nodes and back, in seconds: all that was measured since the last call."""
        return [(name, seconds) for name, node in self._nodes.items() for seconds in node.round_trips()]

    # --- time passes -------------------------------------------------------------------------------------------------

    def poll(self) -> list[CarrierEvent]:
        """Hears what the carriers did and reacts. Call it a few times a second."""
        self.decisions.act()
        with self.guard.around("looking after nodes"):
            self._look_after_nodes()
        events: list[CarrierEvent] = []
        for name, node in self._nodes.items():
            with self.guard.around(f"asking node {name} for news", at_most=PATIENCE):
                news = node.events()
                # Of a carrier that is no more nobody wants to know.
                events += [event for event in news if event.carrier in self.controller.state.carriers]
        for event in events:
            if isinstance(event, BatchDone):
                self._hear(event)
            else:
                with self.guard.around(f"seeing to carrier {event.carrier}, which fails"):
                    self._quarantine.hear(event)
        with self.guard.around("starting carriers again"):
            self._quarantine.look()
        with self.guard.around("deciding where queries end and begin"):
            self._ask_the_silent()
        with self.guard.around("moving what is to move"):
            self._go_on()
        with self.guard.around("moving the event time of silent streams"):
            self._tick_idle()
        with self.guard.around("forgetting what is over"):
            self._forget()
        return events

    def _ask_the_silent(self) -> None:
        """Who has nothing to read does no micro-batch that shows how far it had come; that it rests shows as much."""
        for name in self.controller.undecided:
            published = PublishTable(name) not in self.decisions.undone and self.decisions.node(name).waiting(name)
            last = self.controller.state.carriers[name].last
            if published and newest(segments(self._store.results(name))) <= last:
                with self.decisions.decision() as todo:
                    todo += self.controller.rest(name)

    def _forget(self) -> None:
        busy = {instruction.carrier for instruction in self.decisions.undone}
        self._idle.forget(self.memory.tidy(self.controller, self._clock(), busy))

    def _hear(self, event: BatchDone) -> None:
        # A report that is lost here leaves a gap in the numbers of those that were heard (runs.py).
        with self.guard.around(f"taking in a micro-batch of carrier {event.carrier}"):
            with self.decisions.decision() as todo:
                todo += self.controller.handle(event)
            self._quarantine.well(event.carrier)
            record = self.controller.state.carriers[event.carrier]
            self._idle.hear(event, record.inputs_us, self._patience_of(record), self._clock())

    def _untouched(self, carrier: str) -> bool:
        """Whether nobody can have seen a result of a carrier."""
        return self.controller.state.carriers[carrier].last < 0 and not committed(self._store.results(carrier))

    def _look_after_nodes(self) -> bool:
        """Whether a node was lost since the last time; others have its carriers now."""
        was_lost = False
        for name, node in self._nodes.items():
            why, known = node.lost, name in self.controller.known.lost
            if why is not None and not known:
                log.error("node %s is lost: %s", name, why)
                node.forget()
                with self.decisions.decision() as todo:
                    todo += self.controller.failover.lose(name, why)
                was_lost = True
            elif why is None and known:
                with self.decisions.decision() as todo:
                    todo += self.controller.failover.back(name)
            self._note_slow(name, node.slow)
        return was_lost

    def _note_slow(self, node: str, why: str | None) -> None:
        """Once, until it is as fast as ever."""
        if why is None:
            self._slow.discard(node)
        elif node not in self._slow:
            self._slow.add(node)
            self.add_history(EventKind.NODE_SLOW, f"node {node} is slow: {why}", nodes=[node])

    def _go_on(self) -> None:
        with self.decisions.decision() as todo:
            todo += self.controller.go_on(self._clock())

    def _tick_idle(self) -> None:
        """A stream that has gone silent holds the others back no longer, and its windows close if it says so."""
        if self.finishing.begun:
            return
        now = self._clock()
        for record in self.carriers:
            if record.inputs_us and self.controller.runs(record.id):
                self._idle.meet(record.id, record.inputs_us, self._patience_of(record), now)
        for tick in self._idle.due(now, lambda c: self.decisions.node(c).waiting(c)):
            self.decisions.node(tick.carrier).tick(*tick)

    def _patience_of(self, carrier: CarrierRecord) -> list[Patience]:
        """Of its inputs; links need none, since those who make them report how far they have come."""
        return [self._patience.get(schema_class, Patience()) for schema_class in carrier.template.family.read]

    def at_rest(self, carrier: str) -> bool:
        """Whether a carrier has nothing to read."""
        return self.decisions.node(carrier).waiting(carrier)

    @property
    def heap_bytes(self) -> int:
        """Memory in use by the Spark of this process; embedded nodes share it."""
        return max((node.heap_bytes or 0 for node in self._nodes.values()), default=0)

    @property
    def carriers(self) -> Sequence[CarrierRecord]:
        """Those that have a table, on nodes that are there."""
        return [c for c in self.controller.state.carriers.values() if c.version and c.node in self._nodes]
