"""What the experiments of Zhou et al. have in common: the workload of section 4, and one simulation of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from towpath import planners
from towpath.lab.reproduce.report import Scale, Series
from towpath.lab.sim import Profile, simulate
from towpath.placement.problem import Problem
from towpath.policies.zhou import Options, actors
from towpath.problems.generate.zhou import Zhou, zhou

STREAMS_PER_QUERY = 2
LAST = 10.0  # seconds: the paper takes PRmax as a mean over so many, once the system is stable

ASSUMED = (
    f"a query has {STREAMS_PER_QUERY} streams, each behind a chain of filters, and one join: the paper tells only how "
    "many operators 500 queries have. Two was settled after a look at the outcome: with 2 or 3 (mean load 0.66 "
    "instead of 0.47) a node stayed overloaded and PRmax kept growing, in the one run that was made",
    "nothing is shared between queries: the paper does not tell how much is",
    "tuples come at constant intervals, and an operator takes as long for each",
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
    operators_per_fragment: float = 5.75  # 5,750 operators, 500 queries of two fragments
    interarrival: float = 0.004
    per_operator: bool = False  # whether each operator may move by itself
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


def measure(case: ZhouCase) -> ZhouSeen:
    parameters = Zhou(
        nodes=case.size.nodes,
        queries=case.size.queries,
        streams_per_query=(STREAMS_PER_QUERY, STREAMS_PER_QUERY),
        operators_per_fragment=case.operators_per_fragment,
        fragmenter="one_per_operator" if case.per_operator else "one_per_stream",
        theta=case.theta,
        interarrival=case.interarrival,
    )
    problem = zhou(parameters, case.seed)
    placement = planners.run("zhou", problem)
    deciding = None if case.options is None else actors(problem, placement, case.options)
    outcome = simulate(
        problem, placement, case.seconds, actors=deciding, seed=case.seed, profile=_profiles(problem, case)
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


def _profiles(problem: Problem, case: ZhouCase) -> dict[str, Profile]:
    if case.faster is None:
        return {}
    number, begin, end, factor = case.faster
    delegating = sorted({stream.node for stream in problem.streams})
    chosen = np.random.default_rng([case.seed, number]).choice(delegating, number, replace=False).tolist()
    steps = ((begin, factor), (end, 1.0))
    return {stream.name: Profile(steps=steps) for stream in problem.streams if stream.node in chosen}


def spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def series(name: str, x: Sequence[float], values: Sequence[Sequence[float]]) -> Series:
    """A line from the values of all seeds at each x."""
    means = tuple(fmean(of_seeds) for of_seeds in values)
    return Series(name, means, tuple(map(float, x)), tuple(spread(of_seeds) for of_seeds in values))
