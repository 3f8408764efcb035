"""Who is near a place in the latency space, where fragments are, and whose turn it is.

The paper's prototype, too, finds the nearest nodes centrally (section 3.1.3). That a query is stopped while one
optimiser deals with it (section 3.2) is a claim here: whoever has it has all queries of an operator to itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import dist

import numpy as np

from towpath.placement.index import Floats
from towpath.policies.sbon.messages import (
    Candidates,
    Claim,
    Denied,
    Done,
    Granted,
    Message,
    Nearest,
    Place,
    Position,
    Publish,
    size,
)
from towpath.runtime.actors import Arrived, NodeJoined, NodeLost, Note, PolicyEvent, PolicyInstruction, Send

ADDRESS = "directory"


class Directory:
    def __init__(self, positions: Mapping[str, Position], able: Iterable[str], hosts: Mapping[str, str]) -> None:
        """`able` are the nodes that can run something, `hosts` the nodes that run each fragment."""
        self.address = ADDRESS
        self._position = dict(positions)
        self._able = list(able)
        self._lost: set[str] = set()
        self._host = dict(hosts)
        self._rest: dict[str, Position] = {}  # by fragment
        self._held: dict[str, tuple[str, int]] = {}  # by what is claimed: the node and its evaluation

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        match event:
            case Arrived(_, sender, message):
                return self._heard(sender, message)
            case NodeLost(_, node):
                self._lost.add(node)
                self._held = {name: holder for name, holder in self._held.items() if holder[0] != node}
            case NodeJoined(_, node):
                self._lost.discard(node.name)
        return []

    def _heard(self, sender: str, message: object) -> list[PolicyInstruction]:
        match message:
            case Publish(position, fragments):
                self._position[sender] = position
                self._host |= dict.fromkeys(fragments, sender)
            case Claim():
                return [_send(sender, self._claimed(sender, message))]
            case Nearest(evaluation, target, count):
                return [_send(sender, self._nearest(evaluation, target, count))]
            case Done(evaluation, rests, moved):
                holder = (sender, evaluation)
                self._held = {name: other for name, other in self._held.items() if other != holder}
                self._rest |= rests
                self._host |= moved
            case _:
                return [Note(f"the directory cannot read a {type(message).__name__} of {sender}")]
        return []

    def _claimed(self, sender: str, claim: Claim) -> Granted | Denied:
        if any(name in self._held for name in claim.names):
            return Denied(claim.evaluation)
        self._held |= dict.fromkeys(claim.names, (sender, claim.evaluation))
        places = {name: self._place(name) for name in claim.fragments if name in self._host}
        return Granted(claim.evaluation, places, {name: self._position[name] for name in claim.nodes})

    def _place(self, fragment: str) -> Place:
        node = self._host[fragment]
        position = self._position[node]
        return Place(node, position, self._rest.get(fragment, position))

    def _nearest(self, evaluation: int, target: Position, count: int) -> Candidates:
        nodes = [node for node in self._able if node not in self._lost]
        points: Floats = np.array([self._position[node] for node in nodes]).reshape(len(nodes), len(target))
        away = np.linalg.norm(points - np.array(target), axis=1)
        some = np.argpartition(away, count)[:count] if count < len(nodes) else np.arange(len(nodes))
        found = sorted((nodes[n] for n in some.tolist()), key=lambda node: dist(self._position[node], target))
        return Candidates(evaluation, {node: self._position[node] for node in found}, len(found) == len(nodes))


def _send(node: str, message: Message) -> Send:
    return Send(node, message, size(message))
