"""Requests between tiers: a manager acts as a processor for the one above it, and passes on what is about others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from towpath.policies.dcape.connections import Wiring
from towpath.policies.dcape.distribution import Distribution
from towpath.policies.dcape.messages import Refused, RequestsDone, WorkRequest, WorkRequests, size
from towpath.policies.dcape.post import Answer, Post
from towpath.policies.dcape.reallocation import Bundles
from towpath.runtime.actors import Address, Send


@dataclass(frozen=True)
class Relay:
    address: Address
    parent: Address | None
    distribution: Distribution
    wiring: Wiring
    post: Post
    moving: Callable[[], Collection[str]]  # fragments that this manager moves itself
    eligible: Callable[[], list[Address]]  # processors that may be given something

    def asked(self, sender: Address, message: WorkRequests) -> list[Send]:
        reason = next(filter(None, (self._why_not(message.origin, request) for request in message.requests)), "")
        if reason:
            return [_sent(sender, Refused(message.origin, message.number, reason))]
        bundles: Bundles = {}
        known: dict[str, str] = {}
        for request in message.requests:
            if request.verb == "prepare":
                best = self.distribution.best_for(request.fragment, self.wiring, self.eligible())
                self.distribution.arriving[request.fragment] = best
            if (host := self._known(request)) is not None:
                known[request.fragment] = host
            elif (receiver := self.distribution.route(request.fragment)) not in (None, sender):
                bundles.setdefault(str(receiver), []).append(request)
            if sender == self.parent:
                self.distribution.took(message.origin, request)
        if not bundles:
            return [_sent(sender, RequestsDone(message.origin, message.number, tuple(known.items())))]
        return self.post.send((message.origin, message.number), sender, bundles, {self.address: known})

    def answered(self, answer: Answer) -> Send:
        """To who asked, when all have answered who got a part of it."""
        if answer.reasons:
            return _sent(answer.reply_to, Refused(*answer.key, "; ".join(answer.reasons)))
        hosts = {fragment: host for found in answer.hosts.values() for fragment, host in found.items()}
        return _sent(answer.reply_to, RequestsDone(*answer.key, tuple(hosts.items())))

    def _known(self, request: WorkRequest) -> str | None:
        """Where a fragment is, if nobody has to be asked: it is held, or its node is dead."""
        at = self.distribution.table.get(request.fragment)
        if request.verb == "hold":
            return at if at in self.distribution.nodes else None
        return at if request.verb == "release" and at is not None and not self.distribution.reaches(at) else None

    def _why_not(self, origin: Address, request: WorkRequest) -> str:
        fragment = request.fragment
        if request.verb == "prepare" and not self.eligible():
            return f"{self.address} has no processor for {fragment}"
        if request.verb not in ("release", "hold"):
            return ""
        if fragment in self.moving():
            return f"{self.address} is moving {fragment} itself"
        rival = self.distribution.rival(origin, request)
        return f"{self.address} keeps {fragment} for {rival}" if rival else ""


def _sent(to: Address, message: RequestsDone | Refused) -> Send:
    return Send(to, message, size(message))
