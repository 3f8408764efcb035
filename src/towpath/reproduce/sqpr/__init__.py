"""The experiments of SQPR, section V."""

from __future__ import annotations

from towpath.reproduce.report import Experiment
from towpath.reproduce.sqpr.admitting import fig4a

EXPERIMENTS: dict[str, Experiment] = {"sqpr-fig4a": fig4a}
