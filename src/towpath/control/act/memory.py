"""What is over is forgotten now and then: by the controller at once, by the journal when nobody can ask for it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Set

from towpath.control.decide.controller import Controller
from towpath.control.decide.forgetting import Dropped
from towpath.control.journal.journal import Journal
from towpath.store.layout import Store

log = logging.getLogger(__name__)

EVERY_S = 30.0


class Memory:
    def __init__(self, store: Store, journal: Journal, retention_us: int | None) -> None:
        self._store = store
        self._journal = journal
        self._retention_us = retention_us
        self._at: float | None = None  # when it was last done, by a clock that only goes on
        self._fed: set[int] = set()

    def fed(self, queries: Iterable[int]) -> None:
        """The sinks of these, which were withdrawn, have everything."""
        self._fed.update(queries)

    def tidy(self, controller: Controller, now_s: float, busy: Set[str] = frozenset()) -> list[str]:
        """Call it often: it does something now and then. All that was decided must be written down.

        `busy` are carriers with which something is to be done yet. Returns those that are no more.
        """
        if self._at is not None and now_s - self._at < EVERY_S:
            return []
        try:
            retired = self._forget(controller, self._journal.archive.orphans() if self._at is None else Dropped(), busy)
            self._at = now_s
            return retired
        except sqlite3.OperationalError as error:
            # It has left the controller's memory already. What the journal still has of it, the next time finds.
            self._at = None
            log.warning("what is over stays in the journal for now: %s", error)
            return []

    def _forget(self, controller: Controller, orphans: Dropped, busy: Set[str]) -> list[str]:
        archive, forgetting = self._journal.archive, controller.forgetting
        dropped = forgetting.drop()
        kept = controller.state
        ended = (number for number in orphans.moves if number not in kept.moves)
        dropped = Dropped((*dropped.fragments, *orphans.fragments), (*dropped.moves, *ended))
        archive.mark_fed(self._fed)
        self._fed.clear()
        archive.forget(None if self._retention_us is None else self._journal.now_us() - self._retention_us, dropped)
        retired = archive.retire([name for name in forgetting.idle_carriers() if name not in busy])
        forgetting.retire(retired)
        self._store.remove_others(kept.carriers)
        return retired
