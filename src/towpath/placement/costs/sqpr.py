"""The four objectives of Kalyvianaki et al. (SQPR), eqs. III.2 and III.3."""

from __future__ import annotations

from dataclasses import dataclass

from towpath.placement.cluster import Cluster
from towpath.placement.flows import usage
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True, slots=True)
class SqprWeights:
    """lambda_1 to lambda_4."""

    admitted: float
    network: float
    cpu: float
    highest: float


def admitted(problem: Problem, placement: Placement) -> float:
    """O_1 = sum of d_hs: the queries that run."""
    return float(sum(all(placement.nodes.get(f) for f in query.fragments) for query in problem.queries))


def network(problem: Problem, placement: Placement) -> float:
    """O_2 = sum of rho_s x_hms: bytes per second between nodes."""
    return float(usage(problem, placement).bytes.sum())


def cpu(problem: Problem, placement: Placement) -> float:
    """O_3 = sum of gamma_o z_ho: seconds of work per second."""
    return float(usage(problem, placement).load.sum())


def highest(problem: Problem, placement: Placement) -> float:
    """O_4 = max over h of the sum of gamma_o z_ho."""
    return float(usage(problem, placement).load.max(initial=0.0))


def weights_for(cluster: Cluster) -> SqprWeights:
    """As in section IV-A, except that CPU is scaled by the total CPU: the paper scales it by the links' bandwidth."""
    total = sum(node.cpu for node in cluster.nodes)
    most = max((node.cpu for node in cluster.nodes), default=0.0)
    # lambda_1 = M must outweigh the others together: O_2 and O_3 are scaled to 1, O_4 is at most the largest cpu.
    bandwidth = sum(node.bandwidth_out for node in cluster.nodes)
    return SqprWeights(3.0 + most, 1 / bandwidth if bandwidth else 0.0, 1 / total if total else 0.0, 1.0)


def objective(problem: Problem, placement: Placement, weights: SqprWeights | None = None) -> float:
    """lambda_1 O_1 - lambda_2 O_2 - lambda_3 O_3 - lambda_4 O_4 (eq. III.3), to be made large."""
    w = weights or weights_for(problem.cluster)
    return (
        w.admitted * admitted(problem, placement)
        - w.network * network(problem, placement)
        - w.cpu * cpu(problem, placement)
        - w.highest * highest(problem, placement)
    )
