"""What carriers do, measured from their micro-batches and smoothed. Hears, remembers, and does no I/O.

Spark reports times and rows of a whole carrier. What of it a single fragment takes is an estimate: the time in which a
carrier calculates and writes is split over its fragments in proportion to the rows that they emit, which a sample of
the results log shows. The rest (offsets, planning, commits) is the carrier's own and stays when a fragment leaves.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, field

from towpath.runtime.carriers import BatchDone

WORK = "addBatch"  # Spark's name of that phase
SMOOTHING = 0.5  # how much of a smoothed value is the newest window's
REMEMBERED = 64  # micro-batches of a carrier whose rows are known, for samples that come later
# A fragment without results is looked up and costs something too: as much as one that emits a row in so many.
LEAST_SELECTIVITY = 1e-4
# What is known of a carrier's growth is worth so much less with every window: rates change, and a JVM gets faster.
KEPT_OF_GROWTH = 0.9
LEAST_SPREAD = 0.1  # deviation of the number of fragments, as a share of their mean, from which on growth says anything


@dataclass(frozen=True)
class CarrierMeasure:
    """Smoothed, and per second where it is a rate."""

    busy: float  # share of the time that a micro-batch was running
    work: float  # the part of it in which rows were calculated and written
    rows: float  # tuples read per second
    batch_s: float  # how long a micro-batch takes
    period_s: float  # between the ends of two micro-batches
    state_rows: float
    behind_s: float  # how much further the clock went than event time since the carrier was first heard

    @property
    def delay_s(self) -> float:
        """From a tuple's arrival to its result: it waits for half a period on average, then for its micro-batch."""
        return self.behind_s + self.period_s / 2 + self.batch_s

    @property
    def pr(self) -> float:
        """Zhou's performance ratio: delay over processing time, which here is that of a micro-batch."""
        return self.delay_s / self.batch_s if self.batch_s > 0 else 1.0


@dataclass(frozen=True)
class Newest:
    """Of a carrier's newest micro-batches."""

    rows: Mapping[int, int]  # read, by number
    state_rows: int
    seconds: float  # that the last one took


@dataclass
class _Growth:
    """A line of least squares through the work of a carrier by the number of its fragments."""

    weight: float = 0.0
    fragments: float = 0.0  # sums, as the next three
    work: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def add(self, fragments: int, work: float) -> None:
        terms = _Growth(1.0, fragments, work, fragments * fragments, fragments * work)
        sums = (KEPT_OF_GROWTH * before + now for before, now in zip(astuple(self), astuple(terms), strict=True))
        self.weight, self.fragments, self.work, self.squares, self.products = sums

    @property
    def slope(self) -> float | None:
        """None as long as the number of fragments has hardly changed."""
        if not self.fragments:
            return None
        mean, work = self.fragments / self.weight, self.work / self.weight
        variance = self.squares / self.weight - mean * mean
        if variance < (LEAST_SPREAD * mean) ** 2:
            return None
        return (self.products / self.weight - mean * work) / variance


@dataclass
class _Timing:
    last_end: float
    last_s: float = 0.0
    first: tuple[float, int] | None = None  # clock and event time when it was first heard
    behind_s: float = 0.0
    window_s: float = 0.0  # of the window under way, as the next four
    busy_s: float = 0.0
    work_s: float = 0.0
    rows: int = 0
    ended: list[tuple[float, float]] = field(default_factory=list)  # seconds of micro-batches, and their periods
    state_rows: int = 0
    known: CarrierMeasure | None = None
    link_bytes: Counter[str] = field(default_factory=Counter)  # of the window under way, by derived stream
    link_rates: dict[str, float] = field(default_factory=dict)  # smoothed, bytes per second
    batches: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))  # number and rows
    fragments: int = 0  # that were there when its results were looked at last
    growth: _Growth = field(default_factory=_Growth)


