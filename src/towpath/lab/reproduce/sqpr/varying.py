"""Figures 4b to 6b: the system of section V-A with one thing varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from towpath.lab.reproduce.report import ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.lab.reproduce.sqpr.admitting import admitted_plot, admitted_table, times_table
from towpath.lab.reproduce.sqpr.setting import (
    ASSUMED,
    SIZES,
    SqprCase,
    SqprSeen,
    SqprSize,
    constrained,
    measure,
    scaled_down,
    simulated,
    with_limits_of,
    workload,
)
from towpath.reuse.system import System

SECONDS: dict[Scale, float] = {"tiny": 1.0, "default": 1.0, "full": 30.0}  # for each query
BUSY = (0.75, 0.95)  # of cpu or bandwidth, whichever is scarcer: when planning is hardest, says the paper
HOSTS: dict[Scale, tuple[int, ...]] = {"tiny": (2, 3), "default": (3, 4, 6, 8), "full": (25, 50, 75, 100)}
WAYS: dict[Scale, tuple[int, ...]] = {"tiny": (2, 3), "default": (2, 3, 4, 5), "full": (2, 3, 4, 5)}

Runs = dict[str, list[SqprSeen]]


def fig4b(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Queries planned in batches of several (SQPR, Fig. 4b)."""
    sizes = (1, 2) if scale == "tiny" else (1, 2, 3, 5)
    systems = [simulated(SIZES[scale], seed) for seed in seeds]
    cases = {f"{n} at once": [SqprCase(s, "sqpr", SECONDS[scale], n) for s in systems] for n in sizes}
    seen = _run(cases, progress)
    alone, most = seen["1 at once"], seen[f"{sizes[-1]} at once"]
    statement = Statement.over(
        f"batches admit fewer: queries admitted with batches of {sizes[-1]} / one at a time",
        "below 1",
        [a.last / b.last for a, b in zip(most, alone, strict=True)],
        lambda ratio: ratio < 1,
    )
    return _report(scale, seen, (statement,), (admitted_plot("Queries admitted in batches", seen),), FIG4B)


FIG4B = (
    "A batch is chosen from: of several queries the program takes those that cost least, which one at a time cannot. "
    "That admits more as long as the time suffices to solve the larger program.",
)


