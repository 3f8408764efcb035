"""What nobody decides about any more leaves the controller's memory. Decides; does nothing.

A query that was withdrawn is settled: readers and its sink find it in the journal until its results are beyond their
retention. A fragment that is gone is of use only to those whose turns it answered. So what the controller knows, visits
and loads at a start is what runs, however much has come and gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from towpath.control.decide.queries import Queries
from towpath.control.state.controller_state import ControllerState
from towpath.control.state.fence import OPEN

MOVES_KEPT = 1000  # that have ended: whoever waits for one asks for it by its number


@dataclass(frozen=True)
class Dropped:
    """Fragments and moves that the journal need not keep for the controller."""

    fragments: tuple[int, ...] = ()
    moves: tuple[int, ...] = ()


class Forgetting:
    def __init__(self, known: ControllerState, queries: Queries) -> None:
        self._known = known
        self._queries = queries
        self._state = known.state

    def drop(self) -> Dropped:
        """Looks at what has ended since the last time, and at nothing else."""
        over = [number for number in self._known.ended if not self._is_aside(number)]
        for query in over:
            self._drop_query(query)
            del self._known.ended[query]
        moves = self._drop_moves()
        moving = {fragment for move in self._state.moves.values() for fragment in (move.source, move.target)}
        unused = [number for number in self._known.gone if number not in self._known.answered.keys() | moving]
        for number in unused:
            del self._state.fragments[number]
        self._known.gone.difference_update(unused)
        return Dropped(tuple(unused), tuple(moves))

    def idle_carriers(self) -> list[str]:
        """Those that do not run, and of whose fragments none is named."""
        known = self._known
        named = {self._state.fragments[number].carrier for number in known.gone}
        return [
            name
            for name in self._state.carriers
            if name not in known.runs
            and name not in named
            and not known.present.get(name)
            and not known.waiting.get(name)
        ]

    def retire(self, carriers: Iterable[str]) -> None:
        """Their results are forgotten, so nothing is left of them."""
        for name in carriers:
            del self._state.carriers[name]
            self._known.present.pop(name, None)
            self._known.waiting.pop(name, None)
            self._known.publish_whole(name)

    def _is_aside(self, query: int) -> bool:
        """Whether it was set aside: everybody is warned until somebody does something about it."""
        record = self._state.queries[query]
        return self._queries.aside.get(record.name) is record

    def _drop_query(self, query: int) -> None:
        del self._state.queries[query]
        branch = 0
        while turns := self._state.turns(query, branch):
            for part in turns:
                self._known.remove_part(part)
            branch += 1

    def _drop_moves(self) -> list[int]:
        closed = [number for number, move in self._state.moves.items() if move.step not in OPEN]
        old = closed[: max(0, len(closed) - MOVES_KEPT)]
        for number in old:
            del self._state.moves[number]
        return old