class Measures:
    """Of all carriers of a job. Times are seconds since its start."""

    def __init__(self, at: float = 0.0) -> None:
        self._window_began = at
        self._carriers: dict[str, _Timing] = {}
        self._selectivity: dict[int, float] = {}  # by fragment: rows emitted per tuple that its carrier read

    def hear(self, event: BatchDone, at: float) -> None:
        carrier = self._carriers.setdefault(event.carrier, _Timing(at - event.seconds))
        carrier.batches.append((event.batch, event.rows))
        carrier.state_rows = event.state_rows
        newest = max((t for t in event.newest_us if t is not None), default=None)
        if newest is not None:
            carrier.first = carrier.first or (at, newest)
            carrier.behind_s = max(0.0, at - carrier.first[0] - (newest - carrier.first[1]) / 1e6)
        if event.first:
            # It also compiles its plan and may have read a long past: what counts begins after it.
            carrier.window_s = self._window_began - at
        else:
            carrier.rows += event.rows
            carrier.link_bytes.update(event.link_bytes)
            carrier.busy_s += event.seconds
            carrier.work_s += event.phases_ms.get(WORK, 0) / 1000
            carrier.ended.append((event.seconds, max(at - carrier.last_end, event.seconds)))
        carrier.last_end, carrier.last_s = at, event.seconds

    def sampled(self, carrier: str, fragments: Collection[int], emitted: Mapping[int, Mapping[int, int]]) -> None:
        """How many rows the fragments of a carrier emitted in some of its micro-batches: batch -> fragment -> rows."""
        if (heard := self._carriers.get(carrier)) is not None:
            heard.fragments = len(fragments)
        known = {} if heard is None else dict(heard.batches)
        read = sum(known.get(batch, 0) for batch in emitted)
        if read == 0:
            return
        for fragment in fragments:
            rows = sum(counts.get(fragment, 0) for batch, counts in emitted.items() if batch in known)
            self._selectivity[fragment] = smoothed(self._selectivity.get(fragment), rows / read)

    def close_window(self, at: float, at_rest: Callable[[str], bool]) -> float:
        """Turns what was heard since the last window into measures; returns how long the window was.

        `at_rest` says whether a carrier has nothing to read. One that has, and has ended no micro-batch, is in the
        middle of one: what it did then is known when that one ends.
        """
        seconds = at - self._window_began
        self._window_began = at
        for name, carrier in self._carriers.items():
            carrier.window_s += seconds
            if carrier.window_s > 0 and (carrier.ended or (carrier.known and at_rest(name))):
                _close(carrier)
        return seconds

    def carrier(self, carrier: str) -> CarrierMeasure | None:
        """None before the end of its first window with a micro-batch."""
        found = self._carriers.get(carrier)
        return None if found is None else found.known

    def link_rates(self, carrier: str) -> Mapping[str, float]:
        """Bytes per second that a carrier reads of derived streams, by their names."""
        found = self._carriers.get(carrier)
        return {} if found is None else found.link_rates

    def selectivity(self, fragment: int) -> float:
        return self._selectivity.get(fragment, 0.0)

    def further(self, carrier: str) -> float | None:
        """Work that one more fragment would bring to a carrier, by how its work grew with their number.

        Most of what a carrier costs does not depend on how many it has, so this is far less than its work divided by
        them. None if their number has hardly changed yet.
        """
        found = self._carriers.get(carrier)
        return None if found is None else found.growth.slope

    def shares(self, fragments: Iterable[int]) -> dict[int, float]:
        """How a carrier's cost is split over its fragments; the shares add up to 1."""
        return shares({fragment: self.selectivity(fragment) for fragment in fragments})

    def newest(self, carrier: str) -> Newest | None:
        """What its newest micro-batches reported; None before the first."""
        found = self._carriers.get(carrier)
        if found is None or not found.batches:
            return None
        return Newest(dict(found.batches), found.state_rows, found.last_s)

    def forget(self, carriers: set[str], fragments: set[int]) -> None:
        """Keeps only these; others have left."""
        self._carriers = {name: c for name, c in self._carriers.items() if name in carriers}
        self._selectivity = {f: s for f, s in self._selectivity.items() if f in fragments}


def shares(selectivity: Mapping[int, float]) -> dict[int, float]:
    """How a carrier's cost is split over its fragments, by the rows that they emit per tuple read."""
    weights = {f: max(rows, LEAST_SELECTIVITY) for f, rows in selectivity.items()}
    whole = sum(weights.values())
    return {fragment: weight / whole for fragment, weight in weights.items()}


def smoothed(before: float | None, now: float) -> float:
    return now if before is None else (1 - SMOOTHING) * before + SMOOTHING * now


def _close(carrier: _Timing) -> None:
    known, seconds = carrier.known, carrier.window_s
    # Without a new one, a micro-batch is still thought to take as long as the last ones did.
    ended = carrier.ended or [(known.batch_s, known.period_s) if known else (0.0, 0.0)]
    batch_s, period_s = (sum(values) / len(values) for values in zip(*ended, strict=True))
    per_second = (carrier.busy_s / seconds, carrier.work_s / seconds, carrier.rows / seconds)
    now = CarrierMeasure(*per_second, batch_s, period_s, carrier.state_rows, carrier.behind_s)
    carrier.known = now if known is None else CarrierMeasure(*map(smoothed, astuple(known), astuple(now)))
    if carrier.ended and carrier.fragments:
        carrier.growth.add(carrier.fragments, now.work)
    names = carrier.link_rates.keys() | carrier.link_bytes.keys()
    rates = {name: carrier.link_bytes[name] / seconds for name in names}
    carrier.link_rates = {name: smoothed(carrier.link_rates.get(name), rate) for name, rate in rates.items() if rate}
    carrier.link_bytes.clear()
    carrier.window_s = carrier.busy_s = carrier.work_s = 0.0
    carrier.rows, carrier.ended = 0, []
