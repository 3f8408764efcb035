"""Carries suggestions out, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from towpath.policies.dcape.connections import Wiring
from towpath.policies.dcape.distribution import Distribution
from towpath.policies.dcape.known import Suggestion
from towpath.policies.dcape.post import Answer, Post
from towpath.policies.dcape.reallocation import Bundles, Reallocation
from towpath.runtime.actors import Address, MoveDone, MoveFailed, Note, PolicyInstruction, Wake

ANSWER = "answer "  # the name of the alarm for a bundle, before its number


class Mover:
    def __init__(
        self, address: Address, distribution: Distribution, wiring: Wiring, post: Post, patience: float
    ) -> None:
        self._address = address
        self._distribution = distribution
        self._wiring = wiring
        self._post = post
        self._patience = patience
        self._queue: deque[Suggestion] = deque()
        self._current: Reallocation | None = None
        self._number = 0

    @property
    def held(self) -> frozenset[str]:
        """Fragments that are being moved or wait for it."""
        current = [self._current.wanted] if self._current else []
        return frozenset(s.fragment for s in (*current, *self._queue))

    def start(self, at: float, suggestions: Iterable[Suggestion]) -> list[PolicyInstruction]:
        self._queue.extend(suggestions)
        return [] if self._current else self._next(at)

    def answered(self, at: float, answer: Answer) -> list[PolicyInstruction]:
        current = self._current
        if current is None or answer.key != (self._address, self._number) or current.state == "moving":
            return []
        if answer.reasons:
            return self._abort(at, "; ".join(answer.reasons))
        if current.state == "preparing":
            current.prepared(answer.hosts)
            bundles = current.connect(self._distribution.route)
            if bundles:
                return self._send(at, bundles)
        return [current.move()]

    def alarm(self, at: float, number: int) -> list[PolicyInstruction]:
        """The time for the answers to a bundle is over."""
        silent = self._post.give_up((self._address, number))
        if not silent or number != self._number or self._current is None or self._current.state == "moving":
            return []
        return self._abort(at, f"{', '.join(silent)} did not answer within {self._patience:g} s")

    def lost(self, at: float, processor: Address) -> list[PolicyInstruction]:
        """It would not answer: what was to go there or to leave it is for its manager to decide anew."""
        self._queue = deque(s for s in self._queue if processor not in (s.source, s.target))
        current = self._current
        if (
            current is None
            or current.state == "moving"
            or processor not in (current.wanted.source, current.wanted.target)
        ):
            return []
        return self._abort(at, f"{processor} is gone")

    def done(self, event: MoveDone) -> list[PolicyInstruction]:
        current = self._moving(event)
        if current is None:
            return []
        self._distribution.table[event.fragment] = current.wanted.target
        return [*self._settle(event.at, current, done=True), *self._next(event.at)]

    def failed(self, event: MoveFailed) -> list[PolicyInstruction]:
        return self._abort(event.at, event.reason) if self._moving(event) else []

    def _moving(self, event: MoveDone | MoveFailed) -> Reallocation | None:
        current = self._current
        own = current is not None and current.state == "moving" and current.wanted.fragment == event.fragment
        return current if own else None

    def _next(self, at: float) -> list[PolicyInstruction]:
        self._current = None
        if not self._queue:
            return []
        wanted = self._queue.popleft()
        self._current = Reallocation(wanted, self._wiring.ends[wanted.fragment])
        distribution = self._distribution
        alive = distribution.reaches(wanted.source)
        return self._send(at, self._current.prepare(alive, distribution.route, distribution.nodes))

    def _abort(self, at: float, reason: str) -> list[PolicyInstruction]:
        assert self._current is not None
        wanted = self._current.wanted
        note = Note(f"{wanted.fragment} stays on {wanted.source} instead of going to {wanted.target}: {reason}")
        return [note, *self._settle(at, self._current, done=False), *self._next(at)]

    def _settle(self, at: float, current: Reallocation, done: bool) -> list[PolicyInstruction]:
        bundles = current.settle(self._distribution.route, done)
        return self._send(at, {to: requests for to, requests in bundles.items() if self._distribution.reaches(to)})

    def _send(self, at: float, bundles: Bundles) -> list[PolicyInstruction]:
        self._number += 1
        alarm = Wake(at + self._patience, f"{ANSWER}{self._number}")
        return [*self._post.send((self._address, self._number), self._address, bundles), alarm]
