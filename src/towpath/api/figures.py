"""A running job in figures. One declaration for who counts them, who sends them and who shows them.

Cheap to import: a command that asks the service for figures has nothing to do with what they are counted from.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CarrierFigures:
    id: str
    node: str
    kind: str
    queries: int
    fragments: int
    rows: int  # read so far
    rows_per_s: float
    trigger_s: float | None  # how long the last micro-batch took; None before the first
    event_us: int | None  # the highest event time seen
    late: int  # rows that came too late for its joins and aggregates
    late_by_stream: dict[str, int]
    unheard: int  # micro-batches whose late rows nobody knows
    runs: bool  # a carrier that nobody needs any more may rest


@dataclass(frozen=True, kw_only=True)
class QueryCost:
    """What is estimated is split over the fragments of a carrier by the rows that each puts out."""

    name: str
    carriers: list[str]  # with their kinds
    nodes: list[str]
    shared_with: int  # other queries that its fragments answer too, at no more cost
    rows_per_trigger: float  # that it put out in the newest micro-batches that had results
    estimated_state_rows: float
    estimated_share_of_carrier: float  # of the time that its carrier takes; of several the largest
    estimated_seconds_per_trigger: float


@dataclass(frozen=True)
class Durations:
    """How long micro-batches took, since the process was started: how many took so long at most, and their sum."""

    counts: tuple[int, ...]  # those up to the first of BOUNDS_S, up to the next one, and so on; the last: above all
    sum_s: float


BOUNDS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, kw_only=True)
class Figures:
    carriers: list[CarrierFigures]
    queries: int  # that stand
    results: int  # rows in the results logs; those that several queries share count once
    results_per_s: float
    rows_per_s: float  # each carrier reads its streams itself: one that several need counts several times
    trigger_s: float | None  # the median of the trigger times of all carriers
    slowest_s: float | None  # their 95th percentile
    event_us: int | None  # the event time that every carrier that runs has reached
    restarts: int  # carriers that had to be started again
    late: int  # rows that came too late for joins and aggregates
    late_by_stream: dict[str, int]
    unheard: int  # micro-batches whose reports were missed: with them there may be more late rows
    rejected: int  # rows, messages and files that were not taken in

    @property
    def running(self) -> list[CarrierFigures]:
        return [carrier for carrier in self.carriers if carrier.runs]
