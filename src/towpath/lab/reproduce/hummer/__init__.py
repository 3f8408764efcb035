"""The experiments of Hummer et al. (WS-Aggregation), section 7, that need no Spark."""

from __future__ import annotations

from towpath.lab.reproduce.hummer.fig6 import fig6
from towpath.lab.reproduce.hummer.fig7 import fig7
from towpath.lab.reproduce.hummer.gap import gap
from towpath.lab.reproduce.report import Experiment

EXPERIMENTS: dict[str, Experiment] = {"hummer-fig6": fig6, "hummer-fig7": fig7, "hummer-gap": gap}
