"""An engine without Spark for those who steer one: the world of `world.py` with the methods that the loop calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from towpath.control.controller import Controller
from towpath.control.history import Kind
from towpath.control.measures import WORK
from towpath.runtime.carriers import BatchDone

from .world import SECOND, World, batch_done, planned_of

ROWS = 100  # tuples of a micro-batch
WORK_SHARE = 0.5  # of its time, what goes to its fragments


class LiveWorld:
    def __init__(self, world: World) -> None:
        self._world = world
        self.told: list[tuple[Kind, str]] = []
        self._numbers: dict[str, int] = {}

    @property
    def controller(self) -> Controller:
        return self._world.controller

    def move_fragment(self, fragment: int, node: str, reason: str) -> int:
        part = self.controller.users(fragment)[0]
        pipeline = planned_of(self.controller.state.queries[part.query].sql).pipelines[part.branch]
        self._world.act(self.controller.move(fragment, pipeline, node, reason))
        return max(self.controller.state.moves)

    def at_rest(self, carrier: str) -> bool:
        return False

    def tell(self, kind: Kind, text: str, *, fragment: int | None = None, nodes: Iterable[str] = ()) -> None:
        self.told.append((kind, text))

    def round(self, at: float, cost: Mapping[str, float]) -> list[BatchDone]:
        """A second of every carrier: a micro-batch that takes so long for each of its fragments, by node."""
        found = []
        for name, record in list(self.controller.state.carriers.items()):
            number = self._numbers[name] = self._numbers.get(name, -1) + 1
            newest = [int(at * SECOND)] * len(record.template.family.classes)
            event = batch_done(name, number, record.version, newest, first=number == 0)
            seconds = cost.get(record.node, 0.0) * len(self.controller.rows(name))
            event = replace(event, rows=ROWS, seconds=seconds, phases_ms={WORK: seconds * 1000 * WORK_SHARE})
            self._world.act(self.controller.handle(event))
            found.append(event)
        self._world.save()
        return found
