"""Who balances load with whom (Zhou et al., section 3.2).

Algorithm 1 runs asynchronously: `select` sends as many requests as could still be accepted and returns; every answer
resumes it. A requested node counts as a partner for the bound until it answers. `refresh` starts it over, giving up
the partners that are no neighbours, so that those get another chance to accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numpy.random import Generator

from towpath.policies.zhou.messages import PartnerAnswer, PartnerEnd, PartnerRequest

Sent = tuple[str, PartnerRequest | PartnerAnswer | PartnerEnd]  # to which node


class Partners:
    def __init__(
        self,
        factors: Mapping[str, int],
        nodes: Iterable[str],
        *,
        max1: int,
        max2: int,
        maximum_try: int,
        rng: Generator,
    ) -> None:
        """`factors` are the neighbouring factors of this node, `nodes` all other nodes."""
        self.g1: dict[str, None] = {}  # a dict keeps the order, so a seed gives one run
        self.g2: dict[str, None] = {}
        self.max1 = max1
        self.max2 = max2
        self._maximum_try = maximum_try
        self._neighbours = sorted(factors, key=lambda node: (-factors[node], node))
        self._nodes = dict.fromkeys(nodes)
        self._rng = rng
        self._tried = 0
        self._serial = 0
        self._requested: dict[str, int] = {}  # serial by node
        self._probed: tuple[str, int] | None = None

    @property
    def all(self) -> list[str]:
        return [*self.g1, *self.g2]

    @property
    def probing(self) -> bool:
        return self._probed is not None

    def select(self) -> list[Sent]:
        """Algorithm 1, from where it stopped."""
        sent: list[Sent] = []
        while self._room() and self._tried < len(self._neighbours) + self._maximum_try:
            node = self._next()
            self._tried += 1
            if node is None:
                break
            if node in self.g2:
                del self.g2[node]
                self.g1[node] = None
            elif node in self._nodes and not self._knows(node):
                self._requested[node] = self._new_serial()
                sent.append((node, PartnerRequest(self._requested[node])))
        return sent

    def refresh(self) -> list[Sent]:
        strangers = [node for node in self.g1 if node not in self._neighbours]
        ended = [self._end(node) for node in strangers]
        self._tried = 0
        return [*ended, *self.select()]

    def start_over(self) -> list[Sent]:
        """Of a node that was lost and is back: the others have no partner in it any more."""
        self.g1.clear()
        self.g2.clear()
        self._requested.clear()
        self._probed = None
        self._tried = 0
        return self.select()

    def requested(self, sender: str, request: PartnerRequest, least: float) -> list[Sent]:
        """`least`: the workload from which on a node that probes has clearly more than this one (Algorithm 2)."""
        unwelcome = request.probe is not None and request.probe <= least
        return [(sender, PartnerAnswer(request.serial, self._accepts(sender, unwelcome)))]

    def _accepts(self, sender: str, unwelcome: bool) -> bool:
        if sender in self._requested:
            del self._requested[sender]
            self.g1[sender] = None
        elif sender not in self.g1 and sender not in self.g2:
            if unwelcome or len(self.g2) >= self.max2:
                return False
            self.g2[sender] = None
        return True

    def answered(self, sender: str, answer: PartnerAnswer, workloads: Mapping[str, float]) -> list[Sent]:
        """`workloads` decide which partner makes room for one that was found by probing."""
        if self._probed == (sender, answer.serial):
            self._probed = None
            return self._found(sender, workloads) if answer.accepted else []
        if self._requested.get(sender) != answer.serial:
            return []  # settled already, by a request that came the other way
        del self._requested[sender]
        if answer.accepted:
            self.g1[sender] = None
        return self.select()

    def ended(self, sender: str) -> list[Sent]:
        self.g1.pop(sender, None)
        self.g2.pop(sender, None)
        return self.select()

    def probe(self, workload: float) -> list[Sent]:
        """Asks a random node that is no partner."""
        strangers = [node for node in self._nodes if not self._knows(node)]
        if not strangers or self.max1 == 0:
            return []
        self._probed = (self._any(strangers), self._new_serial())
        node, serial = self._probed
        return [(node, PartnerRequest(serial, workload))]

    def joined(self, node: str) -> None:
        self._nodes[node] = None

    def lost(self, node: str) -> list[Sent]:
        self._nodes.pop(node, None)
        self._requested.pop(node, None)
        if self._probed is not None and self._probed[0] == node:
            self._probed = None
        return self.ended(node)

    def _found(self, node: str, workloads: Mapping[str, float]) -> list[Sent]:
        """A probed node takes the place of the heaviest partner that this node had asked for."""
        if node in self.g1 or node in self.g2:
            return []
        ended: list[Sent] = []
        if not self._room():
            if not self.g1:
                return [(node, PartnerEnd())]
            ended.append(self._end(max(self.g1, key=lambda n: (workloads.get(n, 0.0), n))))
        self.g1[node] = None
        return ended

    def _next(self) -> str | None:
        if self._tried < len(self._neighbours):
            return self._neighbours[self._tried]
        known = {*self._neighbours, *self.g1, *self._requested}
        strangers = [node for node in self._nodes if node not in known]
        return self._any(strangers) if strangers else None

    def _any(self, nodes: list[str]) -> str:
        return nodes[int(self._rng.integers(len(nodes)))]

    def _room(self) -> bool:
        return len(self.g1) + len(self._requested) < self.max1

    def _knows(self, node: str) -> bool:
        probed = self._probed is not None and node == self._probed[0]
        return probed or node in self.g1 or node in self.g2 or node in self._requested

    def _end(self, node: str) -> Sent:
        del self.g1[node]
        self.g2.pop(node, None)
        return node, PartnerEnd()

    def _new_serial(self) -> int:
        self._serial += 1
        return self._serial
