"""Copies of a query belong on nodes of their own. A failover may bring two together; later one goes away again.

Decides; does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from towpath.control.ledger import Ledger
from towpath.control.moves import Moves
from towpath.control.records import FragmentRecord, PartRecord, Status


class Copies:
    def __init__(self, ledger: Ledger, moves: Moves) -> None:
        self._ledger = ledger
        self._moves = moves
        self._settled_for: frozenset[str] = frozenset()  # with these nodes there is nothing more to be done

    def parting(self) -> list[tuple[int, str]]:
        """Copies that share a node and can set out now, and where to: to the emptiest node that has none."""
        takers = self._ledger.takers()
        if frozenset(takers) == self._settled_for:
            return []
        busy = {fragment for move in self._ledger.moves.values() for fragment in (move.source, move.target)}
        found: dict[int, str] = {}
        waiting = False
        for fragment in self._together():
            free = [node for node in takers if self._moves.copied_on(fragment, node) is None]
            if not free:
                continue
            waiting = True
            if fragment.status is Status.LIVE and fragment.id not in busy:
                found[fragment.id] = free[0]
        if not waiting:
            self._settled_for = frozenset(takers)
        return list(found.items())

    def _together(self) -> Iterator[FragmentRecord]:
        """All but the first of the copies that are on one node."""
        state = self._ledger.state
        copies: dict[tuple[int, int], list[PartRecord]] = {}
        for parts in self._ledger.users.values():
            for part in parts:
                copies.setdefault((part.query, part.select), []).append(part)
        for twins in copies.values():
            taken: set[str] = set()
            for part in sorted(twins, key=lambda p: p.branch) if len(twins) > 1 else ():
                node = self._ledger.node_of(part.fragment)
                if node in taken:
                    yield state.fragments[part.fragment]
                taken.add(node)
