"""How busy the nodes are, and how evenly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from towpath.placement.flows import usage
from towpath.placement.index import Floats
from towpath.placement.problem import Placement, Problem


def loads(problem: Problem, placement: Placement) -> Mapping[str, float]:
    """rho_i of every node that can work: the fraction of the time it is busy; above 1 it cannot keep up."""
    names = [node.name for node in problem.cluster.nodes if node.cpu > 0]
    return dict(zip(names, _rho(problem, placement).tolist(), strict=True))


def deviation(problem: Problem, placement: Placement) -> float:
    """Standard deviation of rho_i over the nodes: Zhou et al., section 4.1."""
    rho = _rho(problem, placement)
    return float(np.std(rho, ddof=1)) if len(rho) > 1 else 0.0


def highest(problem: Problem, placement: Placement) -> float:
    return float(_rho(problem, placement).max(initial=0.0))


def imbalance(problem: Problem, placement: Placement) -> float:
    """The highest load over the mean; 1 is even."""
    rho = _rho(problem, placement)
    return float(rho.max() / rho.mean()) if rho.any() else 1.0


def _rho(problem: Problem, placement: Placement) -> Floats:
    cpu = np.array([node.cpu for node in problem.cluster.nodes])
    # A node without cpu, such as one that only receives results, is no processing node.
    works = cpu > 0
    return usage(problem, placement).load[works] / cpu[works]
