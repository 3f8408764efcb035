"""The local placement optimiser of one node (section 3.2): it hears its measurements and messages, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from towpath.placement.cluster import Node
from towpath.policies.sbon import directory
from towpath.policies.sbon.evaluation import Evaluation, Mapped
from towpath.policies.sbon.holdings import Body, Holdings
from towpath.policies.sbon.messages import (
    Candidates,
    Denied,
    Done,
    FragmentComing,
    Granted,
    Inquiry,
    Message,
    Ping,
    Pong,
    Publish,
    Standing,
    size,
)
from towpath.policies.sbon.options import Options
from towpath.policies.sbon.position import LatencyPosition
from towpath.runtime import actors as seam
from towpath.runtime.actors import Measured, Move, MoveDone, MoveFailed, Note, PolicyInstruction, Send, Wake

SAMPLE = "sample"
EVALUATE = "evaluate"


class LocalOptimiser:
    def __init__(
        self,
        node: Node,
        nodes: dict[str, Node],
        holdings: Holdings,
        latency: LatencyPosition,
        options: Options,
        phase: float,
    ) -> None:
        """`phase` is the share of a period after which this node begins, so that not all of them begin at once."""
        self.address = node.name
        self.holdings = holdings
        self.latency = latency
        self._node = node
        self._nodes = nodes
        self._options = options
        self._phase = phase
        self._queue: list[Body] = []  # what is left to be evaluated in this round
        self._evaluation: Evaluation | None = None
        self._evaluations = 0
        self._mapped: dict[str, Mapped] = {}  # by body

    def handle(self, event: seam.PolicyEvent) -> Sequence[PolicyInstruction]:
        return list(self._react(event))

    def _react(self, event: seam.PolicyEvent) -> Iterable[PolicyInstruction]:
        match event:
            case seam.Started(at):
                yield from self._begin(at)
            case seam.Woken(at, name):
                yield from self._sample(at) if name == SAMPLE else self._begin_round(at)
            case Measured(_, statistics):
                self.holdings.measured(statistics)
                yield _send(directory.ADDRESS, Publish(self.latency.position, self.holdings.fragments))
            case seam.Arrived(at, sender, message):
                yield from self._heard(at, sender, message)
            case MoveDone(_, fragment, _, target):
                self.holdings.gave(fragment)
                yield from self._move_ended(fragment, target)
            case MoveFailed(_, fragment, source, target, reason):
                yield Note(f"{fragment} stays on {source}, did not go to {target}: {reason}")
                yield _send(target, FragmentComing(fragment, 0.0))
                yield from self._move_ended(fragment, None)
            case seam.NodeLost(_, node):
                self.latency.lost(node)
                self.holdings.lost(node)
                if self._evaluation is not None:
                    self._evaluation.lost(node)
                    yield from self._map(self._evaluation)
            case seam.NodeJoined(at, joined) if joined.name == self.address:
                self._queue, self._evaluation = [], None  # it was away: its claims and alarms are gone
                yield from self._begin(at)
            case seam.NodeJoined(_, joined):
                self.latency.joined(joined.name)
            case _:
                assert_never(event)

    def _begin(self, at: float) -> Iterable[PolicyInstruction]:
        options = self._options
        yield Wake(at + self._phase * options.sample, SAMPLE)
        yield Wake(at + options.settle + self._phase * options.every, EVALUATE)

    def _sample(self, at: float) -> Iterable[PolicyInstruction]:
        yield Wake(at + self._options.sample, SAMPLE)
        if (ping := self.latency.ping(at)) is not None:
            yield _send(*ping)

    # --- evaluating --------------------------------------------------------------------------------------------------

    def _begin_round(self, at: float) -> Iterable[PolicyInstruction]:
        yield Wake(at + self._options.every, EVALUATE)
        if self._evaluation is not None and not self._evaluation.moving:
            yield Note(f"{self._evaluation.body.name} is given up for now: an answer is missing")
            yield from self._end(self._evaluation)
        self._queue = self.holdings.bodies()
        yield from self._next()

    def _next(self) -> Iterable[PolicyInstruction]:
        if self._evaluation is None and self._queue:
            self._evaluations += 1
            body = self._queue.pop(0)
            self._evaluation = Evaluation(
                self._evaluations, self._node, self._nodes, body, self.holdings, self._options
            )
            yield _send(directory.ADDRESS, self._evaluation.claim())

    def _end(self, evaluation: Evaluation) -> Iterable[PolicyInstruction]:
        rests = {card.fragment: evaluation.target for card in evaluation.body.cards if evaluation.target}
        yield _send(directory.ADDRESS, Done(evaluation.number, rests, evaluation.moved))
        self._evaluation = None
        yield from self._next()

    def _heard(self, at: float, sender: str, message: object) -> Iterable[PolicyInstruction]:
        match message:
            case Ping():
                yield _send(sender, self.latency.answer(message))
            case Pong():
                self.latency.measured(sender, message, at)
            case Inquiry(number, signature):
                runs = self.holdings.runs(signature)
                yield _send(sender, Standing(number, self.holdings.load, self.holdings.memory, runs))
            case FragmentComing(fragment, work):
                self.holdings.expect(fragment, sender, work)
            case Granted() | Denied() | Candidates() | Standing():
                evaluation = self._evaluation
                if evaluation is not None and evaluation.number == message.evaluation:
                    yield from self._answered(evaluation, sender, message)
            case _:
                yield Note(f"{self.address} cannot read a {type(message).__name__} of {sender}")

    def _answered(
        self, evaluation: Evaluation, sender: str, message: Granted | Denied | Candidates | Standing
    ) -> Iterable[PolicyInstruction]:
        match message:
            case Denied():
                yield Note(f"{evaluation.body.name} waits: another node deals with its query")
                self._evaluation = None
                yield from self._next()
            case Granted():
                here = self.latency.position
                wanted = evaluation.granted(message, here, self._mapped.get(evaluation.body.name))
                if wanted is None:
                    yield from self._end(evaluation)
                else:
                    self._mapped[evaluation.body.name] = Mapped(evaluation.target, here, self.holdings.load)
                    yield _send(directory.ADDRESS, wanted)
            case Candidates():
                for node in evaluation.found(message):
                    yield _send(node, Inquiry(evaluation.number, evaluation.body.signature))
                yield from self._map(evaluation)
            case Standing():
                evaluation.standing(sender, message)
                yield from self._map(evaluation)

    def _map(self, evaluation: Evaluation) -> Iterable[PolicyInstruction]:
        """When all nodes that were contacted have answered."""
        if not evaluation.complete or evaluation.moving:
            return
        choice = evaluation.choose(self.latency.position)
        if choice is None and (wider := evaluation.wider()) is not None:
            yield _send(directory.ADDRESS, wider)
        elif choice is None or choice.node is None:
            yield Note(f"{evaluation.body.name} stays: {'no node has room' if choice is None else choice.reason}")
            yield from self._end(evaluation)
        else:
            evaluation.moving = {card.fragment: choice.node for card in evaluation.body.cards}
            # Equal operators work once.
            yield _send(choice.node, FragmentComing(evaluation.body.name, self.holdings.work(evaluation.body)))
            for fragment, node in evaluation.moving.items():
                yield Move(fragment, self.address, node, choice.reason)

    def _move_ended(self, fragment: str, node: str | None) -> Iterable[PolicyInstruction]:
        evaluation = self._evaluation
        if evaluation is None or fragment not in evaluation.moving:
            return
        del evaluation.moving[fragment]
        if node is not None:
            evaluation.moved[fragment] = node
        else:
            self._mapped.pop(evaluation.body.name, None)  # it is mapped again, although nothing has moved
        if not evaluation.moving:
            yield from self._end(evaluation)


def _send(to: str, message: Message) -> Send:
    return Send(to, message, size(message))
