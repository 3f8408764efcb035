"""One performance: the market runs, queries come and go in the middle, it ends, and every answer is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from towpath.api import start
from towpath.demo.check import Checked, check
from towpath.demo.market import Market
from towpath.demo.memory import resident_bytes
from towpath.monitor import Figures, Monitor, Rate
from towpath.reader import Reader
from towpath.runtime.carriers import Event
from towpath.store import Store

SAMPLE_ROWS = 5


@dataclass(frozen=True)
class Scene:
    """What there is to see at a moment."""

    figures: Figures
    elapsed_s: float
    events: int  # of the market that every carrier has processed
    events_per_s: float
    behind_s: float  # the market's own time against the clock
    submitted: int
    withdrawn: int
    heap_bytes: int = 0
    resident_bytes: int = 0


class Play:
    def __init__(self, market: Market, store: Path, cores: int) -> None:
        """Starts Spark and everything."""
        self._market = market
        self._store = store
        self._running = start(market.job(store, cores))
        self._monitor = Monitor(self._running.engine.controller, Store(store))
        self._rate = Rate()
        self._begun = time.monotonic()
        self._submitted = self._withdrawn = 0

    def run(self, look: Callable[[], None]) -> None:
        """`look` is called a few times a second."""

        def watch(events: list[Event]) -> None:
            self._monitor.hear(events)
            look()

        half = self._market.seconds / 2
        self._running.run(seconds=half, watch=watch)
        self._change_queries()
        self._running.run(seconds=self._market.seconds - half, watch=watch)

    def scene(self) -> Scene:
        figures = self._monitor.figures()
        now = time.monotonic()
        elapsed_s = now - self._begun
        events = self._market.events(figures.event_us)
        behind_s = min(elapsed_s, self._market.seconds) - self._market.seconds_until(figures.event_us)
        rate = self._rate.note(now, events)
        return Scene(figures, elapsed_s, events, rate, max(0.0, behind_s), self._submitted, self._withdrawn)

    def sample(self) -> tuple[str, pa.Table]:
        """A query and its newest results."""
        name, sql = next(iter(self._market.queries.items()))
        rows = self._running.results(name)
        return sql, rows.slice(max(0, rows.num_rows - SAMPLE_ROWS))

    def with_memory(self) -> Scene:
        """The same, with what it takes; finding that out takes a moment."""
        return replace(self.scene(), heap_bytes=self._running.engine.heap_bytes, resident_bytes=resident_bytes())

    def drain(self) -> None:
        self._running.drain(self._monitor.hear)

    def stop(self) -> None:
        self._running.stop()

    def check(self) -> Iterator[Checked]:
        with self._market.recorded() as recorded:
            yield from check(Reader(self._store), self._running.job.catalog, recorded)

    def _change_queries(self) -> None:
        for name in self._market.late_comers:
            self._running.submit(name, self._market.queries[name])
            self._submitted += 1
        for name in self._market.leavers:
            self._running.withdraw(name)
            self._withdrawn += 1
