"""Figure 5: moving fragments against moving operators."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import fmean

import numpy as np

from towpath.lab.reproduce.report import ExperimentReport, Lines, Progress, Scale, Statement, Table
from towpath.lab.reproduce.runs import run_all
from towpath.lab.reproduce.zhou.base import NETWORK, SIZES, ZhouCase, measure, scaled_down, series, spread
from towpath.policies.zhou import Options, Selection

OPERATORS: dict[Scale, tuple[int, ...]] = {"tiny": (2, 6), "default": (2, 4, 6, 8), "full": (2, 4, 6, 8, 10)}
SECONDS: dict[Scale, float] = {"tiny": 4.0, "default": 40.0, "full": 60.0}
STREAMS = 2  # of a query

# The words of section 4.2 as numbers, fixed before the runs.
MUCH_BETTER = 2.0  # "performs much better": PRmax of operators over that of fragments
UNITS: dict[str, Selection] = {"fragments": "data_flow_aware", "operators": "elementary"}  # what moves, how chosen

Key = tuple[str, int]
Values = dict[Key, list[float]]  # by unit and operators per fragment, a value for each seed


def fig5(scale: Scale, seeds: Sequence[int], progress: Progress) -> ExperimentReport:
    """Fragment-based against operator-based balancing: PRmax and transfer volume (Zhou et al., Fig. 5)."""
    keys = list(product(UNITS, OPERATORS[scale]))
    cases = [
        ZhouCase(
            SIZES[scale],
            SECONDS[scale],
            seed,
            Options(selection=UNITS[unit], seed=seed),
            streams_per_query=STREAMS,
            shared=0.0,
            operators_per_fragment=operators,
            per_operator=unit == "operators",
        )
        for (unit, operators), seed in product(keys, seeds)
    ]
    answers = iter(run_all(measure, cases, progress))
    seen = {key: [next(answers) for _ in seeds] for key in keys}
    pr = {key: [float(np.nanmean(s.pr_max)) for s in of_seeds] for key, of_seeds in seen.items()}
    settled = {key: [s.last(s.pr_max) for s in of_seeds] for key, of_seeds in seen.items()}
    sent = {key: [float(s.sent.mean()) / 1e6 for s in of_seeds] for key, of_seeds in seen.items()}
    loads = {key: [s.last(s.load_mean) for s in of_seeds] for key, of_seeds in seen.items()}
    moves = {key: [float(s.moves) for s in of_seeds] for key, of_seeds in seen.items()}
    return ExperimentReport(
        statements=statements(OPERATORS[scale], pr, settled, sent),
        tables=(_table(keys, loads, pr, settled, sent, moves),),
        plots=(
            _plot("Worst performance ratio", "PRmax", OPERATORS[scale], pr, log_y=True),
            _plot("Transfer volume", "MB/s between nodes", OPERATORS[scale], sent),
        ),
        scaled_down=_scaled_down(scale),
        assumed=(
            *NETWORK,
            f"a query has {STREAMS} streams, and nothing is shared: three streams with shared filters, as in the other "
            "two, leave a mean load of 0.05 when fragments have ten operators, so that there is nothing to balance",
            "the paper averages over the run; the statements about its end were added after a look at the outcome",
            "streams are chosen by the same Zipf distribution as in Fig. 4, so that there is load to balance",
            "operator-based is the same balancing with each operator as a fragment, chosen by load density alone, as "
            "the paper's elementary selection: the centralised algorithm of its reference [14] is not rebuilt",
        ),
        explained=EXPLAINED,
    )


def _scaled_down(scale: Scale) -> tuple[str, ...]:
    shorter = (f"{SECONDS[scale]:.0f} s instead of {SECONDS['full']:.0f}",) if scale != "full" else ()
    return (*scaled_down(scale), *shorter)


EXPLAINED = (
    "Averaged over the run, PRmax is that of its first seconds: the initial placement overloads some nodes, and their "
    "queues are as long whatever moves. At the end of the run the two differ, and more so with more operators.",
)


def statements(operators: Sequence[int], pr: Values, settled: Values, sent: Values) -> tuple[Statement, ...]:
    fewest, most = operators[0], operators[-1]
    seeds = range(len(pr["fragments", fewest]))

    def ratio(values: Values, number: int, seed: int) -> float:
        return values["operators", number][seed] / values["fragments", number][seed]

    def gap(values: Values, number: int, seed: int) -> float:
        return values["operators", number][seed] - values["fragments", number][seed]

    worse = [
        Statement.over(
            f"with {most} operators per fragment fragment-based is much better in PRmax, {when}: operator-based / it",
            f"much better; read as {MUCH_BETTER:g} at least",
            [ratio(values, most, s) for s in seeds],
            lambda r: r >= MUCH_BETTER,
        )
        for when, values in (("over the run", pr), ("at its end", settled))
    ]
    grows = [
        Statement.over(
            f"the gap in PRmax grows with the operators, {when}: the ratio at {most} per fragment / that at {fewest}",
            "grows: above 1",
            [ratio(values, most, s) / ratio(values, fewest, s) for s in seeds],
            lambda r: r > 1,
        )
        for when, values in (("over the run", pr), ("at its end", settled))
    ]
    return (
        *worse,
        *grows,
        Statement.over(
            f"operator-based sends more, with {most} operators per fragment: its volume / the fragment-based one",
            "increases quickly: above 1",
            [ratio(sent, most, s) for s in seeds],
            lambda r: r > 1,
        ),
        Statement.over(
            f"the gap in transfer volume grows: MB/s at {most} per fragment - those at {fewest}",
            "grows: above 0",
            [gap(sent, most, s) - gap(sent, fewest, s) for s in seeds],
            lambda d: d > 0,
        ),
    )


def _table(keys: list[Key], loads: Values, pr: Values, settled: Values, sent: Values, moves: Values) -> Table:
    rows = [
        (
            *key,
            fmean(loads[key]),
            fmean(pr[key]),
            spread(pr[key]),
            fmean(settled[key]),
            fmean(sent[key]),
            spread(sent[key]),
            fmean(moves[key]),
        )
        for key in keys
    ]
    columns = ("moved", "operators", "load", "PRmax", "±", "PRmax at the end", "MB/s", "±", "moves")
    return Table("Means over the run and the seeds", columns, tuple(rows))


def _plot(title: str, label: str, operators: Sequence[int], values: Values, log_y: bool = False) -> Lines:
    lines = tuple(series(f"{unit} move", operators, [values[unit, n] for n in operators]) for unit in UNITS)
    return Lines(title, "operators per fragment", label, lines, log_y)
