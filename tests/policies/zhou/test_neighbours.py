from __future__ import annotations

from towpath.planners import run
from towpath.policies.zhou.neighbours import neighbouring_factors, neighbours

from .world import at_home, chains

# q0: n0 -> n1 -> n2; q1: n0 -> n1; q2: n0 -> n0
PROBLEM = chains(4, [[(0, 0.1), (1, 0.1), (2, 0.1)], [(0, 0.1), (1, 0.1)], [(0, 0.1), (0, 0.1)]])


def test_neighbours_are_directly_upstream_and_downstream() -> None:
    assert neighbours(PROBLEM) == {
        "q0.f0": ("q0.f1",),
        "q0.f1": ("q0.f0", "q0.f2"),
        "q0.f2": ("q0.f1",),
        "q1.f0": ("q1.f1",),
        "q1.f1": ("q1.f0",),
        "q2.f0": ("q2.f1",),
        "q2.f1": ("q2.f0",),
    }


def test_neighbouring_factors_are_symmetric_and_leave_out_the_node_itself() -> None:
    assert neighbouring_factors(PROBLEM) == {"n0": {"n1": 2}, "n1": {"n0": 2, "n2": 1}, "n2": {"n1": 1}, "n3": {}}


def test_the_planner_puts_fragments_on_the_delegation_nodes() -> None:
    assert run("zhou", PROBLEM).nodes == at_home(PROBLEM).nodes
