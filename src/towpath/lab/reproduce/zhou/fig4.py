"""Figure 4: how many partners a node needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from towpath.lab.reproduce.report import ExperimentReport, Lines, Progress, Scale, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.lab.reproduce.zhou.base import (
    ASSUMED,
    LAST,
    SIZES,
    ZhouCase,
    ZhouSeen,
    measure,
    scaled_down,
    series,
    spread,
)
from towpath.policies.zhou import Options

MAX1 = range(9)
ENOUGH = 4  # partners, says the paper
SECONDS: dict[Scale, float] = {"tiny": 5.0, "default": 40.0, "full": 60.0}
NEAR = 0.1  # of the first deviation: within this of its final value a run has converged


def fig4(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Partners per node against balance, PRmax and time to converge (Zhou et al., Fig. 4)."""
    tried = [0, 1, 4, 5] if scale == "tiny" else list(MAX1)
    cases = [
        ZhouCase(SIZES[scale], SECONDS[scale], seed, Options(max1=max1, seed=seed))
        for max1, seed in product(tried, seeds)
    ]
    answers = iter(run_all(measure, cases, progress))
    seen = {max1: [next(answers) for _ in seeds] for max1 in tried}
    deviation = {max1: [s.last(s.load_stdev) for s in of_seeds] for max1, of_seeds in seen.items()}
    pr = {max1: [s.last(s.pr_max) for s in of_seeds] for max1, of_seeds in seen.items()}
    times = {max1: [converged(s.load_stdev) for s in of_seeds] for max1, of_seeds in seen.items() if max1 > 0}
    return ExperimentReport(
        statements=_statements(deviation, pr, times),
        tables=(_table(seen, deviation, pr, times),),
        plots=(
            _plot("Load imbalance", "standard deviation of the load", deviation),
            _plot("Worst performance ratio", "PRmax", pr, log_y=True),
            _plot("Time to converge", "seconds", times),
        ),
        scaled_down=scaled_down(scale),
        assumed=(
            *ASSUMED,
            f"the mean load, which follows from that, is {fmean(s.last(s.load_mean) for s in seen[ENOUGH]):.2f}",
            f"converged is from when on the deviation stays within {NEAR:.0%} of the first second's of its final value",
        ),
        explained=EXPLAINED,
    )


EXPLAINED = (
    "A measured workload is 1 at most. So a node with n partners, of which one is overloaded while the others have as "
    "much load as itself, asks for some only if that is below 1 / (kappa (n + 1) - n): 0.36 with kappa = 1.2 and 8 "
    "partners. At a higher mean load an overloaded node may stay so, and PRmax then grows without end.",
    "The time to converge depends on how near is near: measured against the change of the deviation instead of its "
    "first value, runs with one or two partners, which change little, took up to 30 s. PRmax falls later than the "
    "deviation, when queues are worked off.",
)


def converged(deviation: NDArray[np.float64]) -> float:
    """The second after which the deviation stays near its final value."""
    far = np.flatnonzero(np.abs(deviation - deviation[-int(LAST) :].mean()) > NEAR * deviation[0])
    return float(far[-1] + 1) if len(far) else 0.0


Values = dict[int, list[float]]  # by max1, a value for each seed


def _statements(deviation: Values, pr: Values, times: Values) -> tuple[Statement, ...]:
    enough = [max1 for max1 in deviation if max1 >= ENOUGH]
    more = [max1 for max1 in enough if max1 > ENOUGH]
    seeds = range(len(deviation[0]))
    return (
        Statement.over(
            "the load is well balanced from max1 = 4 on: the largest deviation there / the one without balancing",
            "well balanced; read as below 0.5",
            [max(deviation[m][s] for m in enough) / deviation[0][s] for s in seeds],
            lambda share: share < 0.5,
        ),
        Statement.over(
            "no gain beyond: (deviation with max1 = 4 - the smallest with more) / the one without balancing",
            "no significant improvement; read as 0.1 at most",
            [(deviation[ENOUGH][s] - min(deviation[m][s] for m in more)) / deviation[0][s] for s in seeds],
            lambda gain: gain <= 0.1,
        ),
        Statement.over(
            "PRmax is similar from max1 = 4 on: the largest / the smallest",
            "similar; read as 2 at most",
            [max(pr[m][s] for m in enough) / min(pr[m][s] for m in enough) for s in seeds],
            lambda ratio: ratio <= 2,
        ),
        Statement.over(
            "the time to converge hardly depends on max1 >= 1: the longest / the shortest",
            "not much difference; read as 2 at most",
            [max(of[s] for of in times.values()) / max(min(of[s] for of in times.values()), 1.0) for s in seeds],
            lambda ratio: ratio <= 2,
        ),
    )


def _table(seen: dict[int, list[ZhouSeen]], deviation: Values, pr: Values, times: Values) -> Table:
    rows = [
        (
            max1,
            fmean(deviation[max1]),
            spread(deviation[max1]),
            fmean(pr[max1]),
            spread(pr[max1]),
            fmean(times[max1]) if max1 in times else "",
            fmean(s.moves for s in of_seeds),
            fmean(s.message_bytes / len(s.pr_max) for s in of_seeds) / 1000,
        )
        for max1, of_seeds in seen.items()
    ]
    columns = ("max1", "STDEV", "±", "PRmax", "±", "converged s", "moves", "messages KB/s")
    return Table("Means over the seeds, at the end of the run", columns, tuple(rows))


def _plot(title: str, label: str, values: Values, log_y: bool = False) -> Lines:
    return Lines(title, "max1", label, (series(label, list(values), list(values.values())),), log_y)
