"""What an experiment answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Literal

Scale = Literal["tiny", "default", "full"]  # tiny: only to see that it runs; full: the paper's own size
Progress = Callable[[str, float], None]  # what is being done, and the share of the work that is done
Cell = str | float | int

CONFIDENCE = 0.95
LOOKS = 400  # into an interval, so that a claim which holds only inside of it is seen


def silent(text: str, done: float) -> None:
    """A progress that nobody sees."""


@dataclass(frozen=True)
class Statement:
    """One claim of a paper. `ours` is the mean over the seeds, `spread` their standard deviation.

    `holds` is None when the runs do not decide it: other seeds could well give the other answer.
    """

    claim: str
    paper: str
    ours: float
    spread: float
    holds: bool | None

    @staticmethod
    def over(claim: str, paper: str, values: Sequence[float], holds: Callable[[float], bool]) -> Statement:
        """From one value per seed; a comparison is one value, made of runs of the same seed.

        The claim holds, or does not, if that is so all over the confidence interval of the mean; one seed has none.
        """
        mean = fmean(values)
        if len(values) == 1:
            return Statement(claim, paper, mean, 0.0, None)
        low, high = confidence_interval(values)
        verdicts = {bool(holds(low + (high - low) * n / LOOKS)) for n in range(LOOKS + 1)} | {bool(holds(mean))}
        return Statement(claim, paper, mean, stdev(values), verdicts.pop() if len(verdicts) == 1 else None)

    @staticmethod
    def not_testable(claim: str, paper: str, reason: str) -> Statement:
        """What cannot come out otherwise in these runs, so that they say nothing about the paper."""
        return Statement(f"{claim} (not testable: {reason})", paper, 0.0, 0.0, None)

    @staticmethod
    def exact(claim: str, paper: str, value: float, holds: Callable[[float], bool]) -> Statement:
        """From a value that no seed has a part in."""
        return Statement(claim, paper, value, 0.0, bool(holds(value)))


def confidence_interval(values: Sequence[float]) -> tuple[float, float]:
    """Of the mean, by Student's distribution. Needs two values at least."""
    from scipy.stats import t

    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Series:
    name: str
    y: tuple[float, ...]
    x: tuple[float, ...] = ()  # of lines; bars stand over the plot's groups
    spread: tuple[float, ...] = ()  # half the length of the error bars


@dataclass(frozen=True)
class Lines:
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False


@dataclass(frozen=True)
class Bars:
    title: str
    y_label: str
    groups: tuple[str, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True)
class TopologyPicture:
    """Who sends to whom. Sizes and widths are shares of the largest that a picture draws."""

    title: str
    sources: tuple[tuple[str, float], ...]  # name and size
    nodes: tuple[tuple[str, float, float], ...]  # name, size and stress, from 0 to 1
    links: tuple[tuple[str, str, float], ...]  # from, to and width


@dataclass(frozen=True)
class Topologies:
    title: str
    columns: int
    pictures: tuple[TopologyPicture, ...]


Plot = Lines | Bars | Topologies


@dataclass(frozen=True)
class ExperimentReport:
    statements: tuple[Statement, ...]
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    scaled_down: tuple[str, ...] = ()  # what is smaller than in the paper, a sentence each
    assumed: tuple[str, ...] = ()  # where the paper is silent
    explained: tuple[str, ...] = ()  # why a statement does not hold

    def summary(self, experiment: str, scale: Scale, seeds: int, seconds: float) -> dict[str, Any]:
        """The line of JSON that a run ends with."""
        statements = [asdict(statement) for statement in self.statements]
        return {
            "experiment": experiment,
            "scale": scale,
            "seeds": seeds,
            "seconds": round(seconds, 1),
            "statements": statements,
        }


Experiment = Callable[[Scale, Sequence[int], Progress], ExperimentReport]
