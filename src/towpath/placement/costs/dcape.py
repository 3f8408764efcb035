"""Costs of D-CAPE: of operators (section 3.2), of processors (section 6.2), and connections (Algorithm 4)."""

from __future__ import annotations

from collections.abc import Mapping

from towpath.placement.flows import operator_rates, read_from, transfers, usage
from towpath.placement.problem import Placement, Problem


def stateless_cost(n: float, omega: float, rho: float, sigma: float) -> float:
    """n (omega + rho) + sigma(n) omega (eqs. 3.1 and 3.2).

    n tuples are read and m = sigma n written at omega each; each is tested at rho.
    """
    return n * (omega + rho) + sigma * n * omega


def join_cost(
    n: tuple[float, float], s: tuple[float, float], omega: float, psi: float, rho: float, sigma: float
) -> float:
    """n omega + psi sum(s_i) + rho (n_1 s_2 + n_2 s_1) + sigma(n) omega (eq. 3.3).

    n tuples come from the left and the right, s are in the two states, which are purged at psi each.
    """
    total = sum(n)
    return total * omega + psi * sum(s) + rho * (n[0] * s[1] + n[1] * s[0]) + sigma * total * omega


def network_output_rates(problem: Problem, placement: Placement) -> Mapping[str, float]:
    """NetworkOutputRate_i (eq. 6.1): tuples per second of those operators on node i whose output leaves it."""
    rates = {node.name: 0.0 for node in problem.cluster.nodes}
    for node, of_node in _sent(problem, placement).items():
        rates[node] = sum(of_node.values())
    return rates


def operator_costs(problem: Problem, placement: Placement) -> Mapping[str, Mapping[str, float]]:
    """OperatorCost_k (eq. 6.2) by node: the share of each operator in what its node sends."""
    totals = network_output_rates(problem, placement)
    return {
        node: {operator: rate / totals[node] if rate else 0.0 for operator, rate in of_node.items()}
        for node, of_node in _sent(problem, placement).items()
    }


def _sent(problem: Problem, placement: Placement) -> Mapping[str, Mapping[str, float]]:
    """By node, the operators whose output leaves it and their output rates; once, however many nodes read it."""
    rates = operator_rates(problem)
    sent: dict[str, dict[str, float]] = {}
    for transfer in transfers(problem, placement):
        if transfer.producer not in problem.stream:
            sent.setdefault(transfer.source, {})[transfer.producer] = rates[transfer.producer].rate_out
    return sent


def network_output_rate(problem: Problem, placement: Placement) -> float:
    """Of the node that sends most."""
    return max(network_output_rates(problem, placement).values(), default=0.0)


def tuples_in_memory(problem: Problem, placement: Placement) -> Mapping[str, float]:
    """By node, the tuples its operators keep (section 6.1); queues are empty in the steady state."""
    return dict(zip(problem.cluster.position, usage(problem, placement).state_tuples.tolist(), strict=True))


def most_tuples_in_memory(problem: Problem, placement: Placement) -> float:
    return max(tuples_in_memory(problem, placement).values(), default=0.0)


def connections(problem: Problem, placement: Placement) -> float:
    """Network connections that Algorithm 4 opens.

    One for each operator and input that sit on different nodes (SENDDATA, RECEIVEDATA), and one for each operator that
    reads a stream (STARTSTREAM): streams come from machines outside of the cluster. Delivery to the user is not in it.
    """
    count = 0
    for fragment in problem.fragments:
        for node in placement.nodes.get(fragment.name, ()):
            for operator in fragment.operators:
                for name in operator.inputs:
                    count += name in problem.stream or read_from(problem, placement, name, node) != node
    return float(count)
