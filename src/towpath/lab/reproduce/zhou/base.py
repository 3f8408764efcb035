"""What the experiments of Zhou et al. have in common: the workload of section 4, and one simulation of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from towpath import planners
from towpath.lab.reproduce.report import Scale, Series
from towpath.lab.sim import Profile, Profiles, simulate
from towpath.placement.problem import Problem
from towpath.policies.zhou import Options, actors
from towpath.problems.generate.zhou import Zhou, zhou

OPERATORS = 5750 / 500  # of a query: "500 randomly generated queries and a total of 5750 logical operators"
STREAMS_PER_QUERY = 3
SHARED = 1.0  # the chance that a filter over a stream is one that others have there
LAST = 10.0  # seconds: the paper takes PRmax as a mean over so many, once the system is stable

NETWORK = (
    "all nodes share one medium of 100 Mbps (section 4: the bandwidth of the network connecting the nodes); results "
    "are not sent to a sink, because the cost of delivering them is not considered (section 2.2), and 32 nodes' "
    "results would take half of the medium",
    "tuples come as Poisson processes and operators take exponential times: the paper gives means (section 4) and says "
    "that both are random variables (section 3.3)",
)
ASSUMED = (
    f"a query has {STREAMS_PER_QUERY} streams, each behind a chain of filters, and joins: with two no fragment has two "
    "neighbours, and four (as in Fig. 2) would load the nodes with 0.95 on average, by the numbers of section 4 alone",
    "filters over one stream are shared as far as they are the same from the stream on, as in the TelegraphCQ that is "
    "emulated: a node works once for all of them, and a fragment's load has its 1/n share",
    *NETWORK,
)


@dataclass(frozen=True)
class ZhouSize:
    nodes: int
    queries: int

    @property
    def text(self) -> str:
        return f"{self.nodes} nodes and {self.queries} queries instead of 32 and 500"


SIZES: dict[Scale, ZhouSize] = {"tiny": ZhouSize(3, 20), "default": ZhouSize(16, 250), "full": ZhouSize(32, 500)}


def scaled_down(scale: Scale) -> tuple[str, ...]:
    return () if scale == "full" else (SIZES[scale].text,)


@dataclass(frozen=True)
class ZhouCase:
    """One simulation."""

    size: ZhouSize
    seconds: float
    seed: int
    options: Options | None = None  # None: nothing moves
    theta: float = 0.95
    streams_per_query: int = STREAMS_PER_QUERY
    shared: float = SHARED
    operators_per_fragment: float = OPERATORS / STREAMS_PER_QUERY
    per_operator: bool = False  # whether each operator may move by itself
    balanced: bool = False  # whether all nodes begin with equal load
    faster: tuple[int, float, float, float] | None = None  # so many nodes' streams, from, until, by this factor


@dataclass(frozen=True)
class ZhouSeen:
    """What was measured in each second of a simulation."""

    load_mean: NDArray[np.float64]
    load_stdev: NDArray[np.float64]
    pr_max: NDArray[np.float64]
    sent: NDArray[np.float64]  # bytes of tuples between nodes, without results on their way to the sink
    state_bytes: float  # sent in all, as are the messages
    message_bytes: float
    moves: int
    homeward: int  # moves to the native node

    def last(self, of: NDArray[np.float64]) -> float:
        return float(np.nanmean(of[-int(LAST) :]))


def problem_of(case: ZhouCase) -> Problem:
    parameters = Zhou(
        nodes=case.size.nodes,
        queries=case.size.queries,
        streams_per_query=(case.streams_per_query, case.streams_per_query),
        shared=case.shared,
        operators_per_fragment=case.operators_per_fragment,
        fragmenter="one_per_operator" if case.per_operator else "one_per_stream",
        theta=case.theta,
        balanced=case.balanced,
        medium="shared",
    )
    problem = zhou(parameters, case.seed)
    return replace(problem, queries=tuple(replace(query, sink=None) for query in problem.queries))


def measure(case: ZhouCase) -> ZhouSeen:
    problem = problem_of(case)
    placement = planners.run("zhou", problem)
    deciding = None if case.options is None else actors(problem, placement, case.options)
    outcome = simulate(
        problem,
        placement,
        case.seconds,
        actors=deciding,
        seed=case.seed,
        profile=_profiles(problem, case),
        service="exponential",
    )
    windows = outcome.windows
    return ZhouSeen(
        load_mean=windows["load_mean"].to_numpy(),
        load_stdev=windows["load_stdev"].to_numpy(),
        pr_max=windows["pr_max"].to_numpy(),
        sent=windows["bytes"].to_numpy(),
        state_bytes=float(windows["state_bytes"].sum()),
        message_bytes=float(windows["message_bytes"].sum()),
        moves=len(outcome.moves),
        homeward=sum(
            problem.native_node(problem.fragment[fragment]) == target
            for fragment, target in zip(outcome.moves["fragment"], outcome.moves["target"], strict=True)
        ),
    )


def _profiles(problem: Problem, case: ZhouCase) -> Profiles:
    if case.faster is None:
        return Profile("poisson")
    number, begin, end, factor = case.faster
    delegating = sorted({stream.node for stream in problem.streams})
    chosen = np.random.default_rng([case.seed, number]).choice(delegating, number, replace=False).tolist()
    steps = ((begin, factor), (end, 1.0))
    return {s.name: Profile("poisson", steps if s.node in chosen else ()) for s in problem.streams}


def spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def series(name: str, x: Sequence[float], values: Sequence[Sequence[float]]) -> Series:
    """A line from the values of all seeds at each x."""
    means = tuple(fmean(of_seeds) for of_seeds in values)
    return Series(name, means, tuple(map(float, x)), tuple(spread(of_seeds) for of_seeds in values))
