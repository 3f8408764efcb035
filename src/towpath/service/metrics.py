"""A running job as metrics for Prometheus. docs/observability.md lists them.

However many queries, carriers and streams a job has, the number of time series is bounded: those are listed that take
or have the most.
"""

from __future__ import annotations

import asyncio
import heapq
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from towpath.api.figures import BOUNDS_S, CarrierFigures, Durations, QueryCost
from towpath.service.messages import JobStatus
from towpath.service.verbs import Verbs

PATH = "/metrics"
MOST_CARRIERS = MOST_STREAMS = MOST_NODES = 100
MOST_QUERIES = 20
STATUS_S, COSTS_S = 1.0, 15.0  # that a look at the job is good for
SHARE = 50  # and a look that took a second, for as many: the loop has other things to do

T = TypeVar("T")
Ask = Callable[[Callable[[], Any]], Awaitable[Any]]


@dataclass(frozen=True)
class Scraping:
    """Who may read the metrics beside those who may look at everything, and how much of them there is."""

    token: str = field(default="", repr=False)
    most_queries: int = MOST_QUERIES


NOBODY = Scraping()


class Metrics:
    """The endpoint: asks the job as seldom as it can, and keeps count of what only goes up."""

    def __init__(self, verbs: Verbs, ask: Ask, most_queries: int = MOST_QUERIES) -> None:
        self._verbs = verbs
        self._ask = ask
        self._most_queries = most_queries
        self._one_at_a_time = asyncio.Lock()
        self._kept: dict[str, tuple[float, Any]] = {}  # until when what was looked up is good
        self._grown = Grown()
        self._process = ProcessCollector(registry=None)

    @property
    def route(self) -> Route:
        return Route(PATH, self._scrape, methods=["GET"])

    async def _scrape(self, _: Request) -> Response:
        async with self._one_at_a_time:
            status = await self._looked_up(self._verbs.status, STATUS_S)
            durations = await self._looked_up(self._verbs.durations, STATUS_S)
            costs = await self._looked_up(self._verbs.costs, COSTS_S) if self._most_queries else []
            text = await run_in_threadpool(self._text, status, durations, costs)
        return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4, "Cache-Control": "no-store"})

    def _text(self, status: JobStatus, durations: Durations, costs: Sequence[QueryCost]) -> bytes:
        found = [*of_job(status, durations, self._grown), *of_carriers(status.carriers), *of_nodes(status)]
        return generate_latest(_Found([*found, *of_queries(costs, self._most_queries), *self._process.collect()]))

    async def _looked_up(self, look: Callable[[], T], good_for_s: float) -> T:
        until, found = self._kept.get(look.__name__, (0.0, None))
        if time.monotonic() >= until:
            found, seconds = await self._ask(lambda: _timed(look))
            self._kept[look.__name__] = time.monotonic() + max(good_for_s, SHARE * seconds), found
        return found