def fig4c(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """More and less overlap between queries: streams to choose from, and how evenly (SQPR, Fig. 4c)."""
    size = SIZES[scale]
    limits = [simulated(size, seed) for seed in seeds]
    settings = [(size.streams // 2, 1.0), (size.streams, 1.0), (size.streams * 2, 1.0), (size.streams, 0.0)]
    cases = {
        f"{streams} streams, Zipf {theta:.0f}": [
            SqprCase(with_limits_of(workload(size, seed, streams, theta), of_seed), "sqpr", SECONDS[scale])
            for seed, of_seed in zip(seeds, limits, strict=True)
        ]
        for streams, theta in settings
    }
    seen = _run(cases, progress)
    few, usual, many, even = seen.values()
    statements = (
        _ratio("fewer streams overlap more and admit more: half the streams / twice as many", few, many),
        _ratio("popular streams overlap more and admit more: Zipf 1 / streams drawn evenly", usual, even),
    )
    return _report(scale, seen, statements, (admitted_plot("Queries admitted by overlap", seen),))


def _ratio(claim: str, more: list[SqprSeen], less: list[SqprSeen]) -> Statement:
    values = [a.last / b.last for a, b in zip(more, less, strict=True)]
    return Statement.over(claim, "above 1", values, lambda ratio: ratio > 1)


def fig5a(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """More hosts, each as before (SQPR, Fig. 5a)."""
    hosts = HOSTS[scale]
    systems = {str(n): _with_hosts(scale, n, seeds) for n in hosts}
    planned, best = _with_bound(systems, SECONDS[scale], progress)
    first, last = planned[str(hosts[0])], planned[str(hosts[-1])]
    factor = hosts[-1] / hosts[0]
    gap = _efficiency(planned, best)
    statements = (
        Statement.over(
            f"admitted queries grow faster than hosts: growth / that of the hosts, {hosts[0]} to {hosts[-1]}",
            "super-linear: above 1",
            [b.last / a.last / factor for a, b in zip(first, last, strict=True)],
            lambda ratio: ratio > 1,
        ),
        Statement.over(
            "the gap to the aggregate node widens: its share with most hosts - with fewest",
            "below 0",
            [b - a for a, b in zip(gap[str(hosts[0])], gap[str(hosts[-1])], strict=True)],
            lambda change: change < 0,
        ),
    )
    return _report(scale, planned, statements, (_against("hosts", planned, best),), table=False)


def _with_hosts(scale: Scale, hosts: int, seeds: Sequence[int]) -> list[System]:
    """All with the queries per host and the nodes of the usual size."""
    usual = SIZES[scale]
    return [with_limits_of(workload(_size(scale, hosts), seed), simulated(usual, seed)) for seed in seeds]


def fig5b(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Hosts with more CPU and bandwidth (SQPR, Fig. 5b)."""
    factors = (1, 2) if scale == "tiny" else (1, 2, 3, 4)
    usual = [simulated(SIZES[scale], seed) for seed in seeds]
    systems = {str(n): [with_limits_of(system, system, n / 2) for system in usual] for n in factors}
    planned, best = _with_bound(systems, SECONDS[scale], progress)
    gap = _efficiency(planned, best)
    statement = Statement.over(
        "near the optimum with more resources: queries admitted / those of the aggregate node, most resources",
        "near optimal; read as 0.9 at least",
        gap[str(factors[-1])],
        lambda share: share >= 0.9,
    )
    plot = _against("resources, in halves of the usual", planned, best)
    return _report(scale, planned, (statement,), (plot,), table=False)


def fig5c(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Queries of more streams (SQPR, Fig. 5c)."""
    planned, best = _with_bound(_with_ways(scale, seeds), SECONDS[scale], progress)
    by_seed = list(zip(*_efficiency(planned, best).values(), strict=True))
    first, last = (planned[str(WAYS[scale][n])] for n in (0, -1))
    statements = (
        Statement.over(
            "queries of more streams are admitted less: most streams / fewest",
            "below 1",
            [b.last / a.last for a, b in zip(first, last, strict=True)],
            lambda ratio: ratio < 1,
        ),
        Statement.over(
            "the share of the aggregate node's queries hardly depends on it: smallest / largest",
            "more or less independent; read as 0.75 at least",
            [min(shares) / max(shares) for shares in by_seed],
            lambda ratio: ratio >= 0.75,
        ),
    )
    return _report(scale, planned, statements, (_against("streams per query", planned, best),), table=False)


def _with_ways(scale: Scale, seeds: Sequence[int]) -> dict[str, list[System]]:
    size = SIZES[scale]
    limits = [simulated(size, seed) for seed in seeds]
    return {
        str(n): [with_limits_of(workload(size, seed, ways=(n, n)), s) for seed, s in zip(seeds, limits, strict=True)]
        for n in WAYS[scale]
    }


LIMIT: dict[Scale, float] = {"tiny": 2.0, "default": 10.0, "full": 100.0}


def fig6a(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Planning time against the number of hosts, when resources are scarce (SQPR, Fig. 6a)."""
    systems = {str(n): [constrained(workload(_size(scale, n), seed)) for seed in seeds] for n in HOSTS[scale]}
    cases = {name: [SqprCase(s, "sqpr", LIMIT[scale]) for s in of_seeds] for name, of_seeds in systems.items()}
    seen = _run(cases, progress)
    times = {name: [busy_time(run) for run in runs] for name, runs in seen.items()}
    name = str(HOSTS[scale][-1])
    statements = (
        Statement.over(
            f"{name} hosts are planned to optimality: mean seconds / the limit of {LIMIT[scale]:.0f} s",
            "below 1",
            [seconds / LIMIT[scale] for seconds in times[name]],
            lambda share: share < 1,
        ),
        _growth("more hosts take longer: time with most / with fewest", times),
    )
    return _report(scale, seen, statements, (_times_plot("hosts", times),), table=False)


def fig6b(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Planning time against the streams per query, when resources are scarce (SQPR, Fig. 6b)."""
    cases = {
        name: [SqprCase(constrained(s), "sqpr", LIMIT[scale]) for s in of_seeds]
        for name, of_seeds in _with_ways(scale, seeds).items()
    }
    seen = _run(cases, progress)
    times = {name: [busy_time(run) for run in runs] for name, runs in seen.items()}
    statements = (_growth("queries of more streams take longer: time with most / with fewest", times),)
    return _report(scale, seen, statements, (_times_plot("streams per query", times),), table=False)


def _size(scale: Scale, hosts: int) -> SqprSize:
    usual = SIZES[scale]
    return SqprSize(hosts, max(usual.queries * hosts // usual.nodes, 2))


def busy_time(seen: SqprSeen) -> float:
    """Mean seconds of planning a query while resources are scarce; over all queries if they never are."""
    busy = [s for s, used in zip(seen.seconds, seen.used, strict=True) if BUSY[0] <= used <= BUSY[1]]
    return fmean(busy or seen.seconds)


def _growth(claim: str, times: Mapping[str, list[float]]) -> Statement:
    first, *_, last = times.values()
    return Statement.over(claim, "above 1", [b / a for a, b in zip(first, last, strict=True)], lambda ratio: ratio > 1)


# --- what they have in common ----------------------------------------------------------------------------------------


def _run(cases: Mapping[str, list[SqprCase]], progress: Progress) -> Runs:
    answers = iter(run_all(measure, [case for of_seeds in cases.values() for case in of_seeds], progress))
    return {name: [next(answers) for _ in of_seeds] for name, of_seeds in cases.items()}


def _with_bound(systems: Mapping[str, list[System]], seconds: float, progress: Progress) -> tuple[Runs, Runs]:
    """By SQPR, and by the aggregate node."""
    planned = _run({n: [SqprCase(s, "sqpr", seconds) for s in of_seeds] for n, of_seeds in systems.items()}, progress)
    best = {n: [measure(SqprCase(s, "aggregate")) for s in of_seeds] for n, of_seeds in systems.items()}
    return planned, best


def _efficiency(planned: Runs, best: Runs) -> dict[str, list[float]]:
    return {n: [a.last / b.last for a, b in zip(planned[n], best[n], strict=True)] for n in planned}


def _against(label: str, planned: Runs, best: Runs) -> Lines:
    def line(name: str, runs: Runs) -> Series:
        return _series(name, {x: [float(seen.last) for seen in of_seeds] for x, of_seeds in runs.items()})

    lines = (line("SQPR", planned), line("aggregate node", best))
    return Lines(f"Queries admitted by {label}", label, "queries admitted", lines)


def _times_plot(label: str, times: Mapping[str, list[float]]) -> Lines:
    return Lines(f"Planning time by {label}", label, "seconds per query", (_series("SQPR", times),))


def _series(name: str, values: Mapping[str, list[float]]) -> Series:
    spread = tuple(stdev(of_seeds) if len(of_seeds) > 1 else 0.0 for of_seeds in values.values())
    return Series(name, tuple(map(fmean, values.values())), tuple(map(float, values)), spread)


def _report(
    scale: Scale,
    seen: Runs,
    statements: tuple[Statement, ...],
    plots: tuple[Lines, ...],
    explained: tuple[str, ...] = (),
    table: bool = True,
) -> ExperimentReport:
    smaller = scaled_down(scale)
    if scale != "full":
        smaller += (f"{SECONDS[scale]:.0f} s ({LIMIT[scale]:.0f} s in Fig. 6) for each query instead of 30 (100)",)
    counts = admitted_table(seen) if table else last_table(seen)
    return ExperimentReport(statements, (counts, times_table(seen)), plots, smaller, ASSUMED, explained)


def last_table(seen: Runs) -> Table:
    rows = tuple((name, fmean(run.last for run in runs), len(runs[0].admitted)) for name, runs in seen.items())
    return Table("Queries admitted, means over the seeds", ("", "admitted", "submitted"), rows)
