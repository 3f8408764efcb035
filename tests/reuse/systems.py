"""Small systems for tests of planning with reuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf
from random import Random

from towpath.placement.cluster import Cluster, Network, NetworkLink, Node
from towpath.placement.costs.sqpr import weights_for
from towpath.problems.generate.sqpr import Sqpr, sqpr
from towpath.reuse.allocation import Allocation, use
from towpath.reuse.joins import with_join_orders
from towpath.reuse.system import SharedOperator, SharedStream, StreamRequest, System


def pair(cpu: float = 1.0, out: float = 100.0, nodes: int = 2) -> System:
    """Streams a at n1 and b at n2, 10 bytes/s each; their join takes 0.4 of a cpu and makes 1 byte/s."""
    streams = (
        SharedStream("a", 10.0, nodes=frozenset({"n1"})),
        SharedStream("b", 10.0, nodes=frozenset({"n2"})),
        SharedStream("ab", 1.0),
    )
    cluster = Cluster(tuple(Node(f"n{n}", cpu, inf, 100.0, out) for n in range(1, nodes + 1)))
    return System(cluster, streams, (SharedOperator("join", ("a", "b"), ("ab",), 0.4),), (StreamRequest("q", ("ab",)),))


def small_systems(seeds: Iterable[int]) -> Iterator[tuple[str, Random, System]]:
    """Systems in which some queries find no room; each with what to call it, and the dice for what happens in it."""
    for seed in seeds:
        random = Random(seed)
        yield f"seed {seed}", random, random_system(random, nodes=3, streams=5, queries=4)


def random_system(random: Random, nodes: int, streams: int, queries: int, ways: tuple[int, int] = (2, 3)) -> System:
    """Joins in every order, over nodes of which one has too little of something now and then."""
    parameters = Sqpr(nodes=nodes, streams=streams, queries=queries, ways=ways)
    system = with_join_orders(sqpr(parameters, random.randrange(10**6)))
    rate = parameters.data_rate
    made = tuple(
        Node(
            f"n{n}",
            random.choice([0.02, 0.05, 0.1, 0.2]),  # a join of two takes 0.0375
            inf,
            rate * random.choice([1, 2, 4]),
            rate * random.choice([1.1, 2.1, 4.1]),
            transfer_cost=random.choice([0.0, 1e-6]),
        )
        for n in range(nodes)
    )
    names = {old.name: new.name for old, new in zip(system.cluster.nodes, made, strict=True)}
    moved = tuple(replace(s, nodes=frozenset(names[n] for n in s.nodes)) for s in system.streams)
    sinks = tuple(replace(r, sink=random.choice([None, None, *names.values()])) for r in system.requests)
    return replace(system, cluster=Cluster(made), streams=moved, requests=sinks)


def with_tight_links(system: System, random: Random, bandwidth: float) -> System:
    names = [node.name for node in system.cluster.nodes]
    links = tuple(
        NetworkLink(a, b, bandwidth=bandwidth * random.choice([1, 2])) for a in names for b in names if a != b
    )
    return replace(system, cluster=Cluster(system.cluster.nodes, Network(links=links)))


def with_loose_links(system: System) -> System:
    """Links that never fill but look as if they could: they exceed every network card but one that nobody uses."""
    widest = max(node.bandwidth_out for node in system.cluster.nodes)
    first, *others = system.cluster.nodes
    nodes = (replace(first, bandwidth_in=first.bandwidth_in), *others)
    return replace(system, cluster=Cluster(nodes, Network(bandwidth=widest)))


def objective(system: System, allocation: Allocation) -> float:
    """lambda_1 O_1 - lambda_2 O_2 - lambda_3 O_3 - lambda_4 O_4."""
    w, used = weights_for(system.cluster), use(system, allocation)
    sent = sum(used.links.values())
    return float(
        w.admitted * len(allocation.admitted) - w.network * sent - w.cpu * used.load.sum() - w.highest * used.load.max()
    )
