"""Nodes that are being drained: they take nothing new, and what they have moves to others. Decides; does nothing."""

from __future__ import annotations

from towpath.control.fence import UNDECIDED
from towpath.control.history import Kind
from towpath.control.ledger import Instruction, Ledger
from towpath.control.moves import Moves
from towpath.control.records import NodeRecord, Status
from towpath.errors import NodeRefused

# More would hold the engine up: each begins with the parsing of a query.
AT_ONCE = 200


class Draining:
    def __init__(self, ledger: Ledger, moves: Moves) -> None:
        self._ledger = ledger
        self._moves = moves

    def begin(self, node: str) -> list[Instruction]:
        """From now on the node takes nothing new. Raises NodeRefused; nothing has changed then."""
        self._refuse_unknown(node)
        others = [name for name in self._ledger.nodes if name != node and self._ledger.refusal(name) is None]
        if not others:
            raise NodeRefused(f"no node other than {node} takes queries; add one to the job file, or open one again")
        if self._ledger.draining(node):
            return []
        self._mark(node, True, f"node {node} takes nothing new; what it runs moves to {', '.join(others)}: asked for")
        on_their_way = [
            move
            for move in self._ledger.moves.values()
            if move.step in UNDECIDED and self._ledger.node_of(move.target) == node
        ]
        return [i for move in on_their_way for i in self._moves.abandon(move, f"{node} is being drained")]

    def end(self, node: str) -> None:
        """The node takes queries again; what has left it stays away."""
        self._refuse_unknown(node)
        if self._ledger.draining(node):
            self._mark(node, False, f"node {node} takes queries again: asked for")

    def leaving(self) -> list[tuple[int, str]]:
        """Fragments that can set out from such nodes now, and where to: to whoever has the fewest."""
        nodes = {name for name in self._ledger.nodes if self._ledger.draining(name)}
        if not nodes:
            return []
        sizes = {name: 0 for name in self._ledger.nodes if self._ledger.refusal(name) is None}
        here: list[int] = []
        busy = {fragment for move in self._ledger.moves.values() for fragment in (move.source, move.target)}
        for carrier, fragments in self._ledger.present.items():
            node = self._ledger.state.carriers[carrier].node
            if node in nodes:
                here += [
                    f.id
                    for f in fragments.values()
                    if f.status is Status.LIVE and f.id not in busy and self._ledger.users.get(f.id)
                ]
            elif node in sizes:
                sizes[node] += len(fragments)
        if not sizes:
            return []
        room = AT_ONCE - sum(move.step in UNDECIDED for move in self._ledger.moves.values())
        found = []
        for fragment in here[: max(0, room)]:
            record = self._ledger.state.fragments[fragment]
            alone = [name for name in sizes if self._moves.copied_on(record, name) is None]
            target = min(alone or sizes, key=sizes.__getitem__)
            sizes[target] += 1
            found.append((fragment, target))
        return found

    def state(self, node: str) -> str:
        if not self._ledger.draining(node):
            return "open"
        runs = (name for name in self._ledger.runs if self._ledger.state.carriers[name].node == node)
        return "draining" if any(runs) else "drained"

    def _refuse_unknown(self, node: str) -> None:
        if node not in self._ledger.nodes:
            raise NodeRefused(f"there is no node {node!r}; the job has {', '.join(self._ledger.nodes)}")

    def _mark(self, node: str, draining: bool, text: str) -> None:
        record = self._ledger.state.nodes.setdefault(node, NodeRecord(node))
        record.draining = draining
        self._ledger.note(record)
        self._ledger.tell(Kind.NODE_DRAINING if draining else Kind.NODE_JOINED, text, nodes=(node,))
