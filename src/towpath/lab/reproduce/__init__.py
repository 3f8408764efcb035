"""The published experiments, run again: what each paper states beside what comes out here.

One file per paper. Each has `EXPERIMENTS`, a map from an experiment's name to the function that runs it; the first line
of the function's docstring says what it is about. The folder is scanned, so a new file is all it takes.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from towpath.errors import UnknownNameError
from towpath.lab.reproduce.report import (
    Bars,
    Experiment,
    ExperimentReport,
    Lines,
    Plot,
    Progress,
    Scale,
    Series,
    Statement,
    Table,
    Topologies,
    TopologyPicture,
    silent,
)

__all__ = [
    "Bars",
    "Experiment",
    "ExperimentReport",
    "Lines",
    "Plot",
    "Progress",
    "Scale",
    "Series",
    "Statement",
    "Table",
    "Topologies",
    "TopologyPicture",
    "available",
    "get",
    "silent",
]


def available() -> Mapping[str, Experiment]:
    found: dict[str, Experiment] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        found |= getattr(import_module(f"{__name__}.{module.name}"), "EXPERIMENTS", {})
    return found


def get(name: str) -> Experiment:
    known = available()
    if name not in known:
        raise UnknownNameError(f"no experiment {name!r}; there are {', '.join(known)}")
    return known[name]


def help_of(experiment: Experiment) -> str:
    return (experiment.__doc__ or "").strip().partition("\n")[0]