class Grown:
    """Counts that never go down, of figures that do: results are removed after their retention, carriers end."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, int]] = {}
        self._total: dict[str, int] = {}

    def note(self, name: str, now: Mapping[str, int]) -> int:
        last = self._last.get(name, {})
        grown = sum(max(0, value - last.get(part, 0)) for part, value in now.items())
        self._last[name] = dict(now)
        self._total[name] = self._total.get(name, 0) + grown
        return self._total[name]


class _Found(Collector):
    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found


def of_job(status: JobStatus, durations: Durations, grown: Grown) -> Iterator[Metric]:
    rows = {carrier.id: carrier.rows for carrier in status.carriers}
    yield _by("build_info", "Always 1; the label has the version.", "version", {version("towpath"): 1})
    queries = {"running": status.queries, "set_aside": len(status.aside)}
    yield _by("queries", "Queries by their state.", "state", queries)
    resting = sum(not carrier.runs for carrier in status.carriers)
    carriers = {"running": len(status.carriers) - resting, "resting": resting}
    yield _by("carriers", "Carriers by their state.", "state", carriers)
    yield _counter("rows_read", "Rows read by carriers; each reads its streams itself.", grown.note("read", rows))
    results = grown.note("results", {"": status.results})
    yield _counter("result_rows", "Rows that the results logs grew by from scrape to scrape.", results)
    yield _gauge("stored_result_rows", "Rows in the results logs.", status.results)
    rejected = grown.note("rejected", {"": status.rejected})
    yield _counter("rejected", "Rows, messages and files that were not taken in.", rejected)
    restarts = grown.note("restarts", {"": status.restarts})
    yield _counter("carrier_restarts", "Carriers that had to be started again.", restarts)
    yield _late(status.late_by_stream)
    yield _durations(durations)
    if status.event_us is not None:
        text = "The event time that every running carrier has reached."
        yield _gauge("event_timestamp_seconds", text, status.event_us / 1e6)
    yield _gauge("moves_in_progress", "Fragments that are on their way to another node.", len(status.moves))
    yield _gauge("troubles", "What fails and is tried again.", len(status.troubles))
    store = Path(status.store)
    if store.exists():
        yield _gauge("store_free_bytes", "Room on the disk of the store.", shutil.disk_usage(store).free)


def of_carriers(carriers: Iterable[CarrierFigures]) -> Iterator[Metric]:
    """Of those that have read the most."""
    labels = ("carrier", "node", "kind")
    rows = CounterMetricFamily("towpath_carrier_rows_read", "Rows read by a carrier.", labels=labels)
    queries = _gauges("carrier_queries", "Queries that a carrier answers.", *labels)
    took = _gauges("carrier_micro_batch_seconds", "How long the newest micro-batch of a carrier took.", *labels)
    text = "The highest event time that a carrier has seen."
    event = _gauges("carrier_event_timestamp_seconds", text, *labels)
    for carrier in heapq.nlargest(MOST_CARRIERS, (c for c in carriers if c.runs), key=lambda c: (c.rows, c.id)):
        values = [carrier.id, carrier.node, carrier.kind]
        rows.add_metric(values, carrier.rows)
        queries.add_metric(values, carrier.queries)
        if carrier.trigger_s is not None:
            took.add_metric(values, carrier.trigger_s)
        if carrier.event_us is not None:
            event.add_metric(values, carrier.event_us / 1e6)
    yield from (rows, queries, took, event)


def of_nodes(status: JobStatus) -> Iterator[Metric]:
    up = _gauges("node_up", "1 if a node answers, 0 if it is lost.", "node")
    takes = _gauges("node_open", "1 if a node takes queries, 0 if it is drained or lost.", "node")
    carriers = _gauges("node_carriers", "Carriers that run on a node.", "node")
    fragments = _gauges("node_fragments", "Fragments that run on a node.", "node")
    for node in heapq.nlargest(MOST_NODES, status.nodes, key=lambda n: (n.fragments, n.name)):
        up.add_metric([node.name], node.state != "lost")
        takes.add_metric([node.name], node.state == "open")
        carriers.add_metric([node.name], node.carriers)
        fragments.add_metric([node.name], node.fragments)
    yield from (up, takes, carriers, fragments)


def of_queries(costs: Iterable[QueryCost], most: int) -> Iterator[Metric]:
    """Of those that take the most time."""
    text = "Estimated time that a query takes of each micro-batch; of the dearest."
    seconds = _gauges("query_micro_batch_seconds", text, "query")
    rows = _gauges("query_micro_batch_rows", "Rows that a query puts out in each micro-batch.", "query")
    state = _gauges("query_state_rows", "Estimated rows in the state of a query.", "query")
    for cost in heapq.nlargest(most, costs, key=lambda c: (c.estimated_seconds_per_trigger, c.rows_per_trigger)):
        seconds.add_metric([cost.name], cost.estimated_seconds_per_trigger)
        rows.add_metric([cost.name], cost.rows_per_trigger)
        state.add_metric([cost.name], cost.estimated_state_rows)
    yield from (seconds, rows, state)


def _late(by_stream: Mapping[str, int]) -> Metric:
    text = "Rows that came too late for joins and aggregates."
    found = CounterMetricFamily("towpath_late_rows", text, labels=["stream"])
    for name in heapq.nlargest(MOST_STREAMS, by_stream, key=lambda name: (by_stream[name], name)):
        found.add_metric([name], by_stream[name])
    return found


def _durations(durations: Durations) -> Metric:
    found = HistogramMetricFamily("towpath_micro_batch_duration_seconds", "How long micro-batches took.")
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    counts = accumulate(durations.counts)
    found.add_metric([], list(zip(bounds, counts, strict=True)), durations.sum_s)
    return found


def _gauge(name: str, text: str, value: float) -> Metric:
    found = _gauges(name, text)
    found.add_metric([], value)
    return found


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    found = _gauges(name, text, label)
    for value, number in values.items():
        found.add_metric([value], number)
    return found


def _gauges(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"towpath_{name}", text, labels=labels)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"towpath_{name}", text, value)


def _timed(look: Callable[[], T]) -> tuple[T, float]:
    begun = time.perf_counter()
    return look(), time.perf_counter() - begun
