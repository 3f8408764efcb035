"""Figure 6: which fragments to move when some streams run faster for a while."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import fmean
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from towpath.lab.reproduce.report import Bars, Cell, ExperimentReport, Lines, Progress, Scale, Series, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.lab.reproduce.zhou.base import ASSUMED, SIZES, ZhouCase, ZhouSeen, measure, scaled_down, spread
from towpath.policies.zhou import Options, Selection

STATIC = "static"
AWARE, INTERMEDIATE, ELEMENTARY = DYNAMIC = get_args(Selection)
TIMES: dict[Scale, tuple[int, int, int]] = {"tiny": (2, 6, 10), "default": (20, 50, 80), "full": (20, 50, 80)}
FACTOR = 3.0
SHARE = 4 / 32  # of the nodes whose streams run faster
ALIKE = 2.0  # "the three dynamic strategies performed similarly": the largest PRmax over the smallest
FAR_BELOW = 5.0  # "the static strategy performed the worst": its PRmax over the largest of the three


def may_be_left(kappa: float, share: float) -> float:
    """Of the rise, as much as Algorithm 2 lets stay when rates are back: within this a strategy has returned.

    In units of the load that every node begins with: while a share of the nodes' streams runs faster, a node of them
    has FACTOR, all have 1 + share (FACTOR - 1) on average, and the difference goes abroad, which is 1 / FACTOR of that
    when rates are back. A node then asks while kappa rho < the average, 1; so it may lack 1 - 1 / kappa for ever.
    """
    average = 1 + share * (FACTOR - 1)
    return (1 - 1 / kappa) / ((FACTOR - average) / FACTOR)


def fig6(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Data-flow aware, intermediate, elementary and no selection under a change of rates (Zhou et al., Fig. 6)."""
    begin, end, seconds = TIMES[scale]
    size = SIZES[scale]
    faster = (max(round(size.nodes * SHARE), 1), float(begin), float(end), FACTOR)
    strategies = (*DYNAMIC, STATIC)
    cases = [
        ZhouCase(
            size,
            seconds,
            seed,
            None if strategy == STATIC else Options(selection=strategy, seed=seed),
            theta=0.0,
            balanced=True,
            faster=faster,
        )
        for strategy, seed in product(strategies, seeds)
    ]
    answers = iter(run_all(measure, cases, progress))
    seen = {strategy: [next(answers) for _ in seeds] for strategy in strategies}
    extra = {
        strategy: [(s.sent - static.sent) / 1e6 for s, static in zip(seen[strategy], seen[STATIC], strict=True)]
        for strategy in DYNAMIC
    }
    pr = {strategy: [float(np.nanmean(s.pr_max)) for s in of_seeds] for strategy, of_seeds in seen.items()}
    return ExperimentReport(
        statements=(
            *order(extra, TIMES[scale]),
            *returned(extra, TIMES[scale], may_be_left(Options().kappa, faster[0] / size.nodes)),
            *ratios(pr),
        ),
        tables=(_table(seen, extra, pr, TIMES[scale]),),
        plots=(_over_time(extra), _bars(pr)),
        scaled_down=scaled_down(scale),
        assumed=(
            *ASSUMED,
            "streams are drawn uniformly and delegated so that native loads are equal: static keeps to native nodes, "
            "and the start is to be balanced. Balancing is on from the start",
            "transfer is what tuples take between nodes, without the state of what moves (in the table) and messages",
        ),
        explained=EXPLAINED,
    )


EXPLAINED = (
    "A fragment comes home only if its node is the heaviest partner of the fragment's native node when that asks for "
    "load. After the streams have slowed down, the nodes that took their fragments are light as well: many ask, the "
    "heaviest partners have few fragments of those who ask, and give others. The table shows how many moves led home. "
    "This cause is inferred from where the moves of one run led. Letting the last fragment exceed the request, tried "
    "with one seed, left a third of the rise as well.",
    "Before anything is foreign, intermediate and elementary choose alike.",
    "A fragment on a foreign node needs a copy of its whole stream, several times what flows between two fragments "
    "behind their filters. So the neighbours, by which data-flow aware chooses among native fragments, matter less "
    "than whether the stream goes to that node already, at which no strategy looks.",
)

Extra = dict[str, list[NDArray[np.float64]]]  # by strategy and seed: MB/s more than without moves, in each second
Times = tuple[int, int, int]  # faster from, until, end


