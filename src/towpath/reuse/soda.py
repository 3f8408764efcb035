"""SODA (Wolf et al., as Kalyvianaki et al. describe it in section V-B): admission first, placement afterwards.

Queries come in epochs and keep the plan that they came with (their template). Templates are glued: a stream is made
once, for all who want it. Three stages:

- macroQ admits queries in their order as long as all nodes together have the cpu for them, wherever things are placed;
- macroW places all operators at once, by a program that has to take every admitted query and balances the load;
- miniW improves that by moving single operators, or places the queries one after another if macroW found nothing. What
  it cannot place is refused after all, since what a query needs is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from towpath.reuse.admission import SolveLimits
from towpath.reuse.allocation import Allocation, placed, routed, use
from towpath.reuse.bound import AggregateNode
from towpath.reuse.check import resources
from towpath.reuse.model import Model, Rules
from towpath.reuse.solver import SolverStatus
from towpath.reuse.system import StreamRequest, System
from towpath.reuse.translate import decode

RULES = Rules(relays=False, once=True)
MOVES = 50  # that miniW makes at most in an epoch

At = Mapping[str, str]  # the node of each operator


class Soda:
    """Of a system in which every stream has one operator at most that makes it."""

    def __init__(self, system: System, limits: SolveLimits, rules: Rules = RULES) -> None:
        self.system = system
        self.allocation = Allocation()
        self.status: SolverStatus | None = None  # of the last epoch's macroW
        self._limits, self._rules = limits, rules

    def epoch(self, requests: Sequence[StreamRequest]) -> frozenset[str]:
        """The requests that are admitted and placed."""
        chosen = self._macro_q(requests)
        found = self._macro_w(chosen) if chosen else self.allocation
        self.allocation = self._balanced(self._one_by_one(chosen) if found is None else found)
        return self.allocation.admitted.intersection(request.name for request in requests)

    def _macro_q(self, requests: Sequence[StreamRequest]) -> list[StreamRequest]:
        together = AggregateNode(self.system)
        for name in sorted(self.allocation.admitted):
            together.submit(self.system.request[name])
        return [request for request in requests if together.submit(request)]

    def _macro_w(self, chosen: Sequence[StreamRequest]) -> Allocation | None:
        model = Model(self.system, self.allocation, chosen, forced=True, rules=self._rules)
        solution = model.program.solve(self._limits.seconds, self._limits.gap, branches=self._limits.branches)
        self.status = solution.status
        return None if solution.values is None else decode(model, solution.values)

    def _one_by_one(self, chosen: Sequence[StreamRequest]) -> Allocation:
        """miniW without a solution of macroW: every operator on the node with least to do that has room for it."""
        found = self.allocation
        for request in chosen:
            at: At | None = {run.operator: run.node for run in found.runs}
            for operator in self.system.related(request.streams)[1]:
                at = self._with_operator(at, operator, found.admitted) if at is not None else None
            if at is not None:
                tried = routed(self.system, placed(at), found.admitted | {request.name})
                found = found if any(resources(self.system, tried)) else tried
        return found

    def _with_operator(self, at: At, operator: str, admitted: frozenset[str]) -> At | None:
        if operator in at:
            return at
        load = use(self.system, routed(self.system, placed(at), admitted)).load
        nodes = self.system.cluster.nodes
        for n in sorted(range(len(nodes)), key=lambda n: load[n] - nodes[n].cpu):
            tried = {**at, operator: nodes[n].name}
            if self._may_run(operator, nodes[n].name) and not any(
                resources(self.system, routed(self.system, placed(tried), admitted))
            ):
                return tried
        return None

    def _may_run(self, operator: str, node: str) -> bool:
        allowed = self.system.operator[operator].nodes
        return allowed is None or node in allowed

    def _balanced(self, found: Allocation) -> Allocation:
        """miniW: operators of the node with most to do go to the one with least, as long as that lowers the most."""
        nodes = self.system.cluster.nodes
        for _ in range(MOVES):
            load = use(self.system, found).load
            most, least = nodes[int(load.argmax())].name, nodes[int(load.argmin())].name
            better = self._moved(found, most, least, float(load.max()))
            if better is None:
                break
            found = better
        return found

    def _moved(self, found: Allocation, source: str, target: str, highest: float) -> Allocation | None:
        at = {run.operator: run.node for run in found.runs}
        here = [name for name, node in at.items() if node == source and self._may_run(name, target)]
        for operator in sorted(here, key=lambda name: (-self.system.operator[name].load, name)):
            tried = routed(self.system, placed({**at, operator: target}), found.admitted)
            if use(self.system, tried).load.max() < highest and not any(resources(self.system, tried)):
                return tried
        return None
