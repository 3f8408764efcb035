"""Pairs of equal queries, one of which may move, on nodes whose latencies and loads drift."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from towpath import planners, policies
from towpath.lab.sim import Profile, SimulationOutcome, drift, simulate
from towpath.placement.cluster import Cluster, Network
from towpath.placement.index import Floats
from towpath.placement.problem import Fragment, Operator, Placement, PlacementQuery, PlacementStream, Problem
from towpath.problems.generate.drifting import Drifting, Matrix
from towpath.problems.generate.geography import Geography, geography
from towpath.problems.generate.sbon import Sbon, sbon

MOVES, STAYS = ".moves", ".stays"  # what the names of the two queries of a pair end with
MOST_LOAD = 0.8  # of others


@dataclass(frozen=True)
class PairsSize:
    nodes: int
    pairs: int
    seconds: float


@dataclass(frozen=True)
class PairsCase:
    size: PairsSize
    seed: int
    drifting: Drifting
    load_scale: float
    piece: float  # seconds: the work of others comes in such pieces


@dataclass(frozen=True)
class Pair:
    """Means over the run, of the one that moves and of the one that stays; usage in bytes, delay in seconds."""

    usage: tuple[float, float]  # with latencies as applications see them: waiting at the operator's node is part of it
    on_the_wire: tuple[float, float]  # usage with the network's latencies alone
    delay: tuple[float, float]
    migrations: int


@dataclass(frozen=True)
class PairsSeen:
    pairs: tuple[Pair, ...]
    series: tuple[tuple[float, float], ...]  # slice by slice, the usage of all that move and of all that stay


def run_pairs(case: PairsCase) -> PairsSeen:
    size = case.size
    number = int(size.seconds / case.drifting.every)
    base = geography(Geography(nodes=size.nodes), case.seed)
    slices = list(case.drifting.slices(base, number, case.seed))
    cluster = replace(base, network=Network(latencies=slices[0].astype(np.float32)))
    problem, profiles = _with_load(paired(cluster, size.pairs, case.seed), case, number)
    placement = _placed(problem, case)
    stay = {name: nodes[0] for name, nodes in placement.nodes.items() if name.endswith(STAYS)}
    problem = replace(problem, pinned={**problem.pinned, **stay})
    options = policies.get("sbon").options(load_scale=case.load_scale, seed=case.seed)
    outcome = simulate(
        problem,
        placement,
        size.seconds,
        actors=policies.start("sbon", problem, placement, options),
        seed=case.seed,
        profile=profiles,
        faults=drift(slices, case.drifting.every),
        record=size.seconds,
    )
    return _seen(problem, placement, outcome, slices, case)


def paired(cluster: Cluster, pairs: int, seed: int) -> Problem:
    """Section 4.2: two producers of a packet a second, a join that lets a quarter through, a consumer.

    Both queries have streams of their own, so that neither pays for the other.
    """
    drawn = sbon(Sbon(queries=pairs, producers=2, data_rate=1_000, tuple_bytes=1_000, selectivity=0.25), seed, cluster)
    streams: list[PlacementStream] = []
    fragments: list[Fragment] = []
    queries: list[PlacementQuery] = []
    for end in (MOVES, STAYS):
        streams += [replace(s, name=s.name + end) for s in drawn.streams]
        fragments += [
            Fragment(f.name + end, f.query + end, tuple(_own(o, end) for o in f.operators)) for f in drawn.fragments
        ]
        queries += [replace(q, name=q.name + end, fragments=tuple(f + end for f in q.fragments)) for q in drawn.queries]
    return Problem(cluster, tuple(streams), tuple(fragments), tuple(queries))


def _own(operator: Operator, end: str) -> Operator:
    return replace(operator, name=operator.name + end, inputs=tuple(name + end for name in operator.inputs))


def _with_load(problem: Problem, case: PairsCase, number: int) -> tuple[Problem, dict[str, Profile]]:
    """The work of others on every node: a stream whose rate follows their load, and a fragment that stays there."""
    nodes = [node.name for node in problem.cluster.nodes]
    loads = np.array(list(case.drifting.loads(len(nodes), number, MOST_LOAD, case.seed)))
    streams = [PlacementStream(f"load.{n}", n, float(loads[0, i]) / case.piece, 1.0) for i, n in enumerate(nodes)]
    fragments = [
        Fragment(f"load.{n}.f", f"load.{n}.q", (Operator(f"load.{n}.o", (f"load.{n}",), cost=case.piece),))
        for n in nodes
    ]
    queries = [PlacementQuery(f"load.{n}.q", (f"load.{n}.f",)) for n in nodes]
    loaded = replace(
        problem,
        streams=(*problem.streams, *streams),
        fragments=(*fragments, *problem.fragments),  # so that a planner knows of it when it places the others
        queries=(*problem.queries, *queries),
        pinned={f"load.{n}.f": n for n in nodes},
    )
    times = [step * case.drifting.every for step in range(number)]
    profiles = {
        f"load.{n}": Profile("poisson", tuple(zip(times, (loads[:, i] / loads[0, i]).tolist(), strict=True)))
        for i, n in enumerate(nodes)
    }
    return loaded, profiles


def _placed(problem: Problem, case: PairsCase) -> Placement:
    """By the full placement optimiser; both of a pair at the same node."""
    options = planners.options("relaxation", {"seed": str(case.seed), "load_scale": str(case.load_scale)})
    placed = planners.run("relaxation", problem, options)
    same = {
        name: placed.nodes[name.removesuffix(STAYS) + MOVES] if name.endswith(STAYS) else nodes
        for name, nodes in placed.nodes.items()
    }
    return Placement(same)


def _seen(
    problem: Problem, placement: Placement, outcome: SimulationOutcome, slices: list[Matrix], case: PairsCase
) -> PairsSeen:
    loads = case.drifting.loads(case.size.nodes, len(slices), MOST_LOAD, case.seed)
    waits = [waiting(load, case.piece) for load in loads]
    usage = _usage(problem, placement, outcome, slices, waits, case.drifting.every)
    bare = _usage(problem, placement, outcome, slices, [0 * wait for wait in waits], case.drifting.every)
    delay = _delays(outcome)
    done = outcome.moves[outcome.moves["failed"] == ""]["fragment"].value_counts()
    found = []
    for n in range(1, case.size.pairs + 1):
        moves, stays = f"q{n}{MOVES}", f"q{n}{STAYS}"
        found.append(
            Pair(
                (float(usage[moves].mean()), float(usage[stays].mean())),
                (float(bare[moves].mean()), float(bare[stays].mean())),
                (delay[moves], delay[stays]),
                int(done.get(f"q{n}.a{MOVES}", 0)),
            )
        )
    sums = [sum(usage[q] for q in usage if q.endswith(end)) for end in (MOVES, STAYS)]
    return PairsSeen(tuple(found), tuple(zip(*(np.asarray(s).tolist() for s in sums), strict=True)))


def waiting(load: Floats, piece: float) -> Floats:
    """Seconds that a tuple waits at a node for the work of others there (Pollaczek and Khinchine)."""
    return np.asarray(piece * load / (2 * (1 - load)))


def _usage(
    problem: Problem,
    placement: Placement,
    outcome: SimulationOutcome,
    slices: list[Matrix],
    waits: list[Floats],
    every: float,
) -> dict[str, Floats]:
    """By query and slice, the mean of u (eq. 1) with the latencies of that time and the waiting at the operator."""
    done = outcome.moves[outcome.moves["failed"] == ""].to_dict("records")
    position = problem.cluster.position
    found: dict[str, Floats] = {}
    for query in (q for q in problem.queries if q.name.endswith((MOVES, STAYS))):
        (name,) = query.fragments
        hosts = [(0.0, placement.nodes[name][0]), *((m["ended"], m["target"]) for m in done if m["fragment"] == name)]
        ends = [*(at for at, _ in hosts[1:]), len(slices) * every]
        means = np.zeros(len(slices))
        for (since, node), until in zip(hosts, ends, strict=True):
            here = position[node]
            inward, out = _links(problem, query)
            for n, (seconds, wait) in enumerate(zip(slices, waits, strict=True)):
                share = max(min(until, (n + 1) * every) - max(since, n * every), 0.0) / every
                coming = sum(rate * (seconds[source, here] + wait[here]) for source, rate in inward)
                going = sum(rate * seconds[here, sink] for sink, rate in out)
                means[n] += share * (coming + going)
        found[query.name] = means
    return found


Ends = list[tuple[int, float]]  # nodes, and bytes a second


def _links(problem: Problem, query: PlacementQuery) -> tuple[Ends, Ends]:
    """From the producers, and to the consumer."""
    position = problem.cluster.position
    (name,) = query.fragments
    (operator,) = problem.fragment[name].operators
    streams = [problem.stream[stream] for stream in operator.inputs]
    assert query.sink is not None, "its consumer"
    out = sum(s.rate for s in streams) * operator.selectivity * operator.tuple_bytes
    return [(position[s.node], s.rate * s.tuple_bytes) for s in streams], [(position[query.sink], out)]


def _delays(outcome: SimulationOutcome) -> dict[str, float]:
    """By query, from a tuple's arrival to that of what comes of it at the consumer, mean over its streams."""
    paths = outcome.paths
    return {str(query): fmean(rows["delivery"]) for query, rows in paths.groupby("query")}
