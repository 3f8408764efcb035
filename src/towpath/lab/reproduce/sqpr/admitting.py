"""Figure 4a: how many queries are admitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median, quantiles, stdev

from towpath.lab.reproduce.report import Cell, ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.lab.reproduce.sqpr.setting import (
    ASSUMED,
    ASSUMED_BESIDE,
    GAP,
    SIZES,
    WIDE_GAP,
    SqprCase,
    SqprPlanner,
    SqprSeen,
    kept_file,
    marks,
    measure,
    scaled_down,
    simulated,
)

TIMEOUTS: dict[Scale, tuple[float, ...]] = {"tiny": (5.0,), "default": (5.0, 30.0, 60.0), "full": (5.0,)}


def fig4a(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Queries admitted against queries submitted, for three time limits (SQPR, Fig. 4a)."""
    systems = [simulated(SIZES[scale], seed) for seed in seeds]
    ways: dict[str, tuple[SqprPlanner, float]] = {f"SQPR, {s:.0f} s": ("sqpr", s) for s in TIMEOUTS[scale]}
    ways |= {"heuristic": ("heuristic", 0.0), "aggregate node": ("aggregate", 0.0), "bound": ("bound", 0.0)}
    gap = WIDE_GAP if scale == "full" else GAP
    cases = [
        SqprCase(
            system,
            planner,
            seconds,
            gap=gap,
            beside=True,
            kept=kept_file(f"fig4a-{scale}-{seed}-{planner}-{seconds:.0f}"),
        )
        for planner, seconds in ways.values()
        for system, seed in zip(systems, seeds, strict=True)
    ]
    answers = iter(run_all(measure, cases, progress))
    seen = {name: [next(answers) for _ in seeds] for name in ways}
    planned = {name: runs for name, runs in seen.items() if name.startswith("SQPR")}
    return ExperimentReport(
        statements=_statements(seen, planned),
        tables=(admitted_table(seen), times_table(planned)),
        plots=(admitted_plot("Queries admitted", seen),),
        scaled_down=(*scaled_down(scale), *(ONLY_FULL if scale == "full" else ())),
        assumed=(*ASSUMED, *ASSUMED_BESIDE),
        explained=EXPLAINED,
    )


ONLY_FULL = (
    "the 5 s limit only: with 60 s, 1,000 queries may take 17 hours",
    f"the search ends within {WIDE_GAP:.0%} of the best possible",
)
EXPLAINED = (
    "The aggregate node takes queries as they come, as every planner here does. The proven bound may choose among all "
    "that were submitted, and chooses those that are cheap; nobody who has to answer at once can do that.",
)


def _statements(seen: dict[str, list[SqprSeen]], planned: dict[str, list[SqprSeen]]) -> tuple[Statement, ...]:
    heuristic, aggregate, bound = seen["heuristic"], seen["aggregate node"], seen["bound"]
    found = []
    for name, runs in planned.items():
        found += [
            Statement.over(
                f"{name}: admits more than the heuristic planner: its queries / the heuristic's",
                "above 1",
                [a.last / b.last for a, b in zip(runs, heuristic, strict=True)],
                lambda ratio: ratio > 1,
            ),
            Statement.over(
                f"{name}: within 25% of the optimistic bound: its queries / those of the aggregate node, as they come",
                "0.75 at least",
                [a.last / b.last for a, b in zip(runs, aggregate, strict=True)],
                lambda ratio: ratio >= 0.75,
            ),
            Statement.over(
                f"{name}: its queries / those that no choice of queries can exceed, proven",
                "0.75 at least",
                [a.last / b.last for a, b in zip(runs, bound, strict=True)],
                lambda ratio: ratio >= 0.75,
            ),
        ]
    return tuple(found)


def admitted_table(seen: dict[str, list[SqprSeen]]) -> Table:
    queries = len(next(iter(seen.values()))[0].admitted)
    rows = [
        (mark, *(fmean(run.admitted[mark - 1] for run in runs) for runs in seen.values())) for mark in marks(queries)
    ]
    return Table("Queries admitted, means over the seeds", ("submitted", *seen), tuple(rows))


def times_table(planned: dict[str, list[SqprSeen]]) -> Table:
    """How long planning a query took, and what the solver said."""
    rows: list[tuple[Cell, ...]] = []
    for name, runs in planned.items():
        times = sorted(second for run in runs for second in run.seconds)
        said = sum((run.statuses for run in runs), Counter[str]())
        rows.append(
            (
                name,
                median(times),
                quantiles(times, n=20)[-1],
                sum(times) / len(runs),
                *(said[status] for status in STATUSES),
                fmean(float(run.cpu.mean()) for run in runs),
            )
        )
    columns = ("planner", "median s", "95th percentile s", "all queries s", *STATUSES, "cpu used")
    return Table("Planning time per query, and how often the solver said what", columns, tuple(rows))


STATUSES = ("optimal", "feasible", "infeasible", "out of time")


def admitted_plot(title: str, seen: dict[str, list[SqprSeen]]) -> Lines:
    at = marks(len(next(iter(seen.values()))[0].admitted))
    lines = []
    for name, runs in seen.items():
        values = [[float(run.admitted[mark - 1]) for run in runs] for mark in at]
        spread = tuple(stdev(of_mark) if len(of_mark) > 1 else 0.0 for of_mark in values)
        lines.append(Series(name, tuple(map(fmean, values)), tuple(map(float, at)), spread))
    return Lines(title, "queries submitted", "queries admitted", tuple(lines))
