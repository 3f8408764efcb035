"""Bundles of requests on their way through the tiers: each is answered when all who got a part have answered."""

from __future__ import annotations

from dataclasses import dataclass, field

from towpath.policies.dcape.messages import Refused, RequestsDone, WorkRequests, size
from towpath.policies.dcape.reallocation import Bundles
from towpath.runtime.actors import Address, Send

Key = tuple[Address, int]  # who first sent it, and its number
Hosts = dict[Address, dict[str, str]]  # by who answered: the nodes of the fragments that it was asked about


@dataclass
class _Waiting:
    reply_to: Address
    missing: set[Address]
    hosts: Hosts = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """All have answered."""

    key: Key
    reply_to: Address
    hosts: Hosts
    reasons: tuple[str, ...]


class Post:
    def __init__(self) -> None:
        self._waiting: dict[Key, _Waiting] = {}

    def send(self, key: Key, reply_to: Address, bundles: Bundles, hosts: Hosts | None = None) -> list[Send]:
        """`hosts`: what is known without asking."""
        self._waiting[key] = _Waiting(reply_to, set(bundles), hosts or {})
        sent = []
        for receiver, requests in bundles.items():
            message = WorkRequests(*key, tuple(requests))
            sent.append(Send(receiver, message, size(message)))
        return sent

    def answered(self, sender: Address, message: RequestsDone | Refused) -> Answer | None:
        key = (message.origin, message.number)
        waiting = self._waiting.get(key)
        if waiting is None:  # it was given up meanwhile
            return None
        waiting.missing.discard(sender)
        if isinstance(message, Refused):
            waiting.reasons.append(message.reason)
        else:
            waiting.hosts[sender] = dict(message.hosts)
        if waiting.missing:
            return None
        del self._waiting[key]
        return Answer(key, waiting.reply_to, waiting.hosts, tuple(waiting.reasons))

    def give_up(self, key: Key) -> list[Address]:
        """Those who have not answered."""
        waiting = self._waiting.pop(key, None)
        return sorted(waiting.missing) if waiting else []
