"""The mixed-integer program against everything that can be tried, and its two forms against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from reuse.systems import objective, pair, random_system, with_tight_links
from towpath.reuse import model as model_module
from towpath.reuse.admission import submit
from towpath.reuse.allocation import AllocatedFlow, AllocatedRun, Allocation
from towpath.reuse.check import check
from towpath.reuse.model import Model, links_can_bind
from towpath.reuse.system import System
from towpath.reuse.translate import decode, encode


def everything(system: System) -> Iterator[Allocation]:
    """All allocations, valid or not, in which a node gets a stream from one node at most."""
    nodes = [node.name for node in system.cluster.nodes]
    runs = [AllocatedRun(node, operator.name) for operator in system.operators for node in nodes]
    gets = [(node, s.name) for s in system.streams for node in nodes if node not in s.nodes]
    senders = [[None, *(other for other in nodes if other != node)] for node, _ in gets]
    wanted = sorted({s for r in system.requests if r.sink is None for s in r.streams})
    for chosen in product(*([False, True] for _ in runs)):
        running = frozenset(run for run, yes in zip(runs, chosen, strict=True) if yes)
        for sources in product(*senders):
            received = zip(gets, sources, strict=True)
            flows = frozenset(AllocatedFlow(source, node, s) for (node, s), source in received if source is not None)
            for places in product([None, *nodes], repeat=len(wanted)):
                provides = {s: node for s, node in zip(wanted, places, strict=True) if node is not None}
                yield Allocation(running, flows, provides)


def best(system: System) -> float:
    """The highest objective of all allocations that check() accepts, whoever is admitted."""
    found = 0.0  # of doing nothing
    for tried in everything(system):
        served = {r.name for r in system.requests if r.sink or all(s in tried.provides for s in r.streams)}
        for admitted in ({*served}, *({name} for name in served)):
            allocation = replace(tried, admitted=frozenset(admitted))
            if (value := objective(system, allocation)) > found and not check(system, allocation):
                found = value
    return found


def solved(system: System) -> Allocation:
    """All requests at once, so that the program decides about everything."""
    model = Model(system, Allocation(), system.requests, forced=False)
    solution = model.program.solve(gap=0.0)
    assert solution.status == "optimal"
    assert solution.values is not None
    found = decode(model, solution.values)
    assert not check(system, found)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_program_equals_brute_force(seed: int) -> None:
    random = Random(seed)
    system = random_system(random, nodes=2, streams=3, queries=2, ways=(2, 2))
    if seed % 2:
        system = with_tight_links(system, random, system.streams[0].bytes * 1.05)
        assert links_can_bind(system.cluster)
    assert objective(system, solved(system)) == pytest.approx(best(system), abs=1e-6)


@pytest.mark.parametrize(
    "out", [pytest.param(100.0, marks=pytest.mark.long), 20.5, pytest.param(10.5, marks=pytest.mark.long)]
)
def test_the_program_equals_brute_force_on_three_nodes(out: float) -> None:
    system = pair(cpu=0.5, out=out, nodes=3)
    assert objective(system, solved(system)) == pytest.approx(best(system), abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_both_forms_have_the_same_best_objective(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = random_system(Random(seed), nodes=3, streams=4, queries=2)
    assert not links_can_bind(system.cluster)
    without_links = objective(system, solved(system))
    monkeypatch.setattr(model_module, "links_can_bind", lambda cluster: True)
    assert objective(system, solved(system)) == pytest.approx(without_links, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_solution_can_be_started_from_in_both_forms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = random_system(Random(seed), nodes=3, streams=4, queries=2)
    current = solved(system)
    for binds in (False, True):
        monkeypatch.setattr(model_module, "links_can_bind", lambda cluster, binds=binds: binds)
        model = Model(system, current, system.requests, forced=False)
        kept = decode(model, encode(model, current))
        assert kept == current
        assert not check(system, kept)


def test_a_busy_sender_is_relieved_by_a_relay() -> None:
    """Figure 2b: a is wanted on two further nodes, but its own node can send it only once."""
    system = pair(out=100.0, nodes=3)
    first, *others = system.cluster.nodes
    slow = replace(system.cluster, nodes=(replace(first, bandwidth_out=10.5, cpu=0.0), *others))
    pinned = replace(system.operators[0], nodes=frozenset({"n2"}))
    again = replace(pinned, name="again", outputs=("ba",), nodes=frozenset({"n3"}))
    system = replace(
        system,
        cluster=slow,
        streams=(*system.streams, replace(system.streams[2], name="ba")),
        operators=(pinned, again),
        requests=(*system.requests, replace(system.requests[0], name="r", streams=("ba",))),
    )
    outcome = submit(system, Allocation(), system.requests)
    assert outcome.admitted == {"q", "r"}
    relays = {flow for flow in outcome.allocation.flows if flow.stream == "a"}
    assert relays in (
        {AllocatedFlow("n1", "n2", "a"), AllocatedFlow("n2", "n3", "a")},
        {AllocatedFlow("n1", "n3", "a"), AllocatedFlow("n3", "n2", "a")},
    )
    assert not check(system, outcome.allocation)