def phases(times: Times) -> tuple[slice, slice, slice]:
    """The second half of each phase: when the moves that its beginning brought are over."""
    begin, end, seconds = times
    bounds = ((0, begin), (begin, end), (end, seconds))
    before, during, after = (slice((first + last) // 2, last) for first, last in bounds)
    return before, during, after


def order(extra: Extra, times: Times) -> list[Statement]:
    """At all times: in each of the phases."""
    found = []
    for less, more in ((AWARE, INTERMEDIATE), (INTERMEDIATE, ELEMENTARY)):
        for when, phase in zip(("before", "while", "after"), phases(times), strict=True):
            gaps = [float((a - b)[phase].mean()) for a, b in zip(extra[less], extra[more], strict=True)]
            claim = f"extra transfer of {less} < {more}, {when} the streams run faster: their difference, MB/s"
            if any(gaps):
                found.append(Statement.over(claim, "below 0 at all times", gaps, lambda gap: gap < 0))
            else:
                found.append(Statement.not_testable(claim, "below 0 at all times", "both sent the same"))
    return found


def left_over(extra: NDArray[np.float64], times: Times) -> float:
    """The share of the rise that is still there at the end; nothing is left of no rise."""
    before, during, after = (float(extra[phase].mean()) for phase in phases(times))
    return (after - before) / (during - before) if during != before else 0.0


def returned(extra: Extra, times: Times, bound: float) -> list[Statement]:
    left = {strategy: [left_over(e, times) for e in of_seeds] for strategy, of_seeds in extra.items()}
    others = [min(pair) for pair in zip(left[INTERMEDIATE], left[ELEMENTARY], strict=True)]
    less = [one - other for one, other in zip(left[AWARE], others, strict=True)]
    return [
        Statement.over(
            f"{AWARE} returns to its starting level: the share of the rise that is left",
            f"returns; read as {bound:.2f} at most, which kappa implies",
            left[AWARE],
            lambda share: share <= bound,
        ),
        Statement.over(
            "the other two do not: the smaller share of the rise that is left",
            f"cannot; read as above {bound:.2f}",
            others,
            lambda share: share > bound,
        ),
        Statement.over(
            f"{AWARE} returns further than the other two: its share - the smaller of theirs",
            "only it returns: below 0",
            less,
            lambda difference: difference < 0,
        ),
    ]


def ratios(pr: dict[str, list[float]]) -> list[Statement]:
    by_seed = list(zip(*(pr[strategy] for strategy in DYNAMIC), strict=True))
    return [
        Statement.over(
            "PRmax of the three is alike: the largest / the smallest",
            f"similar; read as {ALIKE:g} at most",
            [max(three) / min(three) for three in by_seed],
            lambda ratio: ratio <= ALIKE,
        ),
        Statement.over(
            "and far below static: static / the largest of the three",
            f"static is worst; read as {FAR_BELOW:g} at least",
            [static / max(three) for static, three in zip(pr[STATIC], by_seed, strict=True)],
            lambda ratio: ratio >= FAR_BELOW,
        ),
    ]


def _table(seen: dict[str, list[ZhouSeen]], extra: Extra, pr: dict[str, list[float]], times: Times) -> Table:
    def megabytes(strategy: str, phase: slice) -> float:
        return fmean(float(e[phase].mean()) for e in extra[strategy]) if strategy in extra else 0.0

    rows: list[tuple[Cell, ...]] = [
        (
            strategy,
            *(megabytes(strategy, phase) for phase in phases(times)),
            fmean(pr[strategy]),
            spread(pr[strategy]),
            fmean(s.moves for s in of_seeds),
            fmean(s.homeward for s in of_seeds),
            fmean(s.state_bytes for s in of_seeds) / 1e6,
            fmean(s.message_bytes for s in of_seeds) / 1e6,
        )
        for strategy, of_seeds in seen.items()
    ]
    columns = ("strategy", "before", "during", "after", "PRmax", "±", "moves", "home", "state MB", "messages MB")
    return Table("Extra transfer in MB/s (second half of each phase); PRmax over the whole run", columns, tuple(rows))


def _over_time(extra: Extra) -> Lines:
    lines = []
    for strategy, of_seeds in extra.items():
        mean = np.mean(of_seeds, axis=0)
        seconds = tuple(float(n) for n in range(1, len(mean) + 1))
        lines.append(Series(strategy, tuple(mean.tolist()), seconds))
    return Lines("Transfer beyond that of the static placement", "seconds", "MB/s between nodes", tuple(lines))


def _bars(pr: dict[str, list[float]]) -> Bars:
    means = tuple(fmean(of_seeds) for of_seeds in pr.values())
    spreads = tuple(spread(of_seeds) for of_seeds in pr.values())
    return Bars("Worst performance ratio", "PRmax", tuple(pr), (Series("PRmax", means, spread=spreads),))
