"""Carriers that nobody needs any more: they cost their node a micro-batch in every trigger. Decides; does nothing.

A query that was withdrawn or has moved leaves its carrier behind. After a while it stops; should a query need it again
it goes on from its checkpoint, and that query answers for what comes then.
"""

from __future__ import annotations

from collections.abc import Iterable

from towpath.control.state.controller_state import ControllerState, Instruction, StopCarrier
from towpath.control.state.history import EventKind

AFTER_S = 60.0  # fragments come back sooner than that when a policy changes its mind


class UnusedCarriers:
    def __init__(self, known: ControllerState) -> None:
        self._known = known
        self._since: dict[str, float] = {}  # by carrier, when it was first seen that nobody needs it

    def stop(self, now_s: float) -> list[Instruction]:
        """Stops those that nobody has needed for long; at once those that nobody will need again."""
        known = self._known
        unneeded = [name for name in known.runs if not known.present.get(name) and not known.waiting.get(name)]
        self._since = {name: self._since.get(name, now_s) for name in unneeded}
        over = [name for name, since in self._since.items() if now_s - since >= AFTER_S or self._is_done(name)]
        return [*self._stopped(over)]

    def _is_done(self, carrier: str) -> bool:
        """On a node that is being drained, or it read the past for others."""
        record = self._known.state.carriers[carrier]
        return record.past or self._known.draining(record.node)

    def _stopped(self, carriers: Iterable[str]) -> Iterable[Instruction]:
        for name in carriers:
            node = self._known.state.carriers[name].node
            del self._known.runs[name]
            self._known.add_history(
                EventKind.CARRIER_STOPPED, f"carrier {name} on {node} stops: no query needs it", nodes=[node]
            )
            yield StopCarrier(name)
