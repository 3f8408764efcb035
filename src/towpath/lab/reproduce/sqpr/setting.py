"""The simulated system of section V-A, and planners run on it query by query."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Literal

import numpy as np

from towpath.lab.reproduce.report import Scale
from towpath.lab.reproduce.runs import Kept, kept_in
from towpath.placement.cluster import Cluster
from towpath.placement.costs.sqpr import weights_for
from towpath.placement.index import Floats
from towpath.problems.generate.sqpr import Sqpr, sqpr
from towpath.reuse.admission import SolveLimits, submit
from towpath.reuse.allocation import Allocation, use
from towpath.reuse.bound import AggregateNode, optimistic_bound
from towpath.reuse.heuristic import Heuristic
from towpath.reuse.joins import with_join_orders
from towpath.reuse.model import Rules
from towpath.reuse.system import StreamRequest, System

STREAMS_PER_NODE = 10
SHARE = 0.5  # of the queries: what the heuristic planner admits if only cpu, or only bandwidth, is limited
HALVINGS = 6  # of the range in which the limit that does so is looked for
GAP = 1e-3  # of the objective: closer to the best is not looked for
WIDE_GAP = 0.05  # the same with 50 nodes
IDLE = 3  # nodes without anything of what is planned that are looked at before all are
BESIDE = 8  # admitted queries that are planned anew with one that has no room otherwise
BESIDE_SECONDS = 5.0  # that may take, whatever the time limit
BOUND_SECONDS = 20.0

ASSUMED = (
    f"cpu and network cards are such that the heuristic planner admits {SHARE:.0%} of the queries if the cards have no "
    "limit, and as many if cpu has none: the paper says only that both bind. It gives links (1 Gbps), not cards; with "
    "cards of 1 Gbps, 1,000 queries of at most four streams of 10 Mbps could not fill those of 50 nodes",
    "the result of a join has one rate, in whatever order it is made; joins that are in no query's first plan get the "
    "mean selectivity",
    "time limits are seconds of the processor, one core",
    f"the search ends when what is to be decided of the objective is within {GAP:.1%} of the best possible "
    "(CPLEX's default is 0.01% of all, most of which are the queries that were admitted)",
)
ASSUMED_BESIDE = (
    f"a query that has no room is planned once more, for {BESIDE_SECONDS:.0f} s at most, together with the {BESIDE} "
    "admitted ones that could share most with it: the paper says so in words, while its S(q) and O(q) leave everything "
    "fixed that is no part of a plan for the query",
    f"of nodes that have nothing of what is planned, the {IDLE} with most room are looked at first, and all if there "
    "is no place: what the solver calls optimal is so among them",
)


@dataclass(frozen=True)
class SqprSize:
    nodes: int
    queries: int

    @property
    def streams(self) -> int:
        return self.nodes * STREAMS_PER_NODE


SIZES: dict[Scale, SqprSize] = {"tiny": SqprSize(3, 12), "default": SqprSize(8, 160), "full": SqprSize(50, 1000)}


def scaled_down(scale: Scale) -> tuple[str, ...]:
    size = SIZES[scale]
    return (
        ()
        if scale == "full"
        else (f"{size.nodes} nodes, {size.streams} streams and {size.queries} queries instead of 50, 500 and 1,000",)
    )


def simulated(size: SqprSize, seed: int) -> System:
    """The system of section V-A."""
    kept = Kept(kept_file(f"system-{size.nodes}-{size.queries}-{seed}"))
    if (system := kept.load()) is None:
        kept.save(system := constrained(workload(size, seed)), now=True)
    return system


def kept_file(name: str) -> Path | None:
    folder = kept_in.get()
    return None if folder is None else folder / f"{name}.pickle"


def workload(size: SqprSize, seed: int, streams: int = 0, theta: float = 1.0, ways: tuple[int, int] = (2, 4)) -> System:
    """Its queries, on nodes that have yet to be given limits."""
    parameters = Sqpr(nodes=size.nodes, streams=streams or size.streams, queries=size.queries, theta=theta, ways=ways)
    return with_join_orders(sqpr(parameters, seed))


def with_limits_of(system: System, other: System, factor: float = 1.0) -> System:
    """With nodes that have as much as those of another system, or so many times as much."""
    node = other.cluster.nodes[0]
    return with_nodes(system, factor * node.cpu, factor * node.bandwidth_in)


def constrained(system: System) -> System:
    """With so much cpu and bandwidth that both bind."""
    roomy = with_nodes(system, inf, inf)
    heuristic = Heuristic(roomy, rules=Rules(weights=weights_for(system.cluster)))
    for request in system.requests:
        heuristic.submit(request)
    used = use(roomy, heuristic.allocation)
    cpu = _least(lambda limit: _suffices(system, limit, inf), used.load)
    bandwidth = _least(lambda limit: _suffices(system, inf, limit), np.maximum(used.bytes_in, used.bytes_out))
    return with_nodes(system, cpu, bandwidth)


def _least(suffices: Callable[[float], bool], used: Floats) -> float:
    """The least limit of a node that suffices; what the busiest one uses without a limit does."""
    low, high = 0.0, float(used.max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _suffices(system: System, cpu: float, bandwidth: float) -> bool:
    """Whether the heuristic planner admits the wanted share of the queries."""
    limited = with_nodes(system, cpu, bandwidth)
    heuristic = Heuristic(limited, rules=Rules(weights=weights_for(system.cluster)))
    allowed = (1 - SHARE) * len(system.requests)  # so many may be refused
    for request in system.requests:
        allowed -= not heuristic.submit(request)
        if allowed < 0 or len(heuristic.allocation.admitted) >= SHARE * len(system.requests):
            break
    return allowed >= 0


def with_nodes(system: System, cpu: float, bandwidth: float) -> System:
    nodes = (replace(n, cpu=cpu, bandwidth_in=bandwidth, bandwidth_out=bandwidth) for n in system.cluster.nodes)
    network = replace(system.cluster.network, bandwidth=max(system.cluster.network.bandwidth, bandwidth))
    return replace(system, cluster=Cluster(tuple(nodes), network))


SqprPlanner = Literal["sqpr", "heuristic", "aggregate", "bound"]


@dataclass(frozen=True)
class SqprCase:
    system: System
    planner: SqprPlanner
    seconds: float = 0.0  # of the processor, for each query
    batch: int = 1
    gap: float = GAP
    beside: bool = False  # others are planned anew to make room
    kept: Path | None = None  # where it is written down how far it has come


@dataclass(frozen=True)
class SqprSeen:
    admitted: tuple[int, ...]  # after each query that was submitted
    seconds: tuple[float, ...]  # of the processor, to plan each query
    statuses: Counter[str]
    used: tuple[float, ...]  # before each query: the share of cpu or of bandwidth, whichever is scarcer
    cpu: Floats  # share of each node's cpu in the end
    network: Floats  # bytes per second that each node sends and receives

    @property
    def last(self) -> int:
        return self.admitted[-1]


def measure(case: SqprCase) -> SqprSeen:
    if case.planner == "bound":
        return _bounds(case.system)
    kept = Kept(case.kept)
    plan, course = kept.load() or (_Sqpr(case) if case.planner == "sqpr" else _Simple(case), SqprCourse())
    requests = case.system.requests
    for first in range(len(course.seconds), len(requests), case.batch):
        group = requests[first : first + case.batch]
        course.used += [_scarcest(case.system, plan.allocation)] * len(group)
        begin = time.process_time()
        new = plan.submit(group)
        course.seconds += [(time.process_time() - begin) / len(group)] * len(group)
        course.admitted += [course.last] * (len(group) - 1) + [course.last + new]
        kept.save((plan, course), now=first + case.batch >= len(requests))
    taken = use(case.system, plan.allocation)
    cpu = taken.load / np.array([node.cpu for node in case.system.cluster.nodes])
    network = taken.bytes_in + taken.bytes_out
    return SqprSeen(tuple(course.admitted), tuple(course.seconds), plan.statuses, tuple(course.used), cpu, network)


@dataclass
class SqprCourse:
    """By query, what a run has seen so far."""

    admitted: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)

    @property
    def last(self) -> int:
        return self.admitted[-1] if self.admitted else 0


def _scarcest(system: System, allocation: Allocation) -> float:
    taken, node = use(system, allocation), system.cluster.nodes[0]
    shares = (taken.load / node.cpu, taken.bytes_in / node.bandwidth_in, taken.bytes_out / node.bandwidth_out)
    return float(max(share.mean() for share in shares))


class _Sqpr:
    def __init__(self, case: SqprCase) -> None:
        self._system = case.system
        self._limits = SolveLimits(case.seconds * case.batch, case.gap)
        if case.beside:
            self._limits = replace(self._limits, beside=BESIDE, beside_seconds=BESIDE_SECONDS, idle=IDLE)
        self.allocation = Allocation()
        self.statuses: Counter[str] = Counter()

    def submit(self, group: Sequence[StreamRequest]) -> int:
        outcome = submit(self._system, self.allocation, group, self._limits)
        self.allocation = outcome.allocation
        self.statuses[outcome.status] += 1
        return len(outcome.admitted)


class _Simple:
    """The heuristic planner, or the aggregate node."""

    def __init__(self, case: SqprCase) -> None:
        self._planner = Heuristic(case.system) if case.planner == "heuristic" else AggregateNode(case.system)
        self.statuses: Counter[str] = Counter()

    @property
    def allocation(self) -> Allocation:
        return self._planner.allocation if isinstance(self._planner, Heuristic) else Allocation()

    def submit(self, group: Sequence[StreamRequest]) -> int:
        return sum(self._planner.submit(request) for request in group)


def marks(queries: int) -> list[int]:
    """After how many queries to look: ten times."""
    return sorted({max(queries * n // 10, 1) for n in range(1, 11)})


def _bounds(system: System) -> SqprSeen:
    """At the marks, and what the mark before had in between."""
    requests, found = system.requests, [0]
    for mark in marks(len(requests)):
        bound = optimistic_bound(system, requests[:mark], BOUND_SECONDS)
        found += [found[-1]] * (mark - len(found)) + [bound]
    empty = np.zeros(len(system.cluster.nodes))
    return SqprSeen(tuple(found[1:]), (0.0,) * len(requests), Counter(), (0.0,) * len(requests), empty, empty)
