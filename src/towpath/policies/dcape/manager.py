"""The distribution manager: Algorithm 1 as an actor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from towpath.placement.problem import Placement, Problem
from towpath.policies.dcape.connections import Wiring, requests_for
from towpath.policies.dcape.decision import DecisionMaker
from towpath.policies.dcape.distribution import Distribution
from towpath.policies.dcape.known import Known, Limits, Suggestion
from towpath.policies.dcape.messages import (
    Configure,
    Configured,
    Done,
    Message,
    Refused,
    Report,
    Request,
    Requests,
    size,
)
from towpath.policies.dcape.monitor import Increments, Monitor, Row
from towpath.policies.dcape.mover import ANSWER, Mover
from towpath.policies.dcape.options import Options
from towpath.policies.dcape.post import Answer, Post
from towpath.policies.dcape.properties import Change, describe
from towpath.policies.dcape.reallocation import Bundles
from towpath.policies.dcape.tiers import Tier, aggregated
from towpath.runtime.moves import (
    Address,
    Arrived,
    Event,
    Instruction,
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    Note,
    Send,
    Started,
    Wake,
    Woken,
)


class Manager:
    def __init__(
        self, tier: Tier, parent: Address | None, problem: Problem, placement: Placement, options: Options
    ) -> None:
        self.address = tier.address
        self.distribution = Distribution(tier, parent, problem, placement)
        self._tier = tier
        self._parent = parent
        self._problem = problem
        self._options = options
        self._wiring = Wiring(problem)
        self._monitor = Monitor(describe(problem), options.history)
        self._decisions = DecisionMaker(options)
        self._post = Post()
        self._mover = Mover(self.address, self.distribution, self._wiring, self._post, options.patience)
        self._answered: set[Address] = set()  # who has confirmed the configuration
        self._before: dict[Address, float] = {}  # the cost of each processor when it was last given something
        self._upwards = Increments(options.tolerance)
        self._unreported: dict[tuple[str, str, str], Change] = {}

    def handle(self, event: Event) -> Sequence[Instruction]:
        match event:
            case Started(at):
                return self._started(at)
            case Arrived(at, sender, message):
                return self._arrived(at, sender, message)
            case Woken(at, name):
                return self._woken(at, name)
            case MoveDone():
                return self._moved(event)
            case MoveFailed():
                return self._mover.failed(event)
            case NodeLost(at, node):
                return self._lost(at, node)
            case NodeJoined(_, node):
                return self._joined(node.name)
            case _:
                return []

    def reported(self) -> list[Row]:
        """What the agents below have reported."""
        agents = {below for below in self._tier.below if isinstance(below, str)}
        return [r for r in self._monitor.history if r[2] in agents or (agents and r[1] == "operator")]

    # --- before anything flows ---

    def _started(self, at: float) -> list[Instruction]:
        entries = sum(len(plan) for plan in self._monitor.descriptions.plans.values())
        entries += len(self._monitor.descriptions.operators)
        sent: list[Instruction] = [self._send(to, Configure(entries)) for to in self.distribution.alive]
        alarms = [Wake(at + self._options.patience, "configured"), Wake(at + self._options.every, "decide")]
        if self._parent is not None:
            alarms.append(Wake(at + self._options.window, "report"))
        return sent + alarms

    def _configured(self, at: float) -> list[Instruction]:
        """Those that did not answer are not used; the others get their connections (Algorithm 4)."""
        silent = [p for p in self.distribution.alive if p not in self._answered]
        found: list[Instruction] = [
            Note(f"{p} is not used: it did not answer within {self._options.patience:g} s") for p in silent
        ]
        for processor in silent:
            del self.distribution.alive[processor]
        for processor in (below for below in self._tier.below if below in self.distribution.alive):
            requests = requests_for(self._wiring, self.distribution.table, str(processor))
            if requests:
                found.append(self._send(str(processor), Requests(self.address, 0, requests)))
        return found + self._rescue(at)

    # --- while data flows ---

    def _woken(self, at: float, name: str) -> list[Instruction]:
        match name:
            case "configured":
                return self._configured(at)
            case "decide":
                return [*self._decide(at), Wake(at + self._options.every, "decide")]
            case "report":
                return [*self._report(), Wake(at + self._options.window, "report")]
            case _:
                return self._mover.alarm(at, int(name.removeprefix(ANSWER)))

    def _arrived(self, at: float, sender: Address, message: object) -> list[Instruction]:
        match message:
            case Configure():
                return [self._send(sender, Configured())]
            case Configured():
                self._answered.add(sender)
                return []
            case Report(changes):
                self._take(at, sender, changes)
                return []
            case Requests():
                return self._asked(sender, message)
            case Done() | Refused():
                answer = self._post.answered(sender, message)
                return [] if answer is None else self._all_answered(at, answer)
            case _:
                return []

    def _take(self, at: float, sender: Address, changes: tuple[Change, ...]) -> None:
        """Of an operator only the word of the processor that has it counts: the old one may still be draining it."""
        table, home = self.distribution.table, self._problem.home
        valid = [c for c in changes if c.kind != "operator" or table.get(home[c.subject]) == sender]
        self._monitor.take(at, valid)
        self._unreported |= {(c.kind, c.subject, c.property): c for c in valid if c.kind == "operator"}

    def _report(self) -> list[Instruction]:
        assert self._parent is not None
        own = aggregated(self.address, tuple(self.distribution.alive), self._monitor.descriptions)
        changes = (*self._upwards.of(own), *self._unreported.values())
        self._unreported = {}
        return [self._send(self._parent, Report(changes))] if changes else []

    def _known(self) -> Known:
        distribution = self.distribution
        return Known(
            self._problem,
            self._wiring,
            dict(distribution.table),
            self._monitor.descriptions,
            tuple(distribution.alive),
        )

    def _decide(self, at: float) -> list[Instruction]:
        if held := self._mover.held:
            return [Note(f"no decision: {', '.join(sorted(held))} still on the way")]
        rescue = self._rescue(at)
        if rescue:
            return rescue
        known = self._known()
        # A distribution has had `every` seconds to settle when its processors are first looked at.
        self._before = {**self._decisions.cost(known).processors, **self._before}
        decided = self._decisions.decide(known, self._before, frozenset(self.distribution.promised))
        return [*(Note(text) for text in decided.refused), *self._mover.start(at, decided.moves)]

    def _moved(self, event: MoveDone) -> list[Instruction]:
        found = self._mover.done(event)
        if found:
            nodes = self._tier.nodes()
            for node in (event.source, event.target):
                self._before.pop(nodes.get(node, node), None)
        return found

    def _lost(self, at: float, node: str) -> list[Instruction]:
        if node not in self.distribution.alive:
            return []
        del self.distribution.alive[node]
        self._before.pop(node, None)
        return self._rescue(at)

    def _joined(self, node: str) -> list[Instruction]:
        if node in self._tier.processors():
            self.distribution.alive[node] = None
        return []

    def _rescue(self, at: float) -> list[Instruction]:
        """What sits on a processor that is gone goes where the fewest operators are; its state is lost."""
        distribution, held = self.distribution, self._mover.held
        stranded = [f for f, p in distribution.table.items() if p not in distribution.alive and f not in held]
        target = distribution.fewest(Limits(self._options).processors(self._known()))
        if target is None:
            return [Note(f"{', '.join(stranded)} cannot run: no processor is left")] if stranded else []
        moves = [Suggestion(f, distribution.table[f], target, f"{distribution.table[f]} is gone") for f in stranded]
        return self._mover.start(at, moves)

    # --- between tiers ---

    def _asked(self, sender: Address, message: Requests) -> list[Instruction]:
        """As a processor does, for the manager above; or on behalf of one below that does not know who has what."""
        reason = self._why_not(message)
        if reason:
            return [self._send(sender, Refused(message.origin, message.number, reason))]
        bundles: Bundles = {}
        for request in message.requests:
            if request.verb == "prepare":
                best = self.distribution.best_for(request.fragment, self._wiring)
                self.distribution.arriving[request.fragment] = best
            receiver = self.distribution.route(request.fragment)
            if receiver is not None and receiver != sender:
                bundles.setdefault(receiver, []).append(self._resolved(request))
            if sender == self._parent:
                self.distribution.took(request)
        if not bundles:
            return [self._send(sender, Done(message.origin, message.number))]
        return list(self._post.send((message.origin, message.number), sender, bundles))

    def _resolved(self, request: Request) -> Request:
        """From above, all that this manager has seems to be in one place."""
        if request.host != self.address:
            return request
        return replace(request, host=self.distribution.route(request.peer) or "")

    def _why_not(self, message: Requests) -> str:
        held = self._mover.held
        for request in message.requests:
            if request.verb == "release" and request.fragment in held:
                return f"{self.address} is moving {request.fragment} itself"
            if request.verb == "prepare" and not self.distribution.alive:
                return f"{self.address} has no processor left"
        return ""

    def _all_answered(self, at: float, answer: Answer) -> list[Instruction]:
        if answer.reply_to == self.address:
            return self._mover.answered(at, answer)
        if answer.reasons:
            return [self._send(answer.reply_to, Refused(*answer.key, "; ".join(answer.reasons)))]
        host = next(filter(None, answer.hosts.values()), "")
        return [self._send(answer.reply_to, Done(*answer.key, host))]

    def _send(self, to: Address, message: Message) -> Send:
        return Send(to, message, size(message))
