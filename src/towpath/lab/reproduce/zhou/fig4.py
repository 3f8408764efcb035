"""Figure 4: how many partners a node needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import isnan, nan
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from towpath.lab.reproduce.report import ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
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
ENOUGH = 4  # "when max1 >= 4 the load is well balanced"
SECONDS: dict[Scale, float] = {"tiny": 5.0, "default": 40.0, "full": 60.0}
NEAR = 0.1  # of the first deviation: within this of its final value a run has converged

# The words of section 4.1 as numbers. They stood before the runs, but for what is said to be chosen afterwards.
BALANCED = 0.5  # "well balanced": of the deviation without balancing
NO_GAIN = 0.1  # "no significant improvement": of the deviation without balancing
SIMILAR = 2.0  # "similar" PRmax: the largest over the smallest
# "Not much difference between small and large number of partners": the larger time over the smaller. That runs which
# never balance have no time, and that medians of few and of many partners are compared, was chosen after a look at
# earlier runs, in which such runs counted as 0 s.
NOT_MUCH = 2.0


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
    times = {
        max1: [
            converged(s.load_stdev) if end < BALANCED * first else nan
            for s, end, first in zip(of_seeds, deviation[max1], deviation[0], strict=True)
        ]
        for max1, of_seeds in seen.items()
        if max1 > 0
    }
    return ExperimentReport(
        statements=statements(deviation, pr, times),
        tables=(_table(seen, deviation, pr, times),),
        plots=(
            _plot("Load imbalance", "standard deviation of the load", deviation),
            _plot("Worst performance ratio", "PRmax", pr, log_y=True),
            _times_plot(times),
        ),
        scaled_down=scaled_down(scale),
        assumed=(
            *ASSUMED,
            f"the mean load, which follows from that, is {fmean(s.last(s.load_mean) for s in seen[ENOUGH]):.2f}",
            f"converged is from when on the deviation stays within {NEAR:.0%} of the first second's of its final "
            f"value; a run that ends with {BALANCED:g} of the deviation without balancing, or more, has no such time",
        ),
        explained=EXPLAINED,
    )


EXPLAINED = (
    "A measured workload is 1 at most. So a node with n partners, of which one is overloaded while the others have as "
    "much load as itself, asks for some only if that is below 1 / (kappa (n + 1) - n): 0.36 with kappa = 1.2 and 8 "
    "partners. At a higher mean load an overloaded node may stay so, and PRmax then grows without end.",
    "PRmax falls later than the deviation, when queues are worked off.",
)


def converged(deviation: NDArray[np.float64]) -> float:
    """The second after which the deviation stays near its final value."""
    far = np.flatnonzero(np.abs(deviation - deviation[-int(LAST) :].mean()) > NEAR * deviation[0])
    return float(far[-1] + 1) if len(far) else 0.0


Values = dict[int, list[float]]  # by max1, a value for each seed


def statements(deviation: Values, pr: Values, times: Values) -> tuple[Statement, ...]:
    enough = [max1 for max1 in deviation if max1 >= ENOUGH]
    more = [max1 for max1 in enough if max1 > ENOUGH]
    seeds = range(len(deviation[0]))
    return (
        Statement.over(
            "the load is well balanced from max1 = 4 on: the largest deviation there / the one without balancing",
            f"well balanced; read as below {BALANCED}",
            [max(deviation[m][s] for m in enough) / deviation[0][s] for s in seeds],
            lambda share: share < BALANCED,
        ),
        Statement.over(
            "no gain beyond: (deviation with max1 = 4 - the smallest with more) / the one without balancing",
            f"no significant improvement; read as {NO_GAIN} at most",
            [(deviation[ENOUGH][s] - min(deviation[m][s] for m in more)) / deviation[0][s] for s in seeds],
            lambda gain: gain <= NO_GAIN,
        ),
        Statement.over(
            "PRmax is similar from max1 = 4 on: the largest / the smallest",
            f"similar; read as {SIMILAR:g} at most",
            [max(pr[m][s] for m in enough) / min(pr[m][s] for m in enough) for s in seeds],
            lambda ratio: ratio <= SIMILAR,
        ),
        *_same_time(times),
    )


def _same_time(times: Values) -> list[Statement]:
    """In a seed in which no run with few partners balances there is nothing to compare."""

    def median(few: bool, seed: int) -> float:
        known = [of[seed] for max1, of in times.items() if (max1 < ENOUGH) == few and not isnan(of[seed])]
        return float(np.median(known)) if known else nan

    ratios = [max(median(True, s), 1.0) / max(median(False, s), 1.0) for s in range(len(times[ENOUGH]))]
    known = [ratio for ratio in ratios if not isnan(ratio)]
    claim = f"the time to converge, of runs that balance: median of 1 to {ENOUGH - 1} partners / that of more"
    paper = f"not much difference; read as between 1/{NOT_MUCH:g} and {NOT_MUCH:g}"
    if not known:
        return [Statement.not_testable(claim, paper, "no run with few partners balances")]
    return [Statement.over(claim, paper, known, lambda ratio: 1 / NOT_MUCH <= ratio <= NOT_MUCH)]


def _table(seen: dict[int, list[ZhouSeen]], deviation: Values, pr: Values, times: Values) -> Table:
    rows = [
        (
            max1,
            fmean(deviation[max1]),
            spread(deviation[max1]),
            fmean(pr[max1]),
            spread(pr[max1]),
            _median(times.get(max1, [])),
            sum(not isnan(t) for t in times.get(max1, [])),
            fmean(s.moves for s in of_seeds),
            fmean(s.message_bytes / len(s.pr_max) for s in of_seeds) / 1000,
        )
        for max1, of_seeds in seen.items()
    ]
    columns = ("max1", "STDEV", "±", "PRmax", "±", "converged s", "balanced runs", "moves", "messages KB/s")
    return Table("At the end of the run: means over the seeds, of times to converge medians", columns, tuple(rows))


def _median(times: Sequence[float]) -> float | str:
    known = [t for t in times if not isnan(t)]
    return float(np.median(known)) if known else "-"


def _times_plot(times: Values) -> Lines:
    known = {max1: median for max1, of in times.items() if isinstance(median := _median(of), float)}
    line = Series("median", tuple(known.values()), tuple(map(float, known)))
    return Lines("Time to converge", "max1", "seconds", (line,))


def _plot(title: str, label: str, values: Values, log_y: bool = False) -> Lines:
    return Lines(title, "max1", label, (series(label, list(values), list(values.values())),), log_y)
