"""D-CAPE's evaluation (chapters 4 to 6 of the thesis)."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.lab.reproduce.dcape.connections import connections
from towpath.lab.reproduce.dcape.manager import manager
from towpath.lab.reproduce.dcape.redistribution import redistribution
from towpath.lab.reproduce.dcape.throughput import throughput
from towpath.lab.reproduce.report import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    "dcape-connections": connections,
    "dcape-fig5": throughput,
    "dcape-fig6": redistribution,
    "dcape-manager": manager,
}
