"""What a running job does, in figures: carriers, rates, trigger times, results. For whoever shows it."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from towpath.control.decide.controller import Controller
from towpath.control.state.records import FragmentStatus
from towpath.results import committed
from towpath.runtime.carriers import BatchDone, CarrierEvent
from towpath.store.layout import Store
from towpath.streams.rejected import Tally

RATE_OVER_S = 10.0  # rates are of the last so many seconds
REMEMBERED = 1000  # trigger times of a carrier


@dataclass(frozen=True)
class CarrierFigures:
    carrier: str
    kind: str
    queries: int
    fragments: int
    rows: int  # read so far
    rows_per_s: float
    trigger_s: float | None  # how long the last micro-batch took; None before the first
    event_us: int | None  # the highest event time seen
    late: int  # rows that came too late for its joins and aggregates
    late_by_stream: Mapping[str, int]
    unheard: int = 0  # micro-batches whose late rows nobody knows
    runs: bool = True  # a carrier that nobody needs any more may rest


@dataclass(frozen=True)
class Figures:
    carriers: tuple[CarrierFigures, ...]
    queries: int  # that stand
    results: int  # rows in the results logs; those that several queries share count once
    results_per_s: float
    median_s: float | None  # of the trigger times of all carriers
    slowest_s: float | None  # their 95th percentile
    restarts: int  # carriers that had to be started again
    late_by_stream: Mapping[str, int]  # rows that came too late for joins and aggregates
    rejected: int = 0  # rows, messages and files that were not taken in

    @property
    def running(self) -> list[CarrierFigures]:
        return [carrier for carrier in self.carriers if carrier.runs]

    @property
    def late(self) -> int:
        return sum(self.late_by_stream.values())

    @property
    def unheard(self) -> int:
        """Micro-batches whose reports were missed: with them there may be more late rows."""
        return sum(carrier.unheard for carrier in self.carriers)

    @property
    def rows_per_s(self) -> float:
        """Each carrier reads its streams itself, so a stream that several need counts several times."""
        return sum(carrier.rows_per_s for carrier in self.carriers)

    @property
    def event_us(self) -> int | None:
        """The event time that every carrier that runs has reached."""
        times = [carrier.event_us for carrier in self.running]
        return None if not times or None in times else min(t for t in times if t is not None)


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
    """What the micro-batches of one carrier told."""

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
        self._results = _ResultCounter(store)
        self._rejected = Tally(store.rejected)
        self._results_rate = Rate()

    def hear(self, events: Iterable[CarrierEvent]) -> None:
        for event in events:
            if isinstance(event, BatchDone):
                heard = self._heard.setdefault(event.carrier, _Heard())
                heard.rows += event.rows
                heard.starts += event.first and not heard.rests
                heard.rests = heard.rests and not event.first
                heard.seconds.append(event.seconds)

    def figures(self) -> Figures:
        carriers = tuple(self._carriers())
        self._heard = {carrier.carrier: self._heard[carrier.carrier] for carrier in carriers}  # others are no more
        # The first micro-batch of a carrier also compiles its plan and says nothing about the others.
        seconds = [s for heard in self._heard.values() for s in list(heard.seconds)[1:]]
        median, slowest = np.percentile(seconds, [50, 95]).tolist() if seconds else (None, None)
        results = self._results.count(carrier.carrier for carrier in carriers)
        return Figures(
            carriers,
            len(list(self._controller.queries.running)),
            results,
            self._results_rate.note(self._clock(), results),
            median,
            slowest,
            sum(max(0, heard.starts - 1) for heard in self._heard.values()),
            {name: stream.late for name, stream in sorted(self._controller.state.streams.items()) if stream.late},
            self._rejected.count(),
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
                carrier.id,
                carrier.template.family.kind + (", of the past" if carrier.past else ""),
                queries[carrier.id],
                fragments[carrier.id],
                heard.rows,
                heard.rate.note(self._clock(), heard.rows),
                heard.seconds[-1] if heard.seconds else None,
                carrier.newest_us,
                sum(late.values()),
                late,
                carrier.unheard if carrier.template.family.stateful else 0,
                self._controller.runs(carrier.id),
            )


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
