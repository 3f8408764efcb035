"""Waiting: until every carrier has done what there is to do, and to the end of everything the streams have."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from towpath.control.act.decisions import Decisions
from towpath.control.act.linkfiles import LinkFiles
from towpath.control.act.quarantine import Quarantine
from towpath.control.decide.closing import closings
from towpath.control.state.records import BEGINNING_US, CarrierRecord
from towpath.runtime.carriers import CarrierEvent, Runtime
from towpath.schema import is_link

AGAIN_S = 0.2  # between two looks at nodes that are lost
ROUNDS = 50  # at most, until who reads a link has all of it; two are enough unless a fragment moves meanwhile


class Finishing:
    def __init__(
        self,
        decisions: Decisions,
        nodes: Mapping[str, Runtime],
        quarantine: Quarantine,
        links: LinkFiles,
        *,
        carriers: Callable[[], Sequence[CarrierRecord]],
        look_after_nodes: Callable[[], bool],
        poll: Callable[[], list[CarrierEvent]],
    ) -> None:
        """`look_after_nodes` answers whether a node was lost, `poll` lets everybody do what is to be done now."""
        self._decisions = decisions
        self._controller = decisions.controller
        self._nodes = nodes
        self._quarantine = quarantine
        self._links = links
        self._carriers = carriers
        self._look_after_nodes = look_after_nodes
        self._poll = poll
        self.closed_us: int | None = None  # how far `drain` has taken event time; what is older is late now
        self.begun = False  # nobody waits for anybody any more

    def settle(self) -> None:
        """Waits until every carrier has processed everything its inputs offer, wherever it goes on meanwhile."""
        while True:
            mine: dict[str, list[str]] = {}
            for carrier in self._carriers():
                mine.setdefault(carrier.node, []).append(carrier.id)
            with ThreadPoolExecutor(max(1, len(mine))) as together:
                settled = list(together.map(self._settle_node, mine.keys(), mine.values()))
            # A node that was lost may be back already.
            if not self._look_after_nodes() and all(settled) and not self._controller.known.lost & mine.keys():
                return
            time.sleep(AGAIN_S)

    def _settle_node(self, node: str, carriers: Sequence[str]) -> bool:
        return self._nodes[node].settle(carriers)

    def finish(self) -> list[CarrierEvent]:
        """Processes everything the streams have, without closing a window that more rows could still fall into.

        Of streams that are read together, what is ahead of the slowest waits until that one has come so far.
        """
        self._finish_input(close=False)
        return self.catch_up()

    def drain(self) -> list[CarrierEvent]:
        """Processes everything the streams have, then closes all windows: `closed_us` says up to when.

        What comes for them afterwards is late.
        """
        self._finish_input(close=True)
        events = self.catch_up()
        with self._decisions.decision() as todo:
            todo += self._controller.abandon_links("the job is drained")
        if self._wake_unheard():
            events += self.catch_up()
        self._close_windows()
        events += self.catch_up()
        with self._decisions.decision() as todo:
            todo += self._controller.queries.endings.drained()
        return events

    def _finish_input(self, *, close: bool) -> None:
        self.begun = True
        for node in self._nodes.values():
            node.finish_input(close=close)

    def _wake_unheard(self) -> bool:
        """Whether there are carriers that found nothing to do since they were started: they do a micro-batch for us.

        It shows how far they have come, perhaps further than anybody knew. The tick for it is so old that it moves
        nothing.
        """
        readers = self._readers()
        unheard = [c for c in self._carriers() if self._controller.is_unheard(c.id) and c not in readers]
        for carrier in unheard:
            self._decisions.node(carrier.id).tick(carrier.id, 0, BEGINNING_US)
        return bool(unheard)

    def _close_windows(self) -> None:
        for closing in closings(self._carriers(), self._controller):
            self.closed_us = max(closing.end_us, self.closed_us or closing.end_us)
            for tick in closing.ticks:
                self._decisions.node(tick.carrier).tick(*tick)

    def catch_up(self) -> list[CarrierEvent]:
        """As `settle`; those who read links go on until they have all that is released, and are done with it."""
        events = self._settle_and_hear()
        for _ in range(ROUNDS):
            if not self._controller.beginnings.behind:
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
        events = self._poll()
        with self._quarantine.in_a_hurry():
            while self._quarantine.busy:
                time.sleep(AGAIN_S)
                events += self._poll()
                if not self._quarantine.busy:
                    self.settle()
                    events += self._poll()
        return events

    def _readers(self) -> list[CarrierRecord]:
        """The carriers that read links, and nothing else."""
        return [c for c in self._carriers() if all(map(is_link, c.template.family.classes))]
