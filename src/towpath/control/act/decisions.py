"""Decide, write the journal, act: the one way in which anything of a job changes.

What fails before it is written down is forgotten as a whole. What fails afterwards is done with the next `act`, and
after a crash by `Controller.resume`, which does everything again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from towpath.control.act.guard import Guard
from towpath.control.act.linkfiles import concerns_links
from towpath.control.decide.controller import Controller
from towpath.control.decide.links import Links
from towpath.control.state.controller_state import Instruction, PublishTable, StartCarrier, StopCarrier
from towpath.control.state.history import EventKind
from towpath.control.state.records import Record, State
from towpath.runtime.carriers import Runtime

log = logging.getLogger(__name__)


class RecordKeeper(Protocol):
    """A journal."""

    def save(self, records: Iterable[Record]) -> None:
        """All of them or none."""

    def load(self) -> State: ...


class LinkWriter(Protocol):
    """Writes down, for those who read derived streams, who makes them."""

    def write(self, links: Links) -> None: ...


class Decisions:
    def __init__(
        self, controller: Controller, journal: RecordKeeper, nodes: Mapping[str, Runtime], link_files: LinkWriter
    ) -> None:
        self.controller = controller
        self.guard = Guard(self.add_history)
        self._journal = journal
        self._nodes = nodes
        self._link_files = link_files
        self._links_written = True
        self._undone: dict[Instruction, None] = {}  # in their order

    @contextmanager
    def decision(self) -> Iterator[list[Instruction]]:
        """What the controller decides meanwhile is written down as one, or forgotten as one; then it is done."""
        live, todo = self.controller.live, list[Instruction]()
        try:
            yield todo
            if self.controller.changed:
                self._journal.save(self.controller.changed.values())
                self._links_written &= not concerns_links(self.controller.changed.values())
                self.controller.changed.clear()
        except BaseException:  # also Ctrl-C
            if self.controller.changed:
                self.controller.take_back(self._journal.load(), live)
            raise
        self._undone |= dict.fromkeys(todo)
        self.act()

    def add_history(
        self, kind: EventKind, text: str, *, fragment: int | None = None, nodes: Iterable[str] = ()
    ) -> None:
        """Writes into the history what somebody besides the controller decided."""
        with self.decision():
            self.controller.known.add_history(kind, text, fragment=fragment, nodes=nodes)

    def act(self) -> None:
        """What cannot be done now, for instance because the disk is full, remains to be done."""
        if not self._links_written:
            # Before anything else: who reads a link must know of a fence before the one who makes it can pass it.
            with self.guard.around("writing who makes derived streams"):
                self._link_files.write(self.controller.links)
                self._links_written = True
        if not self._links_written:
            return
        # Many moves at once ask for the same table many times; it is written once, as it is in the end.
        failed: set[str] = set()  # carriers: what comes next for them needs what was before
        for instruction in list(self._undone):
            if instruction not in self._undone:
                continue  # done meanwhile, when the failure of another was written down
            done = False
            if instruction.carrier not in failed:
                with self.guard.around(f"instructing the node of carrier {instruction.carrier}"):
                    self._carry_out(instruction)
                    done = True
            if done:
                del self._undone[instruction]
            else:
                failed.add(instruction.carrier)

    @property
    def undone(self) -> Mapping[Instruction, None]:
        """What is still to be done."""
        return self._undone

    def give_up(self) -> None:
        """Nothing of it is to be done any more: the nodes are closed."""
        self._undone.clear()

    def node(self, carrier: str) -> Runtime:
        return self._nodes[self.controller.state.carriers[carrier].node]

    def _carry_out(self, instruction: Instruction) -> None:
        carrier = self.controller.state.carriers[instruction.carrier]
        node = self.node(carrier.id)
        match instruction:
            case PublishTable():
                with self.controller.known.publishing(carrier.id) as change:
                    node.publish(carrier.id, carrier.template, carrier.version, change)
            case StartCarrier():
                log.info("starting carrier %s on %s: %s", carrier.id, carrier.node, carrier.template.family.kind)
                node.start(carrier.id, carrier.template, carrier.epoch, self.controller.banned(carrier.id))
            case StopCarrier():
                log.info("stopping carrier %s on %s", carrier.id, carrier.node)
                node.stop(carrier.id)
