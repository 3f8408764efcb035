"""hummer-live: buffers that three real nodes keep of the same streams, brought together while data flows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from towpath.api.running import Towpath, start
from towpath.config.steering import ControlDef
from towpath.lab.reproduce.live.apart import NODES, ApartOutcome, ApartPlan, Rows, Watch, finish, followed, job, sql
from towpath.lab.reproduce.live.nodes import machines
from towpath.lab.reproduce.report import Cell, ExperimentReport, Progress, Scale, Statement, Table

PAIRS = (("a", "b"),)
PLANS: Mapping[Scale, ApartPlan] = {
    "tiny": ApartPlan(queries=6, shared=1, warm_s=10, measure_s=5),
    "default": ApartPlan(queries=150, warm_s=20, measure_s=8),
    "full": ApartPlan(queries=300, warm_s=120, measure_s=60),
}
CONTROL = {
    "policy": "hummer",
    # Only what is buffered more than once counts; what comes moves all at once.
    "options": {"load": 0, "transfer": 0, "migration": 0, "every": 20, "stress": 2, "at_once": 1000},
    "every": "5 s",
    "limits": {"rest": "20 s", "per_node": 10_000, "per_minute": 10_000},
}
WATCHED = {"policy": "static", "every": "5 s"}
LOOK_S = 5.0
GATHER_S = 90.0


def live(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """On Spark nodes: streams buffered by several nodes, and rows kept, before VNS brings them together and after."""
    plan = PLANS[scale]
    queries = sql(plan, PAIRS)
    with machines(NODES, progress) as place:
        homes = {name: place.names[n % NODES] for n, name in enumerate(queries)}  # round robin
        described = job(place, place.folder / "hummer", queries, CONTROL, cut=False, homes=homes)
        rows = Rows(place.folder / "hummer", seeds[0])
        progress(f"{plan.queries} queries, dealt out one after the other", 0.2)
        with start(replace(described, control=ControlDef.model_validate(WATCHED))) as running:
            watch = _begun(running, rows, queries)
            watch.run(plan.warm_s)
            before = ApartOutcome([watch.seen(plan.measure_s) for _ in seeds])
        progress("the policy gathers what buffers the same streams", 0.5)
        with start(described) as running:
            watch = _begun(running, rows, queries)
            gathered = _gather(watch)
            seen = [watch.seen(plan.measure_s) for _ in seeds]
            after = finish(running, rows, queries)
    after.seen = seen
    return report(before, after, gathered, plan)


def _begun(running: Towpath, rows: Rows, queries: Mapping[str, str]) -> Watch:
    watch = Watch(running, rows)
    watch.until_all_answer(followed(queries))
    return watch


def _gather(watch: Watch) -> float:
    """Seconds until no stream is buffered more than once, or for as long as anybody waits."""
    begun = time.monotonic()
    while time.monotonic() < begun + GATHER_S and watch.seen(LOOK_S).buffering:
        pass
    return time.monotonic() - begun


def report(before: ApartOutcome, after: ApartOutcome, gathered: float, plan: ApartPlan) -> ExperimentReport:
    pairs = list(zip(before.seen, after.seen, strict=True))
    return ExperimentReport(
        statements=(
            Statement.exact(
                "D, streams that are buffered more than once, as the policy sees them",
                "0",
                after.mean("duplicated"),
                _none,
            ),
            Statement.exact("The same, of the carriers that really keep rows", "0", after.mean("buffering"), _none),
            Statement.over(
                "Rows that all nodes keep: share of those before",
                "< 1",
                [b.state_rows / a.state_rows for a, b in pairs if a.state_rows],
                lambda mean: mean < 1,
            ),
            Statement.exact("Answers that differ from DuckDB's", "0", len(after.wrong), _none),
        ),
        tables=(_table(before, after, gathered),),
        scaled_down=(
            f"{NODES} nodes on one machine, and {plan.queries} queries over one pair of streams, dealt out one after "
            "the other at first.",
        ),
        assumed=(
            "Duplication alone has a weight: what is shown is that buffers are shared as the model says, and not how "
            "the four parts of F weigh.",
            "Moved by fences: nothing is copied, and a node lets go of what it keeps a window later.",
        ),
    )


def _none(value: float) -> bool:
    return value == 0


def _table(before: ApartOutcome, after: ApartOutcome, gathered: float) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, o.mean("duplicated"), o.mean("buffering"), o.mean("state_rows"), o.mean("delay"), moves, seconds)
        for name, o, moves, seconds in (
            ("dealt out", before, 0, 0.0),
            ("gathered", after, after.moves, gathered),
        )
    )
    heads = (
        "placement",
        "D, as the policy sees it",
        "buffered more than once",
        "rows kept",
        "worst delay (s)",
        "moves",
        "seconds until it was so",
    )
    return Table("Before and after", heads, rows)
