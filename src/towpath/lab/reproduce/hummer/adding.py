"""Queries are added step by step, and after each step their placement is made better by one setting of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random

from towpath.lab.reproduce.hummer.setting import WEIGHTS, begun
from towpath.placement.costs.hummer import KB, transfer
from towpath.placement.flows import flows
from towpath.placement.problem import Placement, Problem
from towpath.planners.hummer import Options, search
from towpath.problems.generate.hummer import Hummer, hummer


@dataclass(frozen=True)
class SearchBudget:
    """Of one search; 0: any number."""

    evaluations: int = 0
    seconds: float = 0.0
    patience: int = 0


@dataclass(frozen=True)
class AddingCase:
    setting: Hummer
    weights: str  # of WEIGHTS
    steps: tuple[int, ...]  # numbers of queries
    budget: SearchBudget
    seed: int


@dataclass(frozen=True)
class Snapshot:
    queries: int
    buffers: Mapping[str, frozenset[str]]  # by node, the sources that it buffers
    inputs: Mapping[str, int]  # by node
    between: Mapping[tuple[str, str], float]  # by pair of nodes, kB/s of dependencies
    transfer: float  # T, kB/s
    cut: int  # dependencies between nodes
    memory: float  # bytes in buffers
    events: tuple[float, ...]  # arriving at each node, per second

    @property
    def subscriptions(self) -> int:
        return sum(map(len, self.buffers.values()))


def add_queries(case: AddingCase) -> list[tuple[Snapshot, Snapshot]]:
    """Before and after the search, for each step."""
    rng, placed, found = Random(case.seed), Placement({}), []
    for queries in case.steps:
        problem = begun(hummer(case.setting.model_copy(update={"queries": queries})), placed, rng)
        assert problem.current is not None, "every query has begun"
        options = Options(**asdict(WEIGHTS[case.weights]), **asdict(case.budget), seed=case.seed)
        placed = search(problem, options).placement
        found.append((snapshot(problem, problem.current), snapshot(problem, placed)))
    return found


def snapshot(problem: Problem, placement: Placement) -> Snapshot:
    nodes = [node.name for node in problem.cluster.nodes if node.cpu > 0]
    at = {fragment: on[0] for fragment, on in placement.nodes.items()}
    buffers: dict[str, set[str]] = {node: set() for node in nodes}
    between: dict[tuple[str, str], float] = {}
    cut = 0
    for flow in flows(problem):
        reader = at[flow.consumer]
        if flow.producer in problem.stream:
            buffers[reader].add(flow.producer)
        elif (source := at[problem.home[flow.producer]]) != reader:
            between[source, reader] = between.get((source, reader), 0.0) + flow.bytes / KB
            cut += 1
    size = next(problem.operators()).state_bytes
    return Snapshot(
        len(problem.queries),
        {node: frozenset(sources) for node, sources in buffers.items()},
        {node: sum(on == node for on in at.values()) for node in nodes},
        between,
        transfer(problem, placement),
        cut,
        size * sum(map(len, buffers.values())),
        tuple(sum(problem.stream[s].rate for s in sources) for sources in buffers.values()),
    )


def last(runs: Sequence[Sequence[tuple[Snapshot, Snapshot]]]) -> list[Snapshot]:
    """Of each run, how it ended."""
    return [steps[-1][1] for steps in runs]
