"""Figure 7: memory, transfer and event rates while queries are added one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev

from towpath.lab.reproduce.hummer.adding import AddingCase, SearchBudget, Snapshot, add_queries
from towpath.lab.reproduce.hummer.setting import ASSUMED, WEIGHTS
from towpath.lab.reproduce.report import Cell, ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.problems.generate.hummer import Hummer

SETTINGS: dict[Scale, Hummer] = {"tiny": Hummer(nodes=3, sources=4), "default": Hummer(), "full": Hummer()}
STEPS: dict[Scale, int] = {"tiny": 4, "default": 30, "full": 30}
BUDGETS: dict[Scale, SearchBudget] = {
    "tiny": SearchBudget(evaluations=200),
    "default": SearchBudget(evaluations=10_000, patience=5_000),
    "full": SearchBudget(seconds=30.0, patience=100_000),
}
MEASURES: Mapping[str, tuple[str, Callable[[Snapshot], float]]] = {
    "Event buffers": ("MB", lambda s: s.memory / 1e6),
    "Transfer between nodes": ("kB/s", lambda s: s.transfer),
    "Lowest event rate of a node": ("events/s", lambda s: min(s.events)),
    "Highest event rate of a node": ("events/s", lambda s: max(s.events)),
    "Event rate of all nodes": ("events/s", lambda s: sum(s.events)),
}
Runs = Mapping[str, Sequence[Sequence[Snapshot]]]  # by weights; seed by seed, step by step


def fig7(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Buffers, transfer and event rates against the number of queries, by weights (WS-Aggregation, Figure 7)."""
    steps = tuple(range(1, STEPS[scale] + 1))
    cases = [AddingCase(SETTINGS[scale], w, steps, BUDGETS[scale], seed) for w in WEIGHTS for seed in seeds]
    seen = run_all(add_queries, cases, progress)
    runs = {
        w: [[after for _, after in found] for case, found in zip(cases, seen, strict=True) if case.weights == w]
        for w in WEIGHTS
    }
    return ExperimentReport(
        statements=_statements(runs),
        tables=(_table(runs, steps),),
        plots=tuple(_lines(title, unit, of, runs, steps) for title, (unit, of) in MEASURES.items()),
        scaled_down=()
        if scale == "full"
        else (f"at most {BUDGETS[scale].evaluations:,} solutions are priced after each query, instead of 30 s",),
        assumed=(
            *ASSUMED,
            "a buffer has the same size from the beginning; the paper measures the Java heap of XML objects, so that "
            "only ratios of memory can be compared",
            "a node's event rate is that of the sources that it buffers, each counted once",
            "statements are about the second half of the queries, in which nodes share sources",
        ),
        explained=EXPLAINED,
    )


EXPLAINED = (
    "D: what is left between nodes depends on how many of them the search leaves with buffers, since D is as small "
    "with one node as with ten. The paper's text gives no figure for its transfer.",
    "L: F with w_L alone does not look at dependencies, and evening out nodes of whole queries takes some apart.",
    "all: an additional buffer weighs as much as four dependencies here (1 against 0.25 kB/s each), and a step of the "
    "least load as much as seven. The optimum of L + T + D that was found for 30 queries cuts 30% of them.",
    "L against T in event rates: T says nothing about where whole queries are, so their range is that of the random "
    "beginning, and it differs from seed to seed.",
)


def _statements(runs: Runs) -> tuple[Statement, ...]:
    def ratios(one: str, other: str, of: Callable[[Snapshot], float]) -> list[float]:
        return [_late(a, of) / _late(b, of) for a, b in zip(runs[one], runs[other], strict=True)]

    def memory(s: Snapshot) -> float:
        return s.memory

    def width(s: Snapshot) -> float:
        return max(s.events) - min(s.events)

    high = "particularly high; read as 2 at least"
    return (
        Statement.over("memory of L over that of D", high, ratios("L", "D", memory), lambda m: m >= 2),
        Statement.over("memory of T over that of D", high, ratios("T", "D", memory), lambda m: m >= 2),
        Statement.over(
            "transfer of D: the share of dependencies that lead to another node",
            "quite high; read as 0.5 at least",
            [_late(run, _cut) for run in runs["D"]],
            lambda m: m >= 0.5,
        ),
        *(
            Statement.over(
                f"transfer of {w}: the share of dependencies that lead to another node",
                "near zero; read as 0.1 at most",
                [_late(run, _cut) for run in runs[w]],
                lambda m: m <= 0.1,
            )
            for w in ("L", "T", "all")
        ),
        *(
            Statement.over(
                f"highest less lowest event rate of L over that of {w}",
                "considerably lower; read as 0.5 at most",
                ratios("L", w, width),
                lambda m: m <= 0.5,
            )
            for w in ("D", "T")
        ),
    )


def _late(steps: Sequence[Snapshot], of: Callable[[Snapshot], float]) -> float:
    return fmean(map(of, steps[len(steps) // 2 :]))


def _cut(snapshot: Snapshot) -> float:
    return snapshot.cut / snapshot.queries  # each has one dependency


def _table(runs: Runs, steps: Sequence[int]) -> Table:
    columns = ("weights", "queries", *(f"{title}, {unit}" for title, (unit, _) in MEASURES.items()))
    shown = [n for n in range(len(steps)) if (n + 1) % max(len(steps) // 3, 1) == 0]
    rows: list[tuple[Cell, ...]] = []
    for w, of_seed in runs.items():
        rows += [(w, steps[n], *(fmean(of(run[n]) for run in of_seed) for _, of in MEASURES.values())) for n in shown]
    return Table("Means over the seeds", columns, tuple(rows))


def _lines(title: str, unit: str, of: Callable[[Snapshot], float], runs: Runs, steps: Sequence[int]) -> Lines:
    series = []
    for w, of_seed in runs.items():
        values = [[of(run[n]) for run in of_seed] for n in range(len(steps))]
        spread = tuple(stdev(v) if len(v) > 1 else 0.0 for v in values)
        series.append(Series(w, tuple(map(fmean, values)), tuple(map(float, steps)), spread))
    return Lines(title, "queries", unit, tuple(series))
