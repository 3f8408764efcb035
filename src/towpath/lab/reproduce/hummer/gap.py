"""How far variable neighbourhood search is from the optimum: the paper leaves that open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, stdev

from towpath.lab.reproduce.hummer.optimum import Optimum, optimum
from towpath.lab.reproduce.hummer.setting import ASSUMED, begun
from towpath.lab.reproduce.report import Bars, ExperimentReport, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.placement.problem import Placement
from towpath.planners.hummer import Options, search
from towpath.problems.generate.hummer import Hummer, hummer


@dataclass(frozen=True)
class GapSize:
    queries: tuple[int, ...]
    seconds: tuple[float, float]  # of the processor, after which the gap is stated
    proof: float  # seconds for each program of a proof
    setting: Hummer


SIZES: dict[Scale, GapSize] = {
    "tiny": GapSize((3, 6), (0.01, 0.1), 10.0, Hummer(nodes=3, sources=5)),
    "default": GapSize((10, 20, 30), (1.0, 10.0), 60.0, Hummer()),
    "full": GapSize((10, 20, 30), (1.0, 30.0), 600.0, Hummer()),
}
MIGRATION = {"L + T + D": 0.0, "L + T + D + M": 1.0}  # w_M
NEAR = 0.1  # a gap that counts as small


@dataclass(frozen=True)
class ProofCase:
    size: GapSize
    queries: int


@dataclass(frozen=True)
class GapCase:
    size: GapSize
    queries: int
    seed: int
    target: str  # of MIGRATION
    enough: float


@dataclass(frozen=True)
class GapSeen:
    costs: tuple[float, float]  # F after each time
    rate: float  # evaluations per second


def gap(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Variable neighbourhood search against the proven optimum, after 1 s and 30 s (beyond WS-Aggregation)."""
    size = SIZES[scale]
    proofs = run_all(prove, [ProofCase(size, n) for n in size.queries], lambda text, done: progress(text, done / 3))
    best = dict(zip(size.queries, proofs, strict=True))
    cases = [GapCase(size, n, seed, t, best[n].cost) for n in size.queries for t in MIGRATION for seed in seeds]
    seen = run_all(measure, cases, lambda text, done: progress(text, (1 + 2 * done) / 3))
    by: dict[tuple[int, str], list[GapSeen]] = {}
    for case, one in zip(cases, seen, strict=True):
        by.setdefault((case.queries, case.target), []).append(one)
    return ExperimentReport(
        statements=_statements(size, best, by),
        tables=(_table(size, best, by),),
        plots=(_bars(size, best, by),),
        scaled_down=() if scale == "full" else (f"{size.seconds[1]:g} s of search instead of 30",),
        assumed=(
            *ASSUMED,
            "gaps are (F - bound) / bound. The bound is the proven optimum of L + T + D. Migration can only add to it, "
            "so with M it is a lower bound, and the gap there may be smaller than stated",
            "seconds are those of one processor",
        ),
    )


def prove(case: ProofCase) -> Optimum:
    setting = case.size.setting.model_copy(update={"queries": case.queries})
    options = Options(migration=0.0, evaluations=0, patience=0, seconds=case.size.seconds[1] / 5)
    return optimum(setting, search(hummer(setting), options).cost, case.size.proof)


def measure(case: GapCase) -> GapSeen:
    problem = hummer(case.size.setting.model_copy(update={"queries": case.queries}))
    problem = begun(problem, Placement({}), Random(case.seed))
    found = [
        search(
            problem,
            Options(
                migration=MIGRATION[case.target],
                evaluations=0,
                patience=0,
                seconds=seconds,
                enough=case.enough * (1 + 1e-9),
                seed=case.seed,
            ),
        )
        for seconds in case.size.seconds
    ]
    return GapSeen((found[0].cost, found[1].cost), found[1].evaluated / found[1].seconds)


By = Mapping[tuple[int, str], Sequence[GapSeen]]


def _gaps(best: Mapping[int, Optimum], by: By, queries: int, target: str, after: int) -> list[float]:
    bound = best[queries].bound
    return [seen.costs[after] / bound - 1 for seen in by[queries, target]]


def _statements(size: GapSize, best: Mapping[int, Optimum], by: By) -> tuple[Statement, ...]:
    return tuple(
        Statement.over(
            f"{queries} queries: (F - optimum) / optimum after {seconds:g} s, L + T + D",
            f"near-optimal, no figure; read as {NEAR:g} at most",
            _gaps(best, by, queries, "L + T + D", after),
            lambda mean: mean <= NEAR,
        )
        for queries in size.queries
        for after, seconds in enumerate(size.seconds)
    )


def _table(size: GapSize, best: Mapping[int, Optimum], by: By) -> Table:
    first, last = size.seconds
    columns = (
        "queries",
        "F",
        "bound",
        "is",
        "proof s",
        f"gap % {first:g} s",
        "±",
        f"gap % {last:g} s",
        "±",
        "worst",
        "at the bound",
        "evaluations/s",
    )
    rows = []
    for (queries, target), seen in by.items():
        early, late = ([100 * g for g in _gaps(best, by, queries, target, after)] for after in (0, 1))
        proven = best[queries].bound >= best[queries].cost
        rows.append(
            (
                queries,
                target,
                best[queries].bound,
                "the optimum" if proven and MIGRATION[target] == 0 else "a lower bound",
                best[queries].seconds,
                fmean(early),
                _spread(early),
                fmean(late),
                _spread(late),
                max(late),
                f"{sum(g < 1e-6 for g in late)} of {len(late)}",
                fmean(one.rate for one in seen),
            )
        )
    return Table("Variable neighbourhood search against the optimum", columns, tuple(rows))


def _bars(size: GapSize, best: Mapping[int, Optimum], by: By) -> Bars:
    series = []
    for after, seconds in enumerate(size.seconds):
        gaps = [[100 * g for g in _gaps(best, by, n, "L + T + D", after)] for n in size.queries]
        spread = tuple(map(_spread, gaps))
        series.append(Series(f"after {seconds:g} s", tuple(map(fmean, gaps)), spread=spread))
    groups = tuple(f"{n} queries" for n in size.queries)
    return Bars("F above the proven optimum", "per cent", groups, tuple(series))


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
