"""The distribution manager: Algorithm 1 as an actor."""

from __future__ import annotations

from collections.abc import Sequence

from towpath.placement.problem import Placement, Problem
from towpath.policies.dcape.connections import Wiring, requests_for
from towpath.policies.dcape.decision import DecisionMaker
from towpath.policies.dcape.distribution import Distribution, placed
from towpath.policies.dcape.known import Known, ProcessorLimits, Suggestion
from towpath.policies.dcape.messages import (
    Configure,
    Configured,
    LoadReport,
    Message,
    Refused,
    RequestsDone,
    WorkRequests,
    size,
)
from towpath.policies.dcape.monitor import LoadMonitor, Row
from towpath.policies.dcape.mover import ANSWER, Mover
from towpath.policies.dcape.options import Options
from towpath.policies.dcape.post import Answer, Post
from towpath.policies.dcape.properties import Descriptions, PropertyChange, describe
from towpath.policies.dcape.relay import Relay
from towpath.policies.dcape.tiers import Tier, aggregated
from towpath.policies.dcape.upwards import Upwards
from towpath.runtime.actors import (
    Address,
    Arrived,
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    Note,
    PolicyEvent,
    PolicyInstruction,
    Send,
    Started,
    Wake,
    Woken,
)


class Manager:
    def __init__(
        self,
        tier: Tier,
        parent: Address | None,
        problem: Problem,
        placement: Placement,
        options: Options,
        turn: float = 0.0,
    ) -> None:
        """`turn`: after which share of the time between two decisions it is its turn, so that no two decide at once."""
        self.address = tier.address
        self.distribution = Distribution(tier, parent, problem, placement)
        self._tier = tier
        self._parent = parent
        self._problem = problem
        self._options = options
        self._turn = turn
        self._placed = placed(placement)
        self._wiring = Wiring(problem)
        self._monitor = LoadMonitor(_described(tier, problem), options.history)
        self._decisions = DecisionMaker(options)
        self._post = Post()
        self._mover = Mover(self.address, self.distribution, self._wiring, self._post, options.patience)
        self._answered: set[Address] = set()  # who has confirmed the configuration
        self._before: dict[Address, float] = {}  # the cost of each processor when it was last given something
        self._upwards = Upwards(self.address, self._decisions.model, options)
        self._relay = Relay(
            self.address,
            parent,
            self.distribution,
            self._wiring,
            self._post,
            lambda: self._mover.held,
            lambda: ProcessorLimits(options).processors(self._known()),
        )

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
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
        return [r for r in self._monitor.history if r[1] == "operator" or r[2] in self.distribution.nodes]

    # --- before anything flows ---

    def _started(self, at: float) -> list[PolicyInstruction]:
        entries = sum(len(plan) for plan in self._monitor.descriptions.plans.values())
        entries += len(self._monitor.descriptions.operators)
        sent: list[PolicyInstruction] = [self._send(to, Configure(entries)) for to in self.distribution.alive]
        first = at + self._options.every * (1 + self._turn)
        alarms = [Wake(at + self._options.patience, "configured"), Wake(first, "decide")]
        if self._parent is not None:
            alarms.append(Wake(at + self._options.window, "report"))
        return sent + alarms

    def _configured(self, at: float) -> list[PolicyInstruction]:
        """Those that did not answer are not used; the others get their connections (Algorithm 4)."""
        silent = [p for p in self.distribution.alive if p not in self._answered]
        found: list[PolicyInstruction] = [
            Note(f"{p} is not used: it did not answer within {self._options.patience:g} s") for p in silent
        ]
        for processor in silent:
            del self.distribution.alive[processor]
        for node in (processor for processor in self.distribution.alive if processor in self.distribution.nodes):
            requests = requests_for(self._wiring, self._placed, node)
            if requests:
                found.append(self._send(node, WorkRequests(self.address, 0, requests)))
        return found + self._rescue(at)

    # --- while data flows ---

    def _woken(self, at: float, name: str) -> list[PolicyInstruction]:
        match name:
            case "configured":
                return self._configured(at)
            case "decide":
                return [*self._decide(at), Wake(at + self._options.every, "decide")]
            case "report":
                return [*self._report(), Wake(at + self._options.window, "report")]
            case _:
                return self._mover.alarm(at, int(name.removeprefix(ANSWER)))

    def _arrived(self, at: float, sender: Address, message: object) -> list[PolicyInstruction]:
        match message:
            case Configure():
                return [self._send(sender, Configured())]
            case Configured():
                self._answered.add(sender)
                return []
            case LoadReport(changes):
                return self._take(at, sender, changes)
            case WorkRequests():
                return self._asked(sender, message)
            case RequestsDone() | Refused():
                answer = self._post.answered(sender, message)
                return [] if answer is None else self._all_answered(at, answer)
            case _:
                return []

    def _take(self, at: float, sender: Address, changes: tuple[PropertyChange, ...]) -> list[PolicyInstruction]:
        valid = [c for c in changes if self._may_say(sender, c)]
        self._monitor.take(at, valid)
        left = [c.value for c in valid if (c.kind, c.property) == ("processor", "cpu")]
        if left and left[0] == 0:
            return self._lost(at, sender)  # a manager whose nodes are all gone
        return self._joined(sender) if left else []

    def _may_say(self, sender: Address, change: PropertyChange) -> bool:
        """Of a fragment only the word of the processor that has it counts: the old one may still be draining it."""
        if change.kind == "processor":
            return change.subject == sender
        fragment = self._problem.home[change.subject] if change.kind == "operator" else change.subject
        return self.distribution.table.get(fragment) == sender

    def _report(self) -> list[PolicyInstruction]:
        assert self._parent is not None
        changes = self._upwards.report(self._known(), self._held())
        return [self._send(self._parent, LoadReport(changes))] if changes else []

    def _known(self) -> Known:
        distribution, seen = self.distribution, self._monitor.descriptions
        managers = [below for below in self._tier.below if isinstance(below, Tier)]
        addresses = {manager.address for manager in managers}
        return Known(
            self._problem,
            self._wiring,
            dict(distribution.table),
            seen,
            tuple(distribution.alive),
            {f: seen.fragment(f, "cost") for f, p in distribution.table.items() if p in addresses},
            {address: seen.processor(address, "others") for address in addresses},
            {manager.address: tuple(manager.nodes()) for manager in managers},
        )

    def _held(self) -> frozenset[str]:
        """What this manager moves, and what others count on."""
        return self._mover.held | frozenset(self.distribution.kept)

    def _decide(self, at: float) -> list[PolicyInstruction]:
        if held := self._mover.held:
            return [Note(f"no decision: {', '.join(sorted(held))} still on the way")]
        rescue = self._rescue(at)
        if rescue:
            return rescue
        known = self._known()
        # A distribution has had `every` seconds to settle when its processors are first looked at.
        self._before = {**self._decisions.cost(known).processors, **self._before}
        decided = self._decisions.decide(known, self._before, self._held())
        return [*(Note(text) for text in decided.refused), *self._mover.start(at, decided.moves)]

    def _moved(self, event: MoveDone) -> list[PolicyInstruction]:
        found = self._mover.done(event)
        if found:
            nodes = self._tier.nodes()
            for node in (event.source, event.target):
                self._before.pop(nodes.get(node, node), None)
        return found

    def _lost(self, at: float, node: str) -> list[PolicyInstruction]:
        if node not in self.distribution.alive:
            return []
        del self.distribution.alive[node]
        self._before.pop(node, None)
        return [*self._mover.lost(at, node), *self._rescue(at)]

    def _joined(self, node: str) -> list[PolicyInstruction]:
        if node in self._tier.processors():
            self.distribution.alive[node] = None
        return []

    def _rescue(self, at: float) -> list[PolicyInstruction]:
        """What sits on a processor that is gone goes where the fewest operators are; its state is lost."""
        distribution, held = self.distribution, self._mover.held
        stranded = [f for f, p in distribution.table.items() if p not in distribution.alive and f not in held]
        target = distribution.fewest(ProcessorLimits(self._options).processors(self._known()))
        if target is None:
            others_help = self._parent is not None and not distribution.alive
            text = f"{', '.join(stranded)} cannot run: no processor is left"
            return [Note(text)] if stranded and not others_help else []
        moves = [Suggestion(f, distribution.table[f], target, f"{distribution.table[f]} is gone") for f in stranded]
        return self._mover.start(at, moves)

    # --- between tiers ---

    def _asked(self, sender: Address, message: WorkRequests) -> list[PolicyInstruction]:
        if sender == self._parent:
            for request in message.requests:
                self._upwards.took(request)
        return list(self._relay.asked(sender, message))

    def _all_answered(self, at: float, answer: Answer) -> list[PolicyInstruction]:
        own = answer.reply_to == self.address
        return self._mover.answered(at, answer) if own else [self._relay.answered(answer)]

    def _send(self, to: Address, message: Message) -> Send:
        return Send(to, message, size(message))


def _described(tier: Tier, problem: Problem) -> Descriptions:
    """With managers below as what their nodes are together, until they report."""
    found = describe(problem)
    for manager in (below for below in tier.below if isinstance(below, Tier)):
        for change in aggregated(manager.address, tuple(manager.nodes()), found):
            found.apply(change)
    return found
