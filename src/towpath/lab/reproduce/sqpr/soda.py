"""Figure 7: SQPR and SODA on the cluster of section V-B, as their plans have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from towpath.lab.reproduce.report import ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.lab.reproduce.sqpr.setting import GAP
from towpath.placement.costs.sqpr import SqprWeights, weights_for
from towpath.placement.index import Floats
from towpath.placement.problem import Problem
from towpath.problems.generate.sqpr import Sqpr, sqpr
from towpath.reuse import soda
from towpath.reuse.admission import SolveLimits, submit
from towpath.reuse.allocation import Allocation, use
from towpath.reuse.fragments import of_problem
from towpath.reuse.joins import with_join_orders
from towpath.reuse.model import Rules
from towpath.reuse.system import System

JOINS_PER_HOST = 15  # measured in the paper
RATE = 10e3 / 8  # bytes per second of a stream
BANDWIDTH = 10e6 / 8
STEPS = 5
EARLY, LATE = 0, 2  # the steps whose distributions the paper shows: after 50 and after 150 queries


@dataclass(frozen=True)
class SodaSize:
    hosts: int
    streams: int
    queries: int
    seconds: float  # for each query


SIZES: dict[Scale, SodaSize] = {
    "tiny": SodaSize(3, 12, 20, 1.0),
    "default": SodaSize(6, 120, 100, 2.0),
    "full": SodaSize(15, 300, 250, 30.0),
}


@dataclass(frozen=True)
class SodaCase:
    size: SodaSize
    seed: int
    planner: str


@dataclass(frozen=True)
class SodaSeen:
    admitted: tuple[int, ...]  # after each step
    cpu: tuple[Floats, ...]  # of each node, as a share
    network: tuple[Floats, ...]  # of each node, bytes per second sent and received


def fig7(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Queries admitted by SQPR and by SODA, and how they spread the load (SQPR, Fig. 7)."""
    size = SIZES[scale]
    cases = [SodaCase(size, seed, planner) for planner in ("SQPR", "SODA") for seed in seeds]
    answers = iter(run_all(measure, cases, progress))
    seen = {planner: [next(answers) for _ in seeds] for planner in ("SQPR", "SODA")}
    smaller = f"{size.hosts} hosts, {size.streams} streams, {size.queries} queries, {size.seconds:.0f} s for each"
    return ExperimentReport(
        statements=_statements(seen),
        tables=(_table(seen, size),),
        plots=(_admitted(seen, size), _cdf("CPU", seen, "cpu"), _cdf("Network use", seen, "network")),
        scaled_down=() if scale == "full" else (f"{smaller} instead of 15, 300, 250 and 30 s",),
        assumed=ASSUMED,
    )


ASSUMED = (
    "the plans are compared, not the cluster that ran them: cpu and network use are what the plans take",
    f"a host has the cpu for {JOINS_PER_HOST} joins of two base streams, and a network card of 10 Mbps, as the LAN",
    "theta of Zipf is 1, as in the simulation; selectivities too",
    "SODA gets the time limit of all queries of an epoch together; its templates are left-deep, in the order of names",
)


def measure(case: SodaCase) -> SodaSeen:
    problem = _problem(case.size, case.seed)
    plans = _sqpr(problem, case.size) if case.planner == "SQPR" else _soda(problem, case.size)
    used = [use(system, allocation) for system, allocation in plans]
    cpu = problem.cluster.nodes[0].cpu
    return SodaSeen(
        tuple(len(allocation.admitted) for _, allocation in plans),
        tuple(u.load / cpu for u in used),
        tuple(u.bytes_in + u.bytes_out for u in used),
    )


def _problem(size: SodaSize, seed: int) -> Problem:
    parameters = Sqpr(
        nodes=size.hosts,
        streams=size.streams,
        queries=size.queries,
        ways=(2, 3),
        data_rate=RATE,
        tuple_bytes=100.0,
        bandwidth=BANDWIDTH,
    )
    problem = sqpr(parameters, seed)
    joins = 2 * parameters.data_rate / parameters.tuple_bytes * parameters.cost
    nodes = tuple(replace(node, cpu=JOINS_PER_HOST * joins) for node in problem.cluster.nodes)
    queries = tuple(replace(query, sink=None) for query in problem.queries)  # clients are outside, as in the paper
    return replace(problem, cluster=replace(problem.cluster, nodes=nodes), queries=queries)


