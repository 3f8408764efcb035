"""Nodes that are being drained: they take nothing new, and what they have moves to others. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Set

from towpath.control.decide.choose_node import NodeChoice, Places, fragments_to
from towpath.control.decide.moves import Moves
from towpath.control.state.controller_state import ControllerState, Instruction
from towpath.control.state.fence import UNDECIDED
from towpath.control.state.history import EventKind
from towpath.control.state.records import FragmentRecord, FragmentStatus, NodeRecord
from towpath.errors import NodeRefused

# More would hold the engine up: each begins with the parsing of a query.
AT_ONCE = 200


class Draining:
    def __init__(self, known: ControllerState, moves: Moves, places: Places) -> None:
        self._known = known
        self._moves = moves
        self._places = places

    def begin(self, node: str) -> list[Instruction]:
        """From now on the node takes nothing new. Raises NodeRefused; nothing has changed then."""
        self._refuse_unknown(node)
        others = [name for name in self._known.nodes if name != node and self._known.refusal(name) is None]
        if not others:
            raise NodeRefused(f"no node other than {node} takes queries; add one to the job file, or open one again")
        if self._known.draining(node):
            return []
        staying = [fragment for fragment in self._here({node}) if self._known.has_sessions(fragment)]
        if staying:
            queries = ", ".join(dict.fromkeys(self._known.used_by(fragment) for fragment in staying))
            raise NodeRefused(f"node {node} has sessions, which cannot move; withdraw them first: {queries}")
        self._mark(node, True, f"node {node} takes nothing new; what it runs moves to {', '.join(others)}: asked for")
        on_their_way = [
            move
            for move in self._known.moves.values()
            if move.step in UNDECIDED and self._known.node_of(move.target) == node
        ]
        return [i for move in on_their_way for i in self._moves.abandon(move, f"{node} is being drained")]

    def end(self, node: str) -> None:
        """The node takes queries again; what has left it stays away."""
        self._refuse_unknown(node)
        if self._known.draining(node):
            self._mark(node, False, f"node {node} takes queries again: asked for")

    def leaving(self) -> list[tuple[int, NodeChoice]]:
        """Fragments that can set out from such nodes now, and where to."""
        nodes = {name for name in self._known.nodes if self._known.draining(name)}
        others = self._known.open_nodes
        if not nodes or not others:
            return []
        room = AT_ONCE - sum(move.step in UNDECIDED for move in self._known.moves.values())
        found = {}
        for fragment in self._free(nodes)[: max(0, room)]:
            alone = [name for name in others if self._moves.copied_on(fragment, name) is None]
            found[fragment.id] = alone or others
        return fragments_to(self._places, self._known, found)

    def _free(self, nodes: Set[str]) -> list[FragmentRecord]:
        """Those on the nodes that are not on their way already."""
        busy = {fragment for move in self._known.moves.values() for fragment in (move.source, move.target)}
        return [f for f in self._here(nodes) if f.status is FragmentStatus.LIVE and f.id not in busy]

    def _here(self, nodes: Set[str]) -> list[FragmentRecord]:
        """Those that queries use on the nodes."""
        carriers = [c for c in self._known.present if self._known.state.carriers[c].node in nodes]
        here = (fragment for carrier in carriers for fragment in self._known.present[carrier].values())
        return [fragment for fragment in here if self._known.users.get(fragment.id)]

    def state(self, node: str) -> str:
        if not self._known.draining(node):
            return "open"
        runs = (name for name in self._known.runs if self._known.state.carriers[name].node == node)
        return "draining" if any(runs) else "drained"

    def _refuse_unknown(self, node: str) -> None:
        if node not in self._known.nodes:
            raise NodeRefused(f"there is no node {node!r}; the job has {', '.join(self._known.nodes)}")

    def _mark(self, node: str, draining: bool, text: str) -> None:
        record = self._known.state.nodes.setdefault(node, NodeRecord(node))
        record.draining = draining
        self._known.note(record)
        self._known.add_history(EventKind.NODE_DRAINING if draining else EventKind.NODE_JOINED, text, nodes=(node,))
