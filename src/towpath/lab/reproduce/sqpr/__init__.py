"""The experiments of SQPR, section V."""

from __future__ import annotations

from towpath.lab.reproduce.report import Experiment
from towpath.lab.reproduce.sqpr.admitting import fig4a
from towpath.lab.reproduce.sqpr.soda import fig7
from towpath.lab.reproduce.sqpr.varying import fig4b, fig4c, fig5a, fig5b, fig5c, fig6a, fig6b

EXPERIMENTS: dict[str, Experiment] = {
    "sqpr-fig4a": fig4a,
    "sqpr-fig4b": fig4b,
    "sqpr-fig4c": fig4c,
    "sqpr-fig5a": fig5a,
    "sqpr-fig5b": fig5b,
    "sqpr-fig5c": fig5c,
    "sqpr-fig6a": fig6a,
    "sqpr-fig6b": fig6b,
    "sqpr-fig7": fig7,
}
