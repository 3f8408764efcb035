"""The control loop: measures a running job, lets the actors of a policy decide, and carries their moves out.

monitor (measures.py) -> analyse (situation.py) -> plan (a policy, driven by driver.py) -> execute (the engine's moves)

A policy decides about the fragments that there were when it was started. It is started again, as soon as nothing is on
its way, when queries have come or gone, when somebody else has moved something, and when a node has come that it does
not know. That a node it knows is lost or drained, or back, its actors are notified of; a policy that cannot act on that
(`Actors.take_nodes`) is started again. What was measured stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from towpath.control.act.elastic import Elastic
from towpath.control.act.engine import Engine
from towpath.control.decide.admission import Room, refuse_without_room
from towpath.control.decide.controller import Submission
from towpath.control.decide.limits import Limits, Restraint
from towpath.control.decide.tiers import Tiers
from towpath.control.observe.measures import Measures
from towpath.control.observe.sampling import emitted
from towpath.control.observe.situation import Situation
from towpath.control.observe.topology import CONTROLLER, Topology
from towpath.control.state.fence import MoveStep
from towpath.control.state.history import EventKind
from towpath.control.state.records import FragmentStatus
from towpath.errors import AdmissionRefused, MoveRefused
from towpath.placement.cluster import Property
from towpath.placement.problem import Placement, Problem
from towpath.problems.dump import dump
from towpath.runtime import actors as seam
from towpath.runtime.actors import Actors, Address
from towpath.runtime.carriers import BatchDone, CarrierEvent
from towpath.runtime.driver import Driver, InProcess, PolledClock
from towpath.schema import Catalog
from towpath.store import durable
from towpath.store.layout import Store

log = logging.getLogger(__name__)

StartPolicy = Callable[[Problem, Placement], Actors]  # starts a policy

SAVE_EVERY_S = 30.0  # what was measured, for `towpath what-if`
ADVICE_ONLY = "advice only: nothing is moved"


@dataclass(frozen=True)
class LoopSettings:
    every_s: float  # how often is measured
    renew_s: float  # how long a policy decides at least before queries that came or went have it started again
    limits: Limits
    advise: bool = False  # say what would be done, and do nothing
    room: Room | None = None  # None: every query is taken in
    change_carriers: bool = True  # fragments change their kind of carrier by what it costs


@dataclass(frozen=True)
class _UnderWay:
    address: Address  # who asked
    move: seam.Move
    begun: float


class Loop:
    """Is called with every poll of the engine; all times are seconds since its start."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        catalog: Catalog,
        cores: Mapping[str, int],
        start: StartPolicy,
        settings: LoopSettings,
        elastic: Elastic | None = None,
        properties: Callable[[str], Mapping[str, Property]] = lambda node: {},
        topology: Topology | None = None,
    ) -> None:
        self._engine = engine
        self._store = store
        self._catalog = catalog
        self._cores = dict(cores)
        self._elastic = elastic
        self._properties = properties
        self.topology = topology or Topology()
        self._start = start
        self._settings = settings
        self._restraint = Restraint(settings.limits)
        self._tiers = Tiers(settings.limits.rest_s)
        self.measures = Measures()
        self._clock = PolledClock(0.0)
        self._driver: Driver | None = None
        self._problem: Problem | None = None  # that the policy was started with
        self._believed: dict[str, str] = {}  # where it believes that each fragment is
        self._open: set[str] = set()  # the nodes that it believes may be used
        self._started = self._measured = self._delivered = 0.0
        self._sampled: dict[str, int] = {}  # by carrier, the last micro-batch that was looked at
        self._heard: dict[str, int] = {}  # by carrier, the last micro-batch heard of
        self._under_way: dict[int, _UnderWay] = {}  # by move
        self._advised: dict[tuple[str, str, str], float] = {}
        self._saved = 0.0
        self._writer = ThreadPoolExecutor(1, "situation")  # a problem of thousands of fragments takes a second to write

    def close(self) -> None:
        """Leaves what was measured last for those who ask later."""
        if self._measured:
            self._save(self.situation)
        self._writer.shutdown(wait=True)

    def step(self, events: Iterable[CarrierEvent], now: float) -> None:
        for event in events:
            if isinstance(event, BatchDone):
                self.measures.hear(event, now)
                self._hear_distances(event)
                self._heard[event.carrier] = event.batch
        self._clock.advance(now)
        if self._driver is not None:
            self._notify_of_nodes(self._driver)
            self._clock.advance(now)  # what follows from it
            self._report_moves(now)
            self._clock.advance(now)
        if now - self._measured >= self._settings.every_s:
            self._measure(now)
            self._clock.advance(now)

    def _hear_distances(self, event: BatchDone) -> None:
        reader = self._engine.controller.state.carriers.get(event.carrier)
        for maker, took in event.took.items() if reader is not None else ():
            if reader is not None and maker != reader.node:
                self.topology.heard(maker, reader.node, took.look)
                self.topology.delayed(maker, reader.node, took.delay)

    @property
    def situation(self) -> Situation:
        """Without the nodes that are lost or being drained: nothing may be placed there."""
        cores = self._open_nodes()
        properties = {name: self._properties(name) for name in cores}
        return Situation(self._engine.controller.state, self._catalog, cores, self.measures, properties, self.topology)

    def _open_nodes(self) -> dict[str, int]:
        """Their cores."""
        state, lost = self._engine.controller.state, self._engine.controller.known.lost
        own = {} if self._elastic is None else self._elastic.own
        closed = {name for name, node in state.nodes.items() if node.draining} | lost
        return {name: n for name, n in {**self._cores, **own}.items() if name not in closed}

    def admit(self, submissions: Sequence[Submission]) -> None:
        """Raises AdmissionRefused, with all that there is no room for."""
        if self._settings.room is None or not submissions:
            return
        try:
            refuse_without_room(self.situation, self._settings.room, submissions)
        except AdmissionRefused as error:
            self._engine.add_history(EventKind.REFUSED, str(error))
            raise

    # --- measuring ---------------------------------------------------------------------------------------------------

    def _measure(self, now: float) -> None:
        self._sample()
        for node, round_trip_s in self._engine.round_trips():
            self.topology.heard(CONTROLLER, node, round_trip_s / 2)
        seconds = self.measures.close_window(now, self._engine.at_rest)
        self._measured = now
        situation = self.situation
        if self._elastic is not None and not self._settings.advise:
            self._elastic.step(now, {node: situation.load(node) for node in situation.cores})
        if now - self._saved >= SAVE_EVERY_S:
            self._saved = now
            self._save(situation)
        if self._settings.change_carriers:
            self._change_carriers(now)
        if self._stale(situation, now):
            self._renew(situation, now)
        elif self._driver is not None and now - self._delivered >= self._driver.actors.window:
            self._delivered = now
            self._deliver_measures(self._driver, situation, now, seconds)

    def _change_carriers(self, now: float) -> None:
        for change in self._tiers.look(self._engine.controller.known, self.measures, now):
            if self._settings.advise:
                text = f"would move {len(change.fragments):,} fragments to {change.carriers} carriers: {change.reason}"
                self._engine.add_history(EventKind.ADVICE, text, nodes=sorted({node for node, _ in change.subjects}))
            else:
                self._engine.change_carriers(change.fragments, change.carriers, change.reason)

    def _sample(self) -> None:
        state = self._engine.controller.state
        present: dict[str, list[int]] = {}
        for fragment in state.fragments.values():
            if fragment.status in (FragmentStatus.JOINING, FragmentStatus.LIVE):
                present.setdefault(fragment.carrier, []).append(fragment.id)
        for carrier, fragments in present.items():
            until = self._heard.get(carrier, -1)
            found = emitted(self._store.results(carrier), self._sampled.get(carrier, -1), until)
            self._sampled[carrier] = until
            self.measures.sampled(carrier, fragments, found)
        self.measures.forget(set(state.carriers), {f for ids in present.values() for f in ids})

    def _save(self, situation: Situation) -> None:
        if situation.fragments:
            self._writer.submit(_write, situation.problem, self._store.situation)

    def _deliver_measures(self, driver: Driver, situation: Situation, now: float, seconds: float) -> None:
        assert self._problem is not None, "a policy was started"
        known = self._problem.operator
        found: list[tuple[Address, seam.PolicyEvent]] = []
        for node, address in driver.actors.measures.items():
            if node in situation.cores:
                seen = situation.statistics(node, now, seconds)
                # What came after the policy was started is not known to it.
                operators = {name: measured for name, measured in seen.operators.items() if name in known}
                found.append((address, seam.Measured(now, replace(seen, operators=operators))))
        driver.deliver_at_once(found)

    def _notify_of_nodes(self, driver: Driver) -> None:
        assert self._problem is not None, "a policy was started"
        known, open_now = self._problem.cluster, self._open_nodes()
        for node in known.nodes:
            if node.name in self._open and node.name not in open_now:
                self._open.remove(node.name)
                driver.lose(node.name)
            elif node.name not in self._open and node.name in open_now:
                self._open.add(node.name)
                driver.join(node)

    # --- the policy --------------------------------------------------------------------------------------------------

    def _stale(self, situation: Situation, now: float) -> bool:
        if not situation.fragments or self._under_way:
            return False
        if self._problem is None or self._driver is None:
            return True
        known = self._problem.cluster.position.keys()
        if situation.cores.keys() - known or (known != situation.cores.keys() and not self._driver.actors.take_nodes):
            return True
        if any(situation.node_of(f) != node for f, node in self._believed.items() if f in situation.fragments):
            return True  # somebody else has moved it
        old = now - self._started >= self._settings.renew_s
        return old and self._problem.fragment.keys() != situation.fragments.keys()

    def _renew(self, situation: Situation, now: float) -> None:
        problem = situation.problem
        assert problem.current is not None, "a situation knows where everything is"
        self._problem, self._open = problem, set(situation.cores)
        self._started = self._delivered = now
        self._believed = {name: nodes[0] for name, nodes in problem.current.nodes.items()}
        actors = self._start(problem, problem.current)
        self._clock = PolledClock(now)  # the alarms of the actors before are forgotten
        scaled = None if self._elastic is None or self._settings.advise else self._scale
        messages = InProcess(self._clock, lambda one, other: self.topology.latency(one, other) or 0.0)
        self._driver = Driver(actors, self._clock, messages, self._asked, self._noted, scaled)
        self._driver.start()

    def _scale(self, address: Address, wish: seam.ScalingWish) -> None:
        assert self._elastic is not None, "else nobody hears of wishes"
        log.info("policy, %s: %s", address, wish.reason)
        self._elastic.ask(wish)

    def _noted(self, address: Address, text: str) -> None:
        log.info("policy, %s: %s", address, text)

    # --- moves -------------------------------------------------------------------------------------------------------

    def _asked(self, address: Address, move: seam.Move) -> None:
        assert self._driver is not None, "it asked"
        now = self._clock.now
        refusal = self._advise(move, now) if self._settings.advise else self._begin(address, move, now)
        if refusal is not None:
            failed = seam.MoveFailed(now, move.fragment, move.source, move.target, refusal)
            self._clock.at(now, partial(self._driver.deliver, address, failed))

    def _begin(self, address: Address, move: seam.Move, now: float) -> str | None:
        """Why not, if not."""
        situation = self.situation
        if (outdated := situation.outdated(move.fragment, move.source)) is not None:
            return outdated
        record = situation.fragments[move.fragment]
        refusal = self._restraint.refusal(now, move.fragment, move.source, move.target)
        try:
            if refusal is None:
                number = self._engine.move_fragment(record.id, move.target, move.reason)
                self._restraint.begin(now, move.source, move.target)
                self._under_way[number] = _UnderWay(address, move, now)
        except MoveRefused as error:
            refusal = str(error)
        if refusal is not None:
            text = f"{move.fragment} stays on {move.source}, did not go to {move.target}: {refusal}"
            self._engine.add_history(EventKind.REFUSED, text, fragment=record.id, nodes=(move.source, move.target))
        return refusal

    def _advise(self, move: seam.Move, now: float) -> str:
        """A policy repeats what is not followed; it is recorded once in a while."""
        key = (move.fragment, move.source, move.target)
        if now - self._advised.get(key, -self._settings.limits.rest_s) >= self._settings.limits.rest_s:
            self._advised[key] = now
            text = f"would move {move.fragment} from {move.source} to {move.target}: {move.reason}"
            record = self.situation.fragments.get(move.fragment)
            number = None if record is None else record.id
            self._engine.add_history(EventKind.ADVICE, text, fragment=number, nodes=(move.source, move.target))
        return ADVICE_ONLY

    def _report_moves(self, now: float) -> None:
        assert self._driver is not None, "moves are asked for by its actors"
        ended: list[tuple[Address, seam.PolicyEvent]] = []
        for number, under_way in list(self._under_way.items()):
            if (event := self._end_of(number, under_way, now)) is None:
                continue
            move = under_way.move
            if isinstance(event, seam.MoveDone) and self._driver.reaches(under_way.address):
                self._believed[move.fragment] = move.target  # if nobody hears of it, the policy is started again
            del self._under_way[number]
            self._restraint.end(now, move.fragment, move.source, move.target)
            ended.append((under_way.address, event))
        self._driver.deliver_at_once(ended)

    def _end_of(self, number: int, under_way: _UnderWay, now: float) -> seam.MoveDone | seam.MoveFailed | None:
        controller, move = self._engine.controller, under_way.move
        where = (move.fragment, move.source, move.target)
        record = controller.state.moves.get(number)
        if record is None or record.step is MoveStep.ABANDONED:  # forgotten: a policy asks again if need be
            return seam.MoveFailed(now, *where, "the move was abandoned")
        if record.step not in (MoveStep.DRAINING, MoveStep.DONE):
            return None
        if (node := controller.known.node_of(record.target)) != move.target:
            return seam.MoveFailed(now, *where, f"it went on to {node}, since {move.target} was lost")
        return seam.MoveDone(now, *where, now - under_way.begun)


def _write(problem: Problem, path: Path) -> None:
    try:
        with durable.writing(path, lasting=False) as scratch:
            scratch.write_text(dump(problem), encoding="utf-8")
    except OSError:
        log.exception("%s was not written", path)
