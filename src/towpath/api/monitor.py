"""What a running job does, in figures: carriers, rates, trigger times, results. For whoever shows it."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from towpath.api.costs import costs
from towpath.api.figures import BOUNDS_S, CarrierFigures, Durations, Figures, QueryCost
from towpath.control.decide.controller import Controller
from towpath.control.observe.measures import Measures
from towpath.control.state.records import FragmentStatus
from towpath.results import committed
from towpath.runtime.carriers import BatchDone, CarrierEvent
from towpath.store.layout import Store
from towpath.streams.rejected import Tally

RATE_OVER_S = 10.0  # rates are of the last so many seconds
REMEMBERED = 1000  # trigger times of a carrier


class Rate:
    """How fast a counter grew of late."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now: float, total: int) -> float:
        self._samples.append((now, total))
        while len(self._samples) > 2 and now - self._samples[1][0] >= RATE_OVER_S:
            self._samples.popleft()
        (then, before), (last, after) = self._samples[0], self._samples[-1]
        return max(0.0, (after - before) / (last - then)) if last > then else 0.0


@dataclass
class _Heard:
    """What the micro-batches of one carrier reported."""

    rows: int = 0
    starts: int = 0
    rests: bool = False  # nobody needs it; when somebody does it is started, and that is nothing to worry about
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    rate: Rate = field(default_factory=Rate)


class Monitor:
    """Hears the events of a job; `figures` sums up."""

    def __init__(self, controller: Controller, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._controller = controller
        self._clock = clock
        self._heard: dict[str, _Heard] = {}
        self._store = store
        self._measures = Measures()
        self._results = _ResultCounter(store)
        self._rejected = Tally(store.rejected)
        self._results_rate = Rate()
        self._took = [0] * (len(BOUNDS_S) + 1)
        self._took_s = 0.0

    def hear(self, events: Iterable[CarrierEvent]) -> None:
        for event in events:
            if isinstance(event, BatchDone):
                self._measures.hear(event, self._clock())
                heard = self._heard.setdefault(event.carrier, _Heard())
                heard.rows += event.rows
                heard.starts += event.first and not heard.rests
                heard.rests = heard.rests and not event.first
                heard.seconds.append(event.seconds)
                self._took[bisect_left(BOUNDS_S, event.seconds)] += 1
                self._took_s += event.seconds

    def measured(self, at_rest: Callable[[str], bool]) -> Measures:
        """What carriers take, up to now; `at_rest` says whether one has nothing to read."""
        self._measures.close_window(self._clock(), at_rest)
        return self._measures

    def costs(self) -> list[QueryCost]:
        """What each query takes; looked up in the results logs when it is asked."""
        return costs(self._controller, self._store, self._measures)

    def durations(self) -> Durations:
        return Durations(tuple(self._took), self._took_s)

    def figures(self) -> Figures:
        carriers = list(self._carriers())
        self._heard = {carrier.id: self._heard[carrier.id] for carrier in carriers}  # others are no more
        self._measures.forget(set(self._heard), set())
        # The first micro-batch of a carrier also compiles its plan and says nothing about the others.
        seconds = [s for heard in self._heard.values() for s in list(heard.seconds)[1:]]
        median, slowest = np.percentile(seconds, [50, 95]).tolist() if seconds else (None, None)
        results = self._results.count(carrier.id for carrier in carriers)
        late = {name: stream.late for name, stream in sorted(self._controller.state.streams.items()) if stream.late}
        return Figures(
            carriers=carriers,
            queries=len(self._controller.queries.running),
            results=results,
            results_per_s=self._results_rate.note(self._clock(), results),
            rows_per_s=sum(carrier.rows_per_s for carrier in carriers),
            trigger_s=median,
            slowest_s=slowest,
            event_us=_reached_us(carriers),
            restarts=sum(max(0, heard.starts - 1) for heard in self._heard.values()),
            late=sum(late.values()),
            late_by_stream=late,
            unheard=sum(carrier.unheard for carrier in carriers),
            rejected=self._rejected.count(),
        )

    def _carriers(self) -> Iterator[CarrierFigures]:
        state = self._controller.state
        alive = {
            f.id: f.carrier
            for f in state.fragments.values()
            if f.status in (FragmentStatus.JOINING, FragmentStatus.LIVE)
        }
        fragments = Counter(alive.values())
        standing = {q.id for q in state.queries.values() if q.running}
        users = {
            (alive[p.fragment], p.query) for p in state.parts.values() if p.query in standing and p.fragment in alive
        }
        queries = Counter(carrier for carrier, _ in users)
        for carrier in state.carriers.values():
            heard = self._heard.setdefault(carrier.id, _Heard())
            late = {name: rows for name, rows in carrier.late_rows.items() if rows}
            heard.rests = heard.rests or (heard.starts > 0 and not self._controller.runs(carrier.id))
            yield CarrierFigures(
                id=carrier.id,
                node=carrier.node,
                kind=carrier.template.family.kind + (", of the past" if carrier.past else ""),
                queries=queries[carrier.id],
                fragments=fragments[carrier.id],
                rows=heard.rows,
                rows_per_s=heard.rate.note(self._clock(), heard.rows),
                trigger_s=heard.seconds[-1] if heard.seconds else None,
                event_us=carrier.newest_us,
                late=sum(late.values()),
                late_by_stream=late,
                unheard=carrier.unheard if carrier.template.family.stateful else 0,
                runs=self._controller.runs(carrier.id),
            )


def _reached_us(carriers: Iterable[CarrierFigures]) -> int | None:
    times = [carrier.event_us for carrier in carriers if carrier.runs]
    return None if not times or None in times else min(t for t in times if t is not None)


class _ResultCounter:
    """Counts the rows of the results logs by what Parquet files say of themselves, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[Path, int] = {}

    def count(self, carriers: Iterable[str]) -> int:
        files = [file for carrier in carriers for file in committed(self._store.results(carrier))]
        self._rows = {file: self._rows.get(file) or _rows_in(file) for file in files}
        return sum(self._rows.values())


def _rows_in(file: Path) -> int:
    try:
        return int(pq.read_metadata(file).num_rows)
    except FileNotFoundError:  # merged into another file a moment ago; the next count finds it there
        return 0
