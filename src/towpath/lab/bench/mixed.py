"""Queries of many shapes: how many different ones plain Spark and towpath keep up with, five queries of each shape.

Shapes are drawn by a seed: which columns a query tests and how, what it calculates, groups, aggregates and joins. A
query is written once, in words that both dialects have; plain Spark gets it as the DataFrame that one would write by
hand.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from towpath.lab.bench import MIXED_KINDS, plain, shared
from towpath.lab.bench.apart import apart, new_log
from towpath.lab.bench.plain import SETTINGS, SparkSetting
from towpath.lab.bench.quiet import Company, watched
from towpath.lab.bench.sharing import RATE, ReportStep
from towpath.lab.bench.steps import Limit, Pace, Say, find_limit, observe
from towpath.lab.bench.submission import LateSubmission, submit
from towpath.lab.bench.workloads import CHANNELS, DELAY_US, MOST, STREAMS, WorkloadKind
from towpath.plan import CarrierKinds

QUERIES_OF_A_SHAPE = 5
DELAY = f"{DELAY_US} microseconds"
# How a query picks its tuples, about one or two in a hundred; then what else it may ask of them. `{c}`, `{k}` and `{x}`
# are its constants: a channel, a small number, and a price.
FIRST = ("channel = {c}", "channel % 50 = {k}", "channel IN ({c}, {k})", "channel BETWEEN {c} AND {c} + 1")
FURTHER = (
    "price > {x}",
    "price * 1.19 < {x}",
    "price <> {x}",
    "abs(price - {x}) < 250",
    "sqrt(price) < {k}",
    "floor(price) % 3 = 1",
    "round(price, 1) > {x}",
    "NOT (price < {x} AND channel < {c})",
    "(price > {x} OR channel = {c})",
    "CASE WHEN price > {x} THEN channel % 2 ELSE 1 END = 1",
    "ceil(price / 10) % 7 <> {k}",
    "greatest(price, {x}) > 300",
    "coalesce(price, 0) + channel > {x}",
)
ITEMS = (
    "channel",
    "price",
    "price * {x}",
    "round(price / {x}, 2)",
    "channel % 10",
    "CASE WHEN price > {x} THEN 'high' ELSE 'low' END",
    "CAST(channel AS STRING)",
    "floor(price)",
    "least(price, {x})",
    "sqrt(price) + {k}",
)
GROUPS = ("channel", "channel % 10", "floor(price / 100)", "CASE WHEN price > {x} THEN 1 ELSE 0 END")
AGGREGATES = (
    "count(*)",
    "sum(price)",
    "avg(price)",
    "max(price)",
    "min(price)",
    "sum(channel)",
    "avg(price * 2)",
    "max(price) - min(price)",
)
HAVING = ("count(*) > 1", "max(price) > {x}", "avg(price) < 900")
# By the kind of carrier that takes them; none of the shapes that are drawn has such a condition.
UNSEEN = {
    "filters": "SELECT channel, price FROM trades WHERE (channel * 7 + 3) % 11 = 5 AND price < 900",
    "windows": "SELECT count(*) AS n FROM trades [RANGE 1 SECOND] WHERE (channel * 7 + 3) % 11 = 5",
    "joins": "SELECT a.k FROM s1 [RANGE 9 SECONDS] AS a, s2 [RANGE 9 SECONDS] AS b WHERE a.k = b.k AND a.a * b.a > 5",
}
WINDOWS = ((2, 2), (5, 5), (10, 10), (4, 2), (6, 3), (10, 5))  # seconds: range and slide


@dataclass(frozen=True)
class MixedShape:
    """A query whose constants are left open."""

    kind: str
    conditions: tuple[str, ...]
    items: tuple[str, ...]
    group: str = ""
    having: str = ""
    window: tuple[int, int] = (2, 2)

    def filled(self, rng: Random) -> MixedShape:
        values = {"c": str(rng.randrange(CHANNELS)), "k": str(rng.randrange(30)), "x": f"{rng.uniform(1, MOST):.3f}"}

        def fill(text: str) -> str:
            return re.sub(r"\{([ckx])\}", lambda m: values[m[1]], text)

        conditions, items = (tuple(map(fill, texts)) for texts in (self.conditions, self.items))
        return MixedShape(self.kind, conditions, items, fill(self.group), fill(self.having), self.window)


def drawn(rng: Random, kinds: tuple[str, ...]) -> MixedShape:
    kind = rng.choice(kinds)
    conditions = (rng.choice(FIRST), *rng.sample(FURTHER, rng.randint(0, 2)))
    if kind == "windows":
        group, having = rng.choice(("", *GROUPS)), rng.choice(("", "", *HAVING))
        aggregates = tuple(rng.sample(AGGREGATES, rng.randint(1, 3)))
        return MixedShape(kind, conditions, aggregates, group, having, rng.choice(WINDOWS))
    if kind == "joins":
        conditions = tuple(f"{side}.a {rng.choice('<>')} {{x}}" for side in "ab" if rng.random() < 0.8)
        items = tuple(rng.sample(("a.k", "a.a", "b.a", "a.a + b.a", "round(a.a, 1)", "abs(a.a - b.a)"), 2))
        return MixedShape(kind, conditions, items, window=(rng.randint(2, 5), 0))
    return MixedShape(kind, conditions, tuple(rng.sample(ITEMS, rng.randint(1, 3))))


def shapes(kinds: tuple[str, ...], seed: int = 1) -> Iterator[MixedShape]:
    """All different."""
    rng, seen = Random(seed), set()
    while True:
        shape = drawn(rng, kinds)
        if shape not in seen:
            seen.add(shape)
            yield shape


class MixedQueries:
    """Query n is always the same: of shape n / 5, or, with `most` shapes, of each of them in turn."""

    def __init__(self, kinds: tuple[str, ...], most: int | None = None) -> None:
        self._shapes = shapes(kinds)
        self._most = most
        self._drawn: list[MixedShape] = []

    def __call__(self, n: int) -> MixedShape:
        shape = n // QUERIES_OF_A_SHAPE if self._most is None else n % self._most
        while len(self._drawn) <= shape:
            self._drawn.append(next(self._shapes))
        return self._drawn[shape].filled(Random(n))


def workload(kinds: tuple[str, ...], most: int | None = None) -> WorkloadKind:
    queries = MixedQueries(kinds, most)
    return WorkloadKind(lambda n: sql(queries(n), n), lambda data, n: by_hand(queries(n), data, n))


def sql(query: MixedShape, n: int) -> str:
    items = ", ".join(f"{item} AS v{i}" for i, item in enumerate(query.items))
    where = f" WHERE {' AND '.join(query.conditions)}" if query.conditions else ""
    if query.kind == "filters":
        return f"SELECT {items} FROM trades{where}"
    if query.kind == "joins":
        left, right = _streams(n)
        window = f"[RANGE {query.window[0]} SECONDS]"
        on = f"FROM s{left} {window} AS a JOIN s{right} {window} AS b ON a.k = b.k"
        return f"SELECT {items} {on}{where}"
    length, slide = query.window
    text = f"SELECT {items} FROM trades [RANGE {length} SECONDS SLIDE {slide} SECONDS]{where}"
    text += f" GROUP BY {query.group}" if query.group else ""
    return text + (f" HAVING {query.having}" if query.having else "")


def _streams(n: int) -> tuple[int, int]:
    left, right = Random(n).sample(range(STREAMS), 2)
    return left, right


def by_hand(query: MixedShape, data: DataFrame, n: int) -> DataFrame:
    if query.kind == "joins":
        return _join_by_hand(query, data, *_streams(n))
    rows = data
    for condition in query.conditions:
        rows = rows.where(F.expr(condition))
    items = [F.expr(item).alias(f"v{i}") for i, item in enumerate(query.items)]
    if query.kind == "filters":
        return rows.select(*items, "at")
    length, slide = (f"{seconds} seconds" for seconds in query.window)
    groups = [F.expr(query.group).alias("g")] if query.group else []
    having = [F.expr(query.having).alias("kept")] if query.having else []
    grouped = rows.withWatermark("at", DELAY).groupBy(F.window("at", length, slide), *groups).agg(*items, *having)
    return grouped.where("kept") if having else grouped


def _join_by_hand(query: MixedShape, data: DataFrame, left: int, right: int) -> DataFrame:
    a, b = (
        data.where(F.col("stream") == stream).select("k", "a", "at").withWatermark("at", DELAY).alias(side)
        for side, stream in (("a", left), ("b", right))
    )
    near = f"b.at BETWEEN a.at - INTERVAL {query.window[0]} SECONDS AND a.at + INTERVAL {query.window[0]} SECONDS"
    joined = a.join(b, F.expr(" AND ".join(["a.k = b.k", near, *query.conditions])))
    return joined.select(*(F.expr(item).alias(f"v{i}") for i, item in enumerate(query.items)))


# --- the measurement -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MixedPlan:
    """What to measure, and how thoroughly. Numbers are of queries."""

    kinds: tuple[str, ...] = MIXED_KINDS
    rate: int = RATE
    cores: int = 2
    pace: Pace = field(default_factory=Pace)
    first: int = 100
    most: int = 10_000
    first_plain: int = 5
    most_plain: int = 80
    setting: SparkSetting = SETTINGS[-1]
    carriers: CarrierKinds = CarrierKinds.AUTO
    patience_s: float = 300.0
    running: int = 1000  # when a query of another shape is submitted


QUICK = MixedPlan(
    rate=500,
    pace=Pace(longest_trigger_s=60, warm_up_s=1, measure_s=2, least_triggers=2),
    first=10,
    most=10,
    first_plain=1,
    most_plain=1,
    running=40,  # so many that filters are of several shapes: with one, its plan is all that runs
)


@dataclass(frozen=True)
class ColdStart:
    """A job that is started with as many queries as keep up."""

    seconds: float  # until every carrier has done a micro-batch
    carriers: int


@dataclass(frozen=True)
class MixedReport:
    plain: Limit
    towpath: Limit
    started: ColdStart
    unseen: LateSubmission  # a query of a shape that was never there before
    company: Company

    def to_json(self) -> dict[str, Any]:
        both = {"plain": self.plain.n, "towpath": self.towpath.n}
        return {
            "shapes": {who: shapes_of(n) for who, n in both.items()},
            "queries": both,
            "start_s": round(self.started.seconds, 1),
            "carriers": self.started.carriers,
            "p95_s": None if self.towpath.best is None else round(self.towpath.best.p95, 2),
            "unseen_shape": {
                "running": self.unseen.running,
                "triggers": self.unseen.triggers,
                "carriers_started": self.unseen.carriers_started,
            },
            "machine": self.company.to_json(),
        }


def shapes_of(queries: int) -> int:
    return -(-queries // QUERIES_OF_A_SHAPE)


def run(plan: MixedPlan, report: ReportStep) -> MixedReport:
    with watched() as watch:
        theirs, ours, started, unseen = _measure_all(plan, report)
    return MixedReport(theirs, ours, started, unseen, watch.company())


def _measure_all(plan: MixedPlan, report: ReportStep) -> tuple[Limit, Limit, ColdStart, LateSubmission]:
    log = new_log()
    say = partial(report, "mixed", "plain")
    theirs = apart(plain_limit, plan, log=log, say=say)
    say(str(theirs))
    say = partial(report, "mixed", "towpath")
    ours = apart(towpath_limit, plan, log=log, say=say)
    started = apart(start, plan, ours.n, log=log, say=say)
    unseen = apart(submit_unseen, plan, log=log, say=say)
    say(f"{ours} queries, {started.carriers} carriers")
    log.unlink()  # of use only when something failed
    return theirs, ours, started, unseen


def plain_limit(plan: MixedPlan, say: Say) -> Limit:
    opened = partial(plain.opened, workload(plan.kinds), plan.setting, plan.rate, plan.cores, say)
    return find_limit(opened, plan.first_plain, plan.most_plain, plan.pace, say)


def towpath_limit(plan: MixedPlan, say: Say) -> Limit:
    requests = shared.SharedRequests(workload(plan.kinds), say)
    opened = partial(shared.opened, requests, plan.rate, plan.cores, plan.carriers)
    return find_limit(opened, plan.first, plan.most, plan.pace, say)


def submit_unseen(plan: MixedPlan, say: Say) -> LateSubmission:
    """One more query for a job that runs many, of a shape that none of them has."""
    requests = shared.SharedRequests(workload(plan.kinds), say)
    with shared.opened(requests, plan.rate, plan.cores, plan.carriers) as system:
        system.grow_to(plan.running)
        observe(system, plan.running, plan.pace, say)
        return submit(system, plan.running, UNSEEN[plan.kinds[0]], say)


def start(plan: MixedPlan, n: int, say: Say) -> ColdStart:
    """How long a new job with n queries takes until all of them are answered."""
    requests = shared.SharedRequests(workload(plan.kinds), say)
    requests.first(n)
    begin = time.monotonic()
    with shared.opened(requests, plan.rate, plan.cores, plan.carriers) as system:
        system.grow_to(n)
        shared.wait_for_all(system.running.engine, plan.patience_s)
        return ColdStart(time.monotonic() - begin, len(system.running.engine.carriers))
