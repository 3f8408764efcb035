"""The engine: runs a job. It owns the store, hears events, lets the controller decide, and carries the decisions out.

Order of every step: decide, write the journal, then do it. What fails before it is written down is forgotten as a
whole; what fails afterwards is done with the next poll, and after a crash by `resume`, which does everything again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Self

from towpath.control.act.guard import Guard
from towpath.control.act.linkfiles import LinkFiles, concerns_links
from towpath.control.act.memory import Memory
from towpath.control.act.quarantine import Quarantine
from towpath.control.decide.choose_node import Places
from towpath.control.decide.closing import closings
from towpath.control.decide.controller import Controller, Instruction, Publish, StartCarrier, StopCarrier, Submission
from towpath.control.decide.requests import Request, changed, submissions, take_in
from towpath.control.journal.answers import Answers
from towpath.control.journal.journal import Journal
from towpath.control.observe.idle import Idle, Patience
from towpath.control.state.history import EventKind
from towpath.control.state.records import BEGINNING_US, CarrierRecord
from towpath.errors import RuntimeFailure, StoreError, UnknownQueryError
from towpath.results import committed
from towpath.results.log import newest, segments
from towpath.runtime.carriers import BatchDone, CarrierEvent, Runtime
from towpath.schema import Catalog, SchemaClass, is_link
from towpath.store.layout import Store

log = logging.getLogger(__name__)

AGAIN_S = 0.2  # between two looks at nodes that are lost
PATIENCE = 50  # failed questions in a row, about ten seconds, until the Spark of this process counts as gone
ROUNDS = 50  # at most, until who reads a link has all of it; two are enough unless a fragment moves meanwhile


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
        self.closed_us: int | None = None  # how far `drain` has taken event time; what is older is late now
        self._finishing = False  # nobody waits for anybody any more
        self.controller = Controller(journal.load(), catalog, list(nodes), places)
        self._links = LinkFiles(store)
        self._links_told = True
        self._undone: dict[Instruction, None] = {}  # in their order
        self.guard = Guard(self.add_history)
        self._quarantine = Quarantine(self.controller, self._node, self._decision, self._untouched)
        self.memory = Memory(store, journal, retention_us)
        with self._decision() as todo:
            todo += opening(self.controller)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for node in self._nodes.values():
            node.close()
        self._undone.clear()
        try:
            self.poll()
        except (RuntimeFailure, StoreError) as error:
            log.warning("on the way out: %s", error)  # the next start finds out again
        finally:
            self._journal.close()

    # --- queries -----------------------------------------------------------------------------------------------------

    def submit(self, requests: Iterable[Request]) -> None:
        """Takes checked queries in; an unchanged one goes on, also with another sink.

        One that runs under the same name and asks something else is replaced: it goes on until the new one takes over.
        """
        wanted = changed(requests, self.controller, self._catalog)
        # What a job file says must not keep the job from starting.
        asked = [s for r in wanted if r.origin != "job" for s in submissions(r, self._catalog)]
        for submission in asked:
            self.controller.refuse_node(submission.node)
            self.controller.refuse_copies(submission)
        if self.admit is not None:
            self.admit(asked)
        with self._decision() as todo:
            todo += take_in(wanted, self.controller, self._catalog)
            todo += self.controller.catch_up()

    def withdraw(self, name: str, reason: str = "asked for") -> None:
        if self.controller.running(name) is None:
            raise UnknownQueryError(f"no query named {name!r} is running")
        with self._decision() as todo:
            todo += self.controller.withdraw(name, reason)

    def move(self, name: str, node: str, reason: str = "asked for") -> list[int]:
        """Begins to move a query's fragments to a node; they go on answering meanwhile. Returns the moves' numbers.

        Raises MoveRefused, and moves none then. Fragments that are there already stay.
        """
        query = self.controller.running(name)
        if query is None:
            raise UnknownQueryError(f"no query named {name!r} is running")
        fragments = dict.fromkeys(part.fragment for part in self.controller.state.parts_of(query.id))
        away = [fragment for fragment in fragments if self.controller.node_of(fragment) != node]
        for fragment in away or fragments:
            self.controller.refuse_move(fragment, node)
        return self._move(away, node, reason)

    def move_fragment(self, fragment: int, node: str, reason: str = "asked for") -> int:
        """Begins to move one fragment; returns the number of the move. Raises MoveRefused."""
        self.controller.refuse_move(fragment, node)
        return self._move([fragment], node, reason)[0]

    def _move(self, fragments: Iterable[int], node: str, reason: str) -> list[int]:
        known = set(self.controller.state.moves)
        with self._decision() as todo:
            for fragment in fragments:
                todo += self.controller.move(fragment, node, reason)
        return [number for number in self.controller.state.moves if number not in known]

    def drain_node(self, node: str) -> None:
        """Moves everything away from a node, with every poll what can move then, and puts nothing new on it.

        Raises NodeRefused.
        """
        with self._decision() as todo:
            todo += self.controller.drain_node(node)

    def reopen_node(self, node: str) -> None:
        """The node takes queries again. Raises NodeRefused."""
        with self._decision():
            self.controller.reopen_node(node)

    def add_node(self, name: str, runtime: Runtime, reason: str) -> None:
        """From now on fragments can move to a node that was not there when the job was started."""
        with self._decision():
            self.controller.add_node(name, reason)
        self._nodes[name] = runtime

    def remove_node(self, name: str, reason: str) -> None:
        """Forgets a node that is drained."""
        with self._decision():
            self.controller.remove_node(name, reason)
        self._nodes.pop(name).close()

    def add_history(
        self, kind: EventKind, text: str, *, fragment: int | None = None, nodes: Iterable[str] = ()
    ) -> None:
        """Writes into the history what somebody besides the controller decided."""
        with self._decision():
            self.controller.add_history(kind, text, fragment=fragment, nodes=nodes)

    # --- time passes -------------------------------------------------------------------------------------------------

    def poll(self) -> list[CarrierEvent]:
        """Hears what the carriers did and reacts. Call it a few times a second."""
        self._do()
        with self.guard.around("looking after nodes"):
            self._look_after_nodes()
        events: list[CarrierEvent] = []
        for name, node in self._nodes.items():
            with self.guard.around(f"asking node {name} for news", at_most=PATIENCE):
                told = node.events()
                # Of a carrier that is no more nobody wants to know.
                events += [event for event in told if event.carrier in self.controller.state.carriers]
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
            self._empty_nodes()
        with self.guard.around("moving the event time of silent streams"):
            self._tick_idle()
        with self.guard.around("forgetting what is over"):
            self._forget()
        return events

    def _ask_the_silent(self) -> None:
        """Who has nothing to read does no micro-batch that tells how far it had come; that it rests tells as much."""
        for name in self.controller.undecided:
            published = Publish(name) not in self._undone and self._node(name).waiting(name)
            last = self.controller.state.carriers[name].last
            if published and newest(segments(self._store.results(name))) <= last:
                with self._decision() as todo:
                    todo += self.controller.rest(name)

    def _forget(self) -> None:
        busy = {instruction.carrier for instruction in self._undone}
        self._idle.forget(self.memory.tidy(self.controller, self._clock(), busy))

    def _hear(self, event: BatchDone) -> None:
        # A report that is lost here leaves a gap in the numbers of those that were heard (runs.py).
        with self.guard.around(f"taking in a micro-batch of carrier {event.carrier}"):
            with self._decision() as todo:
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
            why, known = node.lost, name in self.controller.lost_nodes
            if why is not None and not known:
                log.error("node %s is lost: %s", name, why)
                node.forget()
                with self._decision() as todo:
                    todo += self.controller.lose_node(name, why)
                was_lost = True
            elif why is None and known:
                with self._decision() as todo:
                    todo += self.controller.node_back(name)
            self._tell_slow(name, node.slow)
        return was_lost

    def _tell_slow(self, node: str, why: str | None) -> None:
        """Once, until it is as fast as ever."""
        if why is None:
            self._slow.discard(node)
        elif node not in self._slow:
            self._slow.add(node)
            self.add_history(EventKind.NODE_SLOW, f"node {node} is slow: {why}", nodes=[node])

    def _empty_nodes(self) -> None:
        """What is not where it should be goes elsewhere as soon as it can."""
        with self._decision() as todo:
            for fragment, node, reason in self.controller.leaving():
                todo += self.controller.move(fragment, node, reason)
            todo += self.controller.catch_up()
            todo += self.controller.stop_unneeded(self._clock())

    def _tick_idle(self) -> None:
        """A stream that has gone silent holds the others back no longer, and its windows close if it says so."""
        if self._finishing:
            return
        now = self._clock()
        for record in self.carriers:
            if record.inputs_us and self.controller.runs(record.id):
                self._idle.meet(record.id, record.inputs_us, self._patience_of(record), now)
        for tick in self._idle.due(now, lambda c: self._node(c).waiting(c)):
            self._node(tick.carrier).tick(*tick)

    def _patience_of(self, carrier: CarrierRecord) -> list[Patience]:
        """Of its inputs; links need none, since those who make them tell how far they have come."""
        return [self._patience.get(schema_class, Patience()) for schema_class in carrier.template.family.classes]

    def at_rest(self, carrier: str) -> bool:
        """Whether a carrier has nothing to read."""
        return self._node(carrier).waiting(carrier)

    def settle(self) -> None:
        """Waits until every carrier has processed everything its inputs offer, wherever it goes on meanwhile."""
        while True:
            mine: dict[str, list[str]] = {}
            for carrier in self.carriers:
                mine.setdefault(carrier.node, []).append(carrier.id)
            with ThreadPoolExecutor(max(1, len(mine))) as together:
                settled = list(together.map(self._settle_node, mine.keys(), mine.values()))
            # A node that was lost may be back already.
            if not self._look_after_nodes() and all(settled) and not self.controller.lost_nodes & mine.keys():
                return
            time.sleep(AGAIN_S)

    def _settle_node(self, node: str, carriers: Sequence[str]) -> bool:
        return self._nodes[node].settle(carriers)

    def finish(self) -> list[CarrierEvent]:
        """Processes everything the streams have, without closing a window that more rows could still fall into.

        Of streams that are read together, what is ahead of the slowest waits until that one has come so far.
        """
        self._finishing = True
        for node in self._nodes.values():
            node.finish_input(close=False)
        return self.catch_up()

    def drain(self) -> list[CarrierEvent]:
        """Processes everything the streams have, then closes all windows: `closed_us` says up to when.

        What comes for them afterwards is late.
        """
        self._finishing = True
        for node in self._nodes.values():
            node.finish_input(close=True)
        events = self.catch_up()
        with self._decision() as todo:
            todo += self.controller.abandon_links("the job is drained")
        if self._wake_unheard():
            events += self.catch_up()
        self._close_windows()
        events += self.catch_up()
        with self._decision() as todo:
            todo += self.controller.drained()
        return events

    def _wake_unheard(self) -> bool:
        """Whether there are carriers that found nothing to do since they were started: they do a micro-batch for us.

        It tells how far they have come, perhaps further than anybody knew. The tick for it is so old that it moves
        nothing.
        """
        unheard = [c for c in self.carriers if self.controller.is_unheard(c.id) and c not in self._readers()]
        for carrier in unheard:
            self._node(carrier.id).tick(carrier.id, 0, BEGINNING_US)
        return bool(unheard)

    def _close_windows(self) -> None:
        for closing in closings(self.carriers, self._readers(), self.controller):
            self.closed_us = max(closing.end_us, self.closed_us or closing.end_us)
            for tick in closing.ticks:
                self._node(tick.carrier).tick(*tick)

    def catch_up(self) -> list[CarrierEvent]:
        """As `settle`; those who read links go on until they have all that is released, and are done with it."""
        events = self._settle_and_hear()
        for _ in range(ROUNDS):
            if not self.controller.reads_past:
                break
            events += self._settle_and_hear()
        for _ in range(ROUNDS if self._readers() else 0):
            behind = any(self._links.behind(carrier) for carrier in self._readers())
            # Also when they have read it all: maybe a moment ago, and windows close with the micro-batch after that.
            events += self._settle_and_hear()
            if not behind:
                break
        return events

    def _settle_and_hear(self) -> list[CarrierEvent]:
        """Raises RuntimeFailure for a carrier that fails whatever it is to do: waiting would not end."""
        self.settle()
        events = self.poll()
        with self._quarantine.in_a_hurry():
            while self._quarantine.busy:
                time.sleep(AGAIN_S)
                events += self.poll()
                if not self._quarantine.busy:
                    self.settle()
                    events += self.poll()
        return events

    def _readers(self) -> list[CarrierRecord]:
        """The carriers that read links, and nothing else."""
        return [c for c in self.carriers if all(map(is_link, c.template.family.classes))]

    @property
    def heap_bytes(self) -> int:
        """Memory in use by the Spark of this process; embedded nodes share it."""
        return max((node.heap_bytes or 0 for node in self._nodes.values()), default=0)

    # --- results -----------------------------------------------------------------------------------------------------

    @property
    def carriers(self) -> Sequence[CarrierRecord]:
        """Those that have a table, on nodes that are there."""
        return [c for c in self.controller.state.carriers.values() if c.version and c.node in self._nodes]

    # --- doing -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _decision(self) -> Iterator[list[Instruction]]:
        """What the controller decides meanwhile is written down as one, or forgotten as one; then it is done."""
        live, todo = self.controller.live, list[Instruction]()
        try:
            yield todo
            if self.controller.changed:
                self._journal.save(self.controller.changed.values())
                self._links_told &= not concerns_links(self.controller.changed.values())
                self.controller.changed.clear()
        except BaseException:  # also Ctrl-C
            if self.controller.changed:
                self.controller.take_back(self._journal.load(), live)
            raise
        self._undone |= dict.fromkeys(todo)
        self._do()

    def _do(self) -> None:
        """What cannot be done now, for instance because the disk is full, remains to be done."""
        if not self._links_told:
            # Before anything else: who reads a link must know of a fence before the one who makes it can pass it.
            with self.guard.around("telling who makes derived streams"):
                self._links.write(self.controller.links)
                self._links_told = True
        if not self._links_told:
            return
        # Many moves at once ask for the same table many times; it is written once, as it is in the end.
        failed: set[str] = set()  # carriers: what comes next for them needs what was before
        for instruction in list(self._undone):
            if instruction not in self._undone:
                continue  # done meanwhile, when the failure of another was written down
            done = False
            if instruction.carrier not in failed:
                with self.guard.around(f"telling a node about carrier {instruction.carrier}"):
                    self._carry_out(instruction)
                    done = True
            if done:
                del self._undone[instruction]
            else:
                failed.add(instruction.carrier)

    def _carry_out(self, instruction: Instruction) -> None:
        carrier = self.controller.state.carriers[instruction.carrier]
        node = self._node(carrier.id)
        match instruction:
            case Publish():
                with self.controller.publishing(carrier.id) as change:
                    node.publish(carrier.id, carrier.template, carrier.version, change)
            case StartCarrier():
                log.info("starting carrier %s on %s: %s", carrier.id, carrier.node, carrier.template.family.kind)
                node.start(carrier.id, carrier.template, carrier.epoch, self.controller.banned(carrier.id))
            case StopCarrier():
                log.info("stopping carrier %s on %s", carrier.id, carrier.node)
                node.stop(carrier.id)

    def _node(self, carrier: str) -> Runtime:
        return self._nodes[self.controller.state.carriers[carrier].node]
