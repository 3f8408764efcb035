"""A steered job without Spark: the control loop over the world of `world.py`, which has the methods that it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from towpath import policies
from towpath.control.act.loop import Loop, LoopSettings, StartPolicy
from towpath.control.decide.controller import Controller
from towpath.control.decide.limits import Limits
from towpath.control.observe.measures import WORK
from towpath.control.state.history import EventKind
from towpath.placement.problem import Placement, Problem
from towpath.plan import CarrierKinds
from towpath.runtime.actors import Actors
from towpath.runtime.carriers import BatchDone
from towpath.store.layout import Store

from .world import CATALOG, SECOND, World, batch_done, submission

KINDS = ("filter", "other filter", "computed", "window")

ROWS = 100  # tuples of a micro-batch
WORK_SHARE = 0.5  # of its time, what goes to its fragments


class LiveWorld:
    def __init__(self, world: World) -> None:
        self._world = world
        self.history: list[tuple[EventKind, str]] = []
        self._numbers: dict[str, int] = {}

    @property
    def controller(self) -> Controller:
        return self._world.controller

    def move_fragment(self, fragment: int, node: str, reason: str) -> int:
        self._world.act(self.controller.move(fragment, node, reason))
        return max(self.controller.state.moves)

    def round_trips(self) -> list[tuple[str, float]]:
        return []

    def change_carriers(self, fragments: Sequence[int], carriers: CarrierKinds, reason: str) -> None:
        self._world.act(self.controller.change_carriers(fragments, carriers, reason))

    def at_rest(self, carrier: str) -> bool:
        return False

    def add_history(
        self, kind: EventKind, text: str, *, fragment: int | None = None, nodes: Iterable[str] = ()
    ) -> None:
        self.history.append((kind, text))

    def round(self, at: float, cost: Mapping[str, float]) -> list[BatchDone]:
        """A second of every carrier: a micro-batch that takes so long for each of its fragments, by node."""
        found = []
        for name, record in list(self.controller.state.carriers.items()):
            number = self._numbers[name] = self._numbers.get(name, -1) + 1
            newest = [int(at * SECOND)] * len(record.template.family.classes)
            event = batch_done(name, number, record.version, newest, first=number == 0)
            seconds = cost.get(record.node, 0.0) * len(self.controller.known.rows(name))
            event = replace(event, rows=ROWS, seconds=seconds, phases_ms={WORK: seconds * 1000 * WORK_SHARE})
            self._world.act(self.controller.handle(event))
            found.append(event)
        self._world.save()
        return found


def start_of(policy: str, options: Mapping[str, Any]) -> StartPolicy:
    chosen = policies.options(policy, options)

    def start(problem: Problem, placement: Placement) -> Actors:
        return policies.start(policy, problem, placement, chosen)

    return start


class Steered:
    """A job whose queries all begin on node a."""

    def __init__(self, folder: Path, start: StartPolicy, nodes: Iterable[str] = ("a", "b"), **settings: Any) -> None:
        self._cores = dict.fromkeys(nodes, 1)
        self.world = World(folder / "journal.sqlite", tuple(self._cores))
        self.world.submit(*(submission(kind, kind, node="a") for kind in KINDS))
        self.engine = LiveWorld(self.world)
        self.loop = Loop(
            self.engine,
            Store(folder),
            CATALOG,
            self._cores,
            start,
            LoopSettings(2.0, 30.0, **{"limits": Limits(rest_s=1000), **settings}),
        )
        self.now = 0

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            self.loop.step(self.engine.round(self.now, dict.fromkeys(self._cores, 0.2)), self.now)

    @property
    def places(self) -> dict[str, str]:
        return {name: self.loop.situation.node_of(name) for name in self.loop.situation.fragments}
