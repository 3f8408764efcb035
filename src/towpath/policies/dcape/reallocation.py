"""Algorithm 6: how a fragment changes its processor while data flows.

    preparing   the new processor learns of it, the old one lets it go,
                neighbours that other managers have stay where they are     step 1
    connecting  new connections to parents, then from children              steps 2, 3
    moving      the world drains the old copy, hands its state over, and
                starts the new one when the last old result is out          steps 4 to 6
    then        old connections are taken down, or the new ones if the
                world could not move it

The connections exist before any data takes them, so that nothing stops. That nothing is lost and all stays in order is
the world's to keep: the manager only asks for a move when everyone is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from towpath.policies.dcape.connections import Neighbours
from towpath.policies.dcape.known import Suggestion
from towpath.policies.dcape.messages import Verb, WorkRequest
from towpath.runtime.actors import Address, Move

ReallocationState = Literal["preparing", "connecting", "moving"]
Bundles = dict[Address, list[WorkRequest]]
Route = Callable[[str], Address | None]  # to whom requests about a fragment go


@dataclass
class Reallocation:
    wanted: Suggestion
    ends: Neighbours
    state: ReallocationState = "preparing"
    source: str = ""  # the nodes themselves, where source and target of `wanted` may be managers
    target: str = ""
    neighbours: dict[str, str] = field(default_factory=dict)  # their nodes

    def prepare(self, alive: bool, route: Route, nodes: Collection[str]) -> Bundles:
        """`alive`: whether the old processor can still be asked. What is not on `nodes` other managers know of."""
        fragment = self.wanted.fragment
        found: Bundles = {self.wanted.target: [WorkRequest("prepare", fragment)]}
        if alive:
            found[self.wanted.source] = [WorkRequest("release", fragment)]
        for other, _, _ in self._neighbours():
            at = route(other)
            if at in nodes:
                self.neighbours[other] = str(at)
            elif at is not None:
                found.setdefault(at, []).append(WorkRequest("hold", other))
        return found

    def prepared(self, hosts: Mapping[Address, Mapping[str, str]]) -> None:
        """Who runs what, as those answered who were asked."""
        self.state = "connecting"
        fragment, wanted = self.wanted.fragment, self.wanted
        self.target = hosts[wanted.target][fragment]
        self.source = hosts.get(wanted.source, {}).get(fragment, wanted.source)
        self.neighbours |= {f: node for found in hosts.values() for f, node in found.items() if f != fragment}

    def connect(self, route: Route) -> Bundles:
        fragment, target = self.wanted.fragment, self.wanted.target
        found: Bundles = {target: []}
        for other, sends, receives in self._neighbours():
            at, node = route(other), self.neighbours.get(other)
            if at is None or node is None or node == self.target:
                continue
            found[target].append(WorkRequest(sends, fragment, other, node))
            found.setdefault(at, []).append(WorkRequest(receives, other, fragment, self.target))
        found[target] += [WorkRequest("receive_data", fragment, stream) for stream in self.ends.streams]
        return {receiver: requests for receiver, requests in found.items() if requests}

    def move(self) -> Move:
        self.state = "moving"
        return Move(self.wanted.fragment, self.source, self.target, self.wanted.reason)

    def settle(self, route: Route, done: bool) -> Bundles:
        """Takes down what the losing processor had, and lets the neighbours go that were held."""
        won, lost = (self.wanted.target, self.wanted.source) if done else (self.wanted.source, self.wanted.target)
        fragment, host = self.wanted.fragment, self.source if done else self.target
        found: Bundles = {won: [WorkRequest("activate", fragment)]}
        found.setdefault(lost, []).append(WorkRequest("deactivate", fragment))
        for other, _, receives in self._neighbours():
            at = route(other)
            if at is not None and at != host:
                verb: Verb = "stop_receive" if receives == "receive_data" else "stop_send"
                found.setdefault(at, []).append(WorkRequest(verb, other, fragment, host))
        return found

    def _neighbours(self) -> list[tuple[str, Verb, Verb]]:
        """Each with what the fragment and what the neighbour does. Parents first: results must have a way out."""
        parents: list[tuple[str, Verb, Verb]] = [(p, "send_data", "receive_data") for p in self.ends.parents]
        return parents + [(c, "receive_data", "send_data") for c in self.ends.children]
