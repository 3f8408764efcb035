"""sbon-live: queries placed by distance on three real nodes, beside round robin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from towpath.api.running import start
from towpath.lab.reproduce.live.apart import (
    DISTANCES,
    NODES,
    PAIRS,
    RATES,
    ApartOutcome,
    ApartPlan,
    Rows,
    Watch,
    finish,
    followed,
    job,
    sql,
)
from towpath.lab.reproduce.live.nodes import Machines, machines
from towpath.lab.reproduce.report import Cell, ExperimentReport, Progress, Scale, Statement, Table

PLANS: Mapping[Scale, ApartPlan] = {
    "tiny": ApartPlan(queries=6, shared=1, warm_s=10, measure_s=5),
    "default": ApartPlan(queries=300, warm_s=20, measure_s=10),
    "full": ApartPlan(queries=300, warm_s=120, measure_s=60),
}
LIMITS = {"rest": "20 s", "per_node": 1000, "per_minute": 10_000}
CASES: Mapping[str, Mapping[str, object]] = {
    "relaxation": {
        "planner": "relaxation",
        "planner_options": {"load_scale": 0},
        "policy": "sbon",
        "options": {"every": 20, "sample": 2, "window": 5, "load_scale": 0, "most_load": 1000},
        "every": "5 s",
        "limits": LIMITS,
    },
    "round robin": {"planner": "round_robin", "policy": "static", "every": "5 s"},
}
CLOSE = 0.25  # predicted and measured differ by no more than this share


def live(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """On Spark nodes: network usage and delay of up to 300 queries placed by relaxation, against round robin."""
    plan = PLANS[scale]
    found: dict[str, ApartOutcome] = {}
    with machines(NODES, progress) as place:
        for number, (name, control) in enumerate(CASES.items()):
            progress(f"{plan.queries} queries, {name}", (number + 0.2) / len(CASES))
            found[name] = measure(place, plan, name, control, seeds)
    return report(found, plan, scale)


def measure(
    place: Machines, plan: ApartPlan, name: str, control: Mapping[str, object], seeds: Sequence[int]
) -> ApartOutcome:
    folder, queries = place.folder / name.replace(" ", "-"), sql(plan)
    described = job(place, folder, queries, control, cut=True)
    rows = Rows(folder, seeds[0])
    with start(described) as running:
        watch = Watch(running, rows)
        watch.until_all_answer(followed(queries))
        watch.run(plan.warm_s)
        seen = [watch.seen(plan.measure_s) for _ in seeds]
        outcome = finish(running, rows, queries)
    outcome.seen = seen
    return outcome


def report(found: Mapping[str, ApartOutcome], plan: ApartPlan, scale: Scale) -> ExperimentReport:
    near, dealt = found["relaxation"], found["round robin"]
    saved = [1 - a.usage / b.usage for a, b in zip(near.seen, dealt.seen, strict=True) if b.usage]
    predicted = [s.usage / s.predicted_usage for o in (near, dealt) for s in o.seen if s.predicted_usage]
    quicker = [b.delay - a.delay for a, b in zip(near.seen, dealt.seen, strict=True)]
    wrong = len(near.wrong) + len(dealt.wrong)
    return ExperimentReport(
        statements=(
            Statement.over("Network usage saved against round robin", "> 0", saved, lambda mean: mean > 0),
            Statement.over(
                f"Measured over predicted network usage ({CLOSE:.0%} apart at most)",
                "1",
                predicted,
                lambda mean: abs(mean - 1) <= CLOSE,
            ),
            Statement.over(
                "Seconds by which the worst delay is shorter than with round robin",
                "> 0",
                quicker,
                lambda mean: mean > 0,
            ),
            Statement.exact("Queries admitted", str(plan.queries), near.admitted, lambda n: n == plan.queries),
            Statement.exact("Answers that differ from DuckDB's", "0", wrong, lambda n: n == 0),
        ),
        tables=(_table(found), _distances(found)),
        scaled_down=(
            f"{NODES} nodes on one machine; streams of {', '.join(f'{rate}' for rate in RATES.values())} rows/s, and "
            f"{plan.queries} queries over {len(PAIRS)} pairs of them, {plan.shared} of which share a join.",
        ),
        assumed=(
            "Distances are given and injected: who reads a stream or a link from another node sleeps that long. The "
            "paper's are measured on PlanetLab.",
            "The cost space is one of latencies alone: three nodes share two cores, and load says little.",
            "Network usage is measured as what readers read from other nodes, each carrier by itself, times the "
            "distance. Delays are from the end of a window by the clock until its result is in the log: they contain "
            "the micro-batches, which take much longer than the network.",
        ),
        explained=(
            "Queries of one shape share a carrier, which is what the planner places, so few things have a place of "
            "their own. Predicted and measured differ where two carriers of a node read one stream, each by itself: "
            "the model sends it there once.",
        ),
    )


def _table(found: Mapping[str, ApartOutcome]) -> Table:
    heads = (
        "placement",
        "usage predicted (kB)",
        "measured (kB)",
        "worst delay predicted, network alone (s)",
        "measured, all of it (s)",
        "admitted",
        "moves",
        "rows of answers",
        "answers unlike DuckDB's",
    )
    rows = tuple(
        (
            name,
            o.mean("predicted_usage") / 1000,
            o.mean("usage") / 1000,
            o.mean("predicted_delay"),
            o.mean("delay"),
            o.admitted,
            o.moves,
            o.rows,
            len(o.wrong),
        )
        for name, o in found.items()
    )
    return Table("Placed by relaxation, and one after the other", heads, rows)


def _distances(found: Mapping[str, ApartOutcome]) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (f"{a} and {b}", seconds * 1000, *(o.latencies.get((a, b), float("nan")) * 1000 for o in found.values()))
        for (a, b), seconds in DISTANCES.items()
    )
    return Table("Latencies in ms: injected, and measured by links", ("nodes", "injected", *found), rows)
