"""The generators under the names that problem files use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towpath.config.settings import Settings
from towpath.placement.cluster import Cluster
from towpath.placement.problem import Problem
from towpath.problems.generate.dcape import Dcape, dcape
from towpath.problems.generate.geography import Geography, geography
from towpath.problems.generate.hummer import Hummer, hummer
from towpath.problems.generate.matrix import Matrix, matrix
from towpath.problems.generate.plane import Plane, plane
from towpath.problems.generate.sbon import Sbon, sbon
from towpath.problems.generate.sqpr import Sqpr, sqpr
from towpath.problems.generate.transit_stub import TransitStub, transit_stub
from towpath.problems.generate.uniform import Uniform, uniform
from towpath.problems.generate.zhou import Zhou, zhou


@dataclass(frozen=True)
class GeneratedTopology:
    parameters: type[Settings]
    make: Callable[[Any, int, Path], Cluster]  # parameters, seed, the folder that paths are relative to


@dataclass(frozen=True)
class GeneratedWorkload:
    parameters: type[Settings]
    make: Callable[[Any, int, Cluster | None], Problem]  # parameters, seed, a cluster or None for the paper's


TOPOLOGIES: Mapping[str, GeneratedTopology] = {
    "uniform": GeneratedTopology(Uniform, lambda parameters, seed, folder: uniform(parameters)),
    "transit_stub": GeneratedTopology(TransitStub, lambda parameters, seed, folder: transit_stub(parameters, seed)),
    "geography": GeneratedTopology(Geography, lambda parameters, seed, folder: geography(parameters, seed)),
    "plane": GeneratedTopology(Plane, lambda parameters, seed, folder: plane(parameters, seed)),
    "matrix": GeneratedTopology(Matrix, lambda parameters, seed, folder: matrix(parameters, folder)),
}
WORKLOADS: Mapping[str, GeneratedWorkload] = {
    "zhou": GeneratedWorkload(Zhou, zhou),
    "dcape": GeneratedWorkload(Dcape, dcape),
    "sbon": GeneratedWorkload(Sbon, sbon),
    "sqpr": GeneratedWorkload(Sqpr, sqpr),
    "hummer": GeneratedWorkload(Hummer, hummer),
}
