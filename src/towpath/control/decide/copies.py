"""Copies of a query belong on nodes of their own. A failover may bring two together; later one goes away again.

Decides; does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from towpath.control.decide.choose_node import NodeChoice, Places, fragments_to
from towpath.control.decide.moves import Moves
from towpath.control.state.controller_state import ControllerState
from towpath.control.state.records import FragmentRecord, FragmentStatus, PartRecord


class Copies:
    def __init__(self, known: ControllerState, moves: Moves, places: Places) -> None:
        self._known = known
        self._moves = moves
        self._places = places
        self._settled_for: frozenset[str] = frozenset()  # with these nodes there is nothing more to be done

    def parting(self) -> list[tuple[int, NodeChoice]]:
        """Copies that share a node and can set out now, and where to: to a node that has none."""
        takers = self._known.open_nodes
        if frozenset(takers) == self._settled_for:
            return []
        busy = {fragment for move in self._known.moves.values() for fragment in (move.source, move.target)}
        found: dict[int, list[str]] = {}
        waiting = False
        for fragment in self._together():
            free = [node for node in takers if self._moves.copied_on(fragment, node) is None]
            if not free:
                continue
            waiting = True
            if fragment.status is FragmentStatus.LIVE and fragment.id not in busy:
                found[fragment.id] = free
        if not waiting:
            self._settled_for = frozenset(takers)
        return fragments_to(self._places, self._known, found)

    def _together(self) -> Iterator[FragmentRecord]:
        """All but the first of the copies that are on one node."""
        state = self._known.state
        copies: dict[tuple[int, int], list[PartRecord]] = {}
        for parts in self._known.users.values():
            for part in parts:
                copies.setdefault((part.query, part.select), []).append(part)
        for twins in copies.values():
            taken: set[str] = set()
            for part in sorted(twins, key=lambda p: p.branch) if len(twins) > 1 else ():
                node = self._known.node_of(part.fragment)
                if node in taken:
                    yield state.fragments[part.fragment]
                taken.add(node)
