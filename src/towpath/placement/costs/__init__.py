"""What a placement costs: one file per paper, in its symbols. METRICS are those that compare placements.

They expect a placement of which `check` finds at most that nodes or links are too full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isnan
from typing import Literal

from towpath.placement.costs import dcape, hummer, load, sbon, sqpr, zhou
from towpath.placement.problem import Placement, Problem


@dataclass(frozen=True, slots=True)
class Metric:
    value: Callable[[Problem, Placement], float]
    unit: str
    better: Literal["lower", "higher"]
    meaning: str

    def loss(self, problem: Problem, placement: Placement) -> float:
        """The value with its sign turned where higher is better: to be made small. The unknown is the worst."""
        value = self.value(problem, placement)
        if isnan(value):
            return inf
        return value if self.better == "lower" else -value


METRICS: Mapping[str, Metric] = {
    "load.deviation": Metric(load.deviation, "", "lower", "standard deviation of the nodes' load"),
    "load.highest": Metric(load.highest, "", "lower", "load of the busiest node"),
    "load.imbalance": Metric(load.imbalance, "", "lower", "highest load over the mean"),
    "zhou.pr_max": Metric(zhou.pr_max, "", "lower", "delay over processing time of the worst query"),
    "zhou.ppr_max": Metric(zhou.ppr_max, "", "lower", "the same, of the time on nodes"),
    "zhou.cpr_max": Metric(zhou.cpr_max, "", "lower", "the same, of the time between nodes"),
    "sbon.network_usage": Metric(sbon.network_usage, "B", "lower", "bytes in transit"),
    "sbon.delay": Metric(sbon.delay, "s", "lower", "latency from stream to sink, mean of the queries"),
    "hummer.L": Metric(hummer.load_differences, "kB/s", "lower", "load above the least loaded node"),
    "hummer.T": Metric(hummer.transfer, "kB/s", "lower", "flow between dependent inputs on different nodes"),
    "hummer.D": Metric(hummer.duplication, "", "lower", "streams buffered more than once"),
    "hummer.M": Metric(hummer.migration, "B", "lower", "buffers to be moved from the current placement"),
    "hummer.F": Metric(hummer.objective, "", "lower", "L + T + D + M"),
    "sqpr.O1": Metric(sqpr.admitted, "queries", "higher", "queries that run"),
    "sqpr.O2": Metric(sqpr.network, "B/s", "lower", "traffic between nodes"),
    "sqpr.O3": Metric(sqpr.cpu, "s/s", "lower", "work of all nodes"),
    "sqpr.O4": Metric(sqpr.highest, "s/s", "lower", "work of the node with most of it"),
    "sqpr.objective": Metric(sqpr.objective, "", "higher", "weighted sum of O1 to O4"),
    "dcape.network_output_rate": Metric(
        dcape.network_output_rate, "tuples/s", "lower", "sent by the node that sends most"
    ),
    "dcape.tuples_in_memory": Metric(
        dcape.most_tuples_in_memory, "tuples", "lower", "kept by the node that keeps most"
    ),
    "dcape.connections": Metric(dcape.connections, "", "lower", "network connections"),
}
