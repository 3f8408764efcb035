"""sqpr-live: queries that are submitted one by one to three real nodes, which do not have room for all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from towpath.api.running import Towpath, start
from towpath.errors import AdmissionRefused
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
from towpath.lab.reproduce.live.sbon import CLOSE, LIMITS, PLANS
from towpath.lab.reproduce.report import ExperimentReport, Progress, Scale, Statement, Table

# Of the queries, those that stand in the job file: they are taken in whatever they take, and show what others will.
FIRST = 0.2
MOST_LOAD = 0.5  # of a node's core
CASES: Mapping[str, Mapping[str, object]] = {
    "sqpr": {
        "planner": "sqpr",
        "policy": "sqpr",
        "options": {"every": 20, "window": 5, "most_load": MOST_LOAD},
        "admission": {"most_load": MOST_LOAD, "by": "planner"},
        "every": "5 s",
        "limits": LIMITS,
    },
    "round robin": {
        "planner": "round_robin",
        "policy": "static",
        "admission": {"most_load": MOST_LOAD},
        "every": "5 s",
    },
}


@dataclass(frozen=True)
class Submitted:
    """What became of the queries that came one by one."""

    outcome: ApartOutcome
    refused: int
    seconds: tuple[float, ...]  # that each took to be answered


def live(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """On Spark nodes: which of up to 300 queries the mixed-integer program admits, and where it places them."""
    plan = PLANS[scale]
    found: dict[str, Submitted] = {}
    with machines(NODES, progress) as place:
        for number, (name, control) in enumerate(CASES.items()):
            progress(f"{plan.queries} queries one by one, {name}", (number + 0.2) / len(CASES))
            found[name] = measure(place, plan, name, control, seeds)
    return report(found, plan)


def measure(
    place: Machines, plan: ApartPlan, name: str, control: Mapping[str, object], seeds: Sequence[int]
) -> Submitted:
    folder, queries = place.folder / name.replace(" ", "-"), sql(plan)
    count = max(len(followed(queries)), round(FIRST * len(queries)))
    first = dict(list(queries.items())[:count])
    later = {query: text for query, text in queries.items() if query not in first}
    rows = Rows(folder, seeds[0])
    with start(job(place, folder, first, control, cut=True)) as running:
        watch = Watch(running, rows)
        watch.until_all_answer(followed(queries))
        watch.run(plan.warm_s)
        refused, seconds = _submit(running, watch, later)
        watch.run(plan.warm_s)
        seen = [watch.seen(plan.measure_s) for _ in seeds]
        taken = {query: text for query, text in queries.items() if query not in refused}
        outcome = finish(running, rows, taken)
    return Submitted(replace(outcome, seen=seen), len(refused), tuple(seconds))


def _submit(running: Towpath, watch: Watch, queries: Mapping[str, str]) -> tuple[set[str], list[float]]:
    """The names of those that there is no room for, and how long each took."""
    refused, seconds = set(), []
    for name, text in queries.items():
        begun = time.monotonic()
        try:
            running.submit(name, text)
        except AdmissionRefused:
            refused.add(name)
        seconds.append(time.monotonic() - begun)
        watch.run(0.0)
    return refused, seconds


def report(found: Mapping[str, Submitted], plan: ApartPlan) -> ExperimentReport:
    planned, dealt = found["sqpr"].outcome, found["round robin"].outcome
    saved = [
        1 - (a.usage / planned.admitted) / (b.usage / dealt.admitted)
        for a, b in zip(planned.seen, dealt.seen, strict=True)
        if b.usage
    ]
    predicted = [s.usage / s.predicted_usage for o in (planned, dealt) for s in o.seen if s.predicted_usage]
    quicker = [b.delay - a.delay for a, b in zip(planned.seen, dealt.seen, strict=True)]
    wrong = len(planned.wrong) + len(dealt.wrong)
    return ExperimentReport(
        statements=(
            Statement.exact(
                "Queries admitted, for each that round robin has room for",
                ">= 1",
                planned.admitted / dealt.admitted,
                lambda ratio: ratio >= 1,
            ),
            Statement.over(
                "Network usage of an admitted query saved against round robin", "> 0", saved, lambda mean: mean > 0
            ),
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
            Statement.exact("Answers that differ from DuckDB's", "0", wrong, lambda n: n == 0),
        ),
        tables=(_table(found),),
        scaled_down=(
            f"{NODES} nodes on one machine; streams of {', '.join(f'{rate}' for rate in RATES.values())} rows/s, and "
            f"{plan.queries} queries over {len(PAIRS)} pairs of them, {plan.shared} of which share a join.",
        ),
        assumed=(
            f"Distances ({', '.join(f'{s * 1000:g}' for s in DISTANCES.values())} ms) are given and injected: who "
            "reads a stream or a link from another node sleeps that long. There are no relays: links lie on shared "
            "storage.",
            f"A node has room up to {MOST_LOAD:.0%} of a core, by what Spark was measured to take; {FIRST:.0%} of the "
            "queries stand in the job file, and what they take is what the others are expected to take.",
            "Round robin is asked for room, too: a query is refused where no node has any by the measured load.",
        ),
        explained=(
            "What a carrier takes hardly depends on how many queries it has, so a node is full by its carriers and its "
            "rows, and admission says less about queries than in the paper, where each has operators of its own.",
        ),
    )


def _table(found: Mapping[str, Submitted]) -> Table:
    heads = (
        "placement",
        "admitted",
        "refused",
        "seconds to answer a submission, median",
        "the slowest",
        "usage predicted (kB)",
        "measured (kB)",
        "worst delay predicted, network alone (s)",
        "measured, all of it (s)",
        "moves",
        "rows of answers",
        "answers unlike DuckDB's",
    )
    rows = tuple(
        (
            name,
            s.outcome.admitted,
            s.refused,
            sorted(s.seconds)[len(s.seconds) // 2] if s.seconds else 0.0,
            max(s.seconds, default=0.0),
            s.outcome.mean("predicted_usage") / 1000,
            s.outcome.mean("usage") / 1000,
            s.outcome.mean("predicted_delay"),
            s.outcome.mean("delay"),
            s.outcome.moves,
            s.outcome.rows,
            len(s.outcome.wrong),
        )
        for name, s in found.items()
    )
    return Table("Admitted and placed by the mixed-integer program, and one after the other", heads, rows)