def _balancing(system: System) -> SqprWeights:
    """O_4 instead of O_3 (section III-B)."""
    return replace(weights_for(system.cluster), cpu=0.0)


def _sqpr(problem: Problem, size: SodaSize) -> list[tuple[System, Allocation]]:
    system = with_join_orders(problem)
    rules = Rules(weights=_balancing(system))
    allocation, found = Allocation(), []
    for n, request in enumerate(system.requests, start=1):
        allocation = submit(system, allocation, [request], SolveLimits(size.seconds, GAP), rules).allocation
        if n % (size.queries // STEPS) == 0:
            found.append((system, allocation))
    return found


def _soda(problem: Problem, size: SodaSize) -> list[tuple[System, Allocation]]:
    system = replace(of_problem(problem).system, delivery=True)
    step = size.queries // STEPS
    planner = soda.Soda(system, SolveLimits(size.seconds * step, GAP), replace(soda.RULES, weights=_balancing(system)))
    found = []
    for first in range(0, size.queries, step):
        planner.epoch(system.requests[first : first + step])
        found.append((system, planner.allocation))
    return found


def _statements(seen: dict[str, list[SodaSeen]]) -> tuple[Statement, ...]:
    pairs = list(zip(seen["SQPR"], seen["SODA"], strict=True))
    return (
        Statement.over(
            "SQPR admits more queries than SODA in the end: their ratio",
            "above 1",
            [a.admitted[-1] / b.admitted[-1] for a, b in pairs],
            lambda ratio: ratio > 1,
        ),
        Statement.over(
            "SQPR never admits fewer than SODA: the lowest ratio of all steps",
            "1 at least",
            [min(x / y for x, y in zip(a.admitted, b.admitted, strict=True)) for a, b in pairs],
            lambda ratio: ratio >= 1,
        ),
        Statement.over(
            "both balance CPU near saturation: the larger deviation of the hosts' shares after three steps",
            "evenly distributed; read as 0.1 at most",
            [max(float(a.cpu[LATE].std()), float(b.cpu[LATE].std())) for a, b in pairs],
            lambda deviation: deviation <= 0.1,
        ),
        Statement.over(
            "both roughly balance network use: the larger deviation over the mean after three steps",
            "roughly; read as 0.5 at most",
            [max(float(s.network[LATE].std() / s.network[LATE].mean()) for s in pair) for pair in pairs],
            lambda deviation: deviation <= 0.5,
        ),
    )


def _submitted(size: SodaSize) -> list[int]:
    return [size.queries // STEPS * n for n in range(1, STEPS + 1)]


def _table(seen: dict[str, list[SodaSeen]], size: SodaSize) -> Table:
    rows = tuple(
        (count, *(fmean(run.admitted[n] for run in runs) for runs in seen.values()))
        for n, count in enumerate(_submitted(size))
    )
    return Table("Queries admitted, means over the seeds", ("submitted", *seen), rows)


def _admitted(seen: dict[str, list[SodaSeen]], size: SodaSize) -> Lines:
    x = tuple(map(float, _submitted(size)))
    lines = [
        Series(name, tuple(np.mean([r.admitted for r in runs], axis=0).tolist()), x) for name, runs in seen.items()
    ]
    return Lines("Queries admitted", "queries submitted", "queries admitted", tuple(lines))


def _cdf(title: str, seen: dict[str, list[SodaSeen]], what: str) -> Lines:
    """Over the hosts of all seeds."""
    lines = []
    for name, runs in seen.items():
        for step in (EARLY, LATE):
            values = np.sort(np.concatenate([getattr(run, what)[step] for run in runs]))
            share = np.arange(1, len(values) + 1) / len(values)
            lines.append(Series(f"{name}, step {step + 1}", tuple(share.tolist()), tuple(values.tolist())))
    unit = "share of a host's cpu" if what == "cpu" else "bytes per second, sent and received"
    return Lines(f"{title}, distribution over the hosts", unit, "share of the hosts", tuple(lines))
