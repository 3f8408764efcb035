"""One node's share of the balancing: it hears its own measurements and the other nodes' messages, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from towpath.policies.zhou.decision import Asked, Round, all_overloaded, load_request
from towpath.policies.zhou.holdings import HostedFragments
from towpath.policies.zhou.messages import (
    Coming,
    Handover,
    LoadRequest,
    Message,
    Moved,
    NodeWorkload,
    PartnerAnswer,
    PartnerEnd,
    PartnerRequest,
    size,
)
from towpath.policies.zhou.options import Options
from towpath.policies.zhou.partners import Partners, Sent
from towpath.policies.zhou.selection import ORDERS, select
from towpath.policies.zhou.workload import NodeLoad
from towpath.runtime import actors as moves
from towpath.runtime.actors import Measured, Move, MoveDone, MoveFailed, Note, PolicyInstruction, Send, Wake

ROUND = "round"
REFRESH = "refresh"


class NodeActor:
    def __init__(
        self, holdings: HostedFragments, load: NodeLoad, partners: Partners, options: Options, first_round: float
    ) -> None:
        """`first_round` is how long after the start the first round begins."""
        self.address = holdings.node
        self.holdings = holdings
        self.load = load
        self.partners = partners
        self._options = options
        self._first_round = first_round
        self._round = Round()
        self._workloads: dict[str, float] = {}  # what partners announced last
        self._probes = 0  # sent in this round

    def handle(self, event: moves.PolicyEvent) -> Sequence[PolicyInstruction]:
        before = set(self.partners.all)
        instructions = list(self._react(event))
        for node in (n for n in self.partners.all if n not in before):
            instructions.append(_send(node, NodeWorkload(self.load.rho)))
        return instructions

    def _react(self, event: moves.PolicyEvent) -> Iterable[PolicyInstruction]:
        match event:
            case moves.Started(at):
                yield from self._begin(at, self.partners.select())
            case moves.Woken(at, name):
                yield from self._begin_round(at) if name == ROUND else self._refresh(at)
            case Measured():
                yield from self._measured(event)
            case moves.Arrived(at, sender, message):
                yield from self._heard(at, sender, message)
            case MoveDone():
                yield from self._gave(event)
            case MoveFailed():
                yield from self._kept(event)
            case moves.NodeLost(_, node):
                self._forget(node)
                self.load.lost(node)
                yield from _all(self.partners.lost(node))
            case moves.NodeJoined(at, joined) if joined.name == self.address:
                self._workloads.clear()  # it was away: the others have forgotten it, and its alarms are gone
                self._round = Round()
                yield from self._begin(at, self.partners.start_over())
            case moves.NodeJoined(_, joined):
                self.partners.joined(joined.name)
            case _:
                assert_never(event)

    def _begin(self, at: float, requests: Iterable[Sent]) -> Iterable[PolicyInstruction]:
        yield Wake(at + self._first_round, ROUND)
        yield Wake(at + self._options.refresh, REFRESH)
        yield from _all(requests)

    # --- what time brings --------------------------------------------------------------------------------------------

    def _begin_round(self, at: float) -> Iterable[PolicyInstruction]:
        yield Wake(at + self._options.delta, ROUND)
        self._round.begin(self.load.rho)
        self._probes = 0
        known = self._partner_workloads()
        if (found := load_request(self.load.rho, known, self._options.kappa)) is not None:
            node, amount = found
            yield _send(node, LoadRequest(amount))
        if all_overloaded(self.load.rho, known, self._options.kappa):
            yield from self._probe()

    def _refresh(self, at: float) -> Iterable[PolicyInstruction]:
        yield Wake(at + self._options.refresh, REFRESH)
        yield from _all(self.partners.refresh())

    def _measured(self, event: Measured) -> Iterable[PolicyInstruction]:
        self.load.collect(event.statistics.nodes[self.address].load)
        self.holdings.loads.collect(event.statistics.operators)
        if (rho := self.load.news()) is not None:
            for node in self.partners.all:
                yield _send(node, NodeWorkload(rho))
        yield from self._serve(event.at)

    def _probe(self) -> Iterable[PolicyInstruction]:
        if self._probes < self._options.probe_limit and not self.partners.probing:
            self._probes += 1
            yield from _all(self.partners.probe(self.load.rho))

    # --- what others say ---------------------------------------------------------------------------------------------

    def _heard(self, at: float, sender: str, message: object) -> Iterable[PolicyInstruction]:
        match message:
            case PartnerRequest():
                yield from _all(self.partners.requested(sender, message, self._options.kappa * self.load.rho))
            case PartnerAnswer():
                probing = self.partners.probing
                yield from _all(self.partners.answered(sender, message, self._workloads))
                if probing and not self.partners.probing and not message.accepted:
                    yield from self._probe()
            case PartnerEnd():
                self._forget(sender)
                yield from _all(self.partners.ended(sender))
            case NodeWorkload(rho):
                self._workloads[sender] = rho
            case LoadRequest(amount):
                self._round.ask(Asked(sender, amount, at))
            case Coming(fragment, load):
                self.load.expect(fragment, sender, load)
            case Handover():
                self.holdings.take(message)
                self.load.came(message.card.fragment)
            case Moved():
                yield from _all(self.holdings.hear(message))
            case _:
                yield Note(f"{self.address} cannot read a {type(message).__name__} of {sender}")

    def _forget(self, node: str) -> None:
        self._workloads.pop(node, None)
        self._round.forget(node)

    def _partner_workloads(self) -> dict[str, float]:
        return {node: self._workloads[node] for node in self.partners.all if node in self._workloads}

    # --- giving fragments away ---------------------------------------------------------------------------------------

    def _serve(self, at: float) -> Iterable[PolicyInstruction]:
        """Requests wait for the end of a window, so that the larger of two that come close together is served first."""
        for request in self._round.expire(at - self._options.delta):
            yield Note(
                f"{self.address} gives {request.node} none of {request.amount:.3f}: "
                f"more than half of its load {self._round.workload:.3f} would have gone in this round"
            )
        for request in self._round.waiting():
            limit, order = self._round.left, ORDERS[self._options.selection]
            candidates = [c for c in self.holdings.candidates() if not self.load.is_leaving(c.fragment)]
            chosen = select(candidates, self.address, request.node, request.amount, limit, order)
            for candidate in chosen:
                self.load.leaves(candidate.fragment, candidate.load)
                yield _send(request.node, Coming(candidate.fragment, candidate.load))
                reason = f"{request.node} asked for {request.amount:.3f}"
                yield Move(candidate.fragment, self.address, request.node, reason)
            moved = sum(c.load for c in chosen)
            self._round.exported += moved
            if moved < request.amount and len(chosen) < sum(c.load > 0 for c in candidates):
                # Half of the load was the limit: the rest waits for the next round.
                self._round.ask(Asked(request.node, request.amount - moved, request.at))
                continue
            self._round.forget(request.node)
            if moved == 0:
                yield Note(f"{self.address} gives {request.node} none of {request.amount:.3f}: nothing here may move")

    def _gave(self, event: MoveDone) -> Iterable[PolicyInstruction]:
        if event.source != self.address or event.fragment not in self.holdings.cards:
            return
        self.load.left(event.fragment)
        yield from _all(self.holdings.give(event.fragment, event.target))

    def _kept(self, event: MoveFailed) -> Iterable[PolicyInstruction]:
        if event.source == self.address:
            self.load.stays(event.fragment)
            yield _send(event.target, Coming(event.fragment, 0.0))
            yield Note(f"{event.fragment} stays on {event.source}, did not go to {event.target}: {event.reason}")


def _send(node: str, message: Message) -> Send:
    return Send(node, message, size(message))


def _all(sent: Iterable[tuple[str, Message]]) -> list[PolicyInstruction]:
    return [_send(node, message) for node, message in sent]
