"""What an experiment answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Literal

Scale = Literal["tiny", "default", "full"]  # tiny: only to see that it runs; full: the paper's own size
Progress = Callable[[str, float], None]  # what is being done, and the share of the work that is done
Cell = str | float | int


def silent(text: str, done: float) -> None:
    """A progress that nobody sees."""


@dataclass(frozen=True)
class Statement:
    """One claim of a paper. `ours` is the mean over the seeds, `spread` their standard deviation."""

    claim: str
    paper: str
    ours: float
    spread: float
    holds: bool

    @staticmethod
    def over(claim: str, paper: str, values: Sequence[float], holds: Callable[[float], bool]) -> Statement:
        """From one value per seed; the claim must hold for the mean."""
        mean = fmean(values)
        return Statement(claim, paper, mean, stdev(values) if len(values) > 1 else 0.0, bool(holds(mean)))


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
class Topology:
    """Who sends to whom. Sizes and widths are shares of the largest that a picture draws."""

    title: str
    sources: tuple[tuple[str, float], ...]  # name and size
    nodes: tuple[tuple[str, float, float], ...]  # name, size and stress, from 0 to 1
    links: tuple[tuple[str, str, float], ...]  # from, to and width


@dataclass(frozen=True)
class Topologies:
    title: str
    columns: int
    pictures: tuple[Topology, ...]


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
