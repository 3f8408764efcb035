from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from figures import MS, fig1, placed, twins
from towpath.lab.testing.problems import estimated, problems, random_placement
from towpath.placement.cluster import Cluster, Node
from towpath.placement.flows import (
    Flow,
    OperatorRates,
    Transfer,
    flows,
    fragment_loads,
    fragment_states,
    operator_rates,
    read_from,
    transfers,
    usage,
    with_statistics,
)
from towpath.placement.index import bandwidths, latencies
from towpath.placement.problem import Placement, PlacementQuery, Problem
from towpath.placement.statistics import OperatorStatistics, Statistics


def test_the_rates_of_fig_1() -> None:
    rates = operator_rates(fig1())
    assert rates["o1"] == OperatorRates(10.0, 20.0, pytest.approx(10 * MS), 2000.0)
    assert rates["o2"] == OperatorRates(20.0, 10.0, pytest.approx(40 * MS), 1000.0)
    assert rates["o4"] == OperatorRates(10.0, 30.0, pytest.approx(20 * MS), 3000.0)
    assert rates["o5"] == OperatorRates(40.0, 40.0, pytest.approx(160 * MS), 8000.0)
    assert fragment_loads(fig1()) == {"upper": pytest.approx(50 * MS), "lower": pytest.approx(190 * MS)}
    assert fragment_states(fig1()) == {"upper": 0.0, "lower": 500.0}


def test_the_flows_of_fig_1() -> None:
    assert flows(fig1()) == [
        Flow("s1", "upper", 10.0, 1000.0),
        Flow("s2", "lower", 10.0, 1000.0),
        Flow("o2", "lower", 10.0, 1000.0),
    ]


def test_what_is_sent_between_nodes() -> None:
    problem = replace(fig1(3), queries=(PlacementQuery("q", ("upper", "lower"), sink="n3"),))
    assert transfers(problem, placed("upper:n2 lower:n2")) == [
        Transfer("s1", "n1", "n2", 10.0, 1000.0),
        Transfer("o5", "n2", "n3", 40.0, 8000.0),
    ]


def test_a_stream_travels_once_to_a_node_that_reads_it_twice() -> None:
    problem = twins()
    used = usage(problem, placed("a:n2 b:n2"))
    assert used.bytes_in.tolist() == [0.0, 1000.0]
    assert used.bytes_out.tolist() == [1000.0, 0.0]
    assert used.load.tolist() == pytest.approx([0.0, 20 * MS])


def test_equal_signatures_run_once_per_node() -> None:
    together = usage(twins("equal"), placed("a:n2 b:n2"))
    apart = usage(twins("equal"), placed("a:n1 b:n2"))
    assert together.load.tolist() == pytest.approx([0.0, 10 * MS])
    assert together.state_bytes.tolist() == [0.0, 50.0]
    assert apart.load.tolist() == pytest.approx([10 * MS, 10 * MS])


def test_a_transfer_is_work_for_both_ends() -> None:
    nodes = (Node("n1", transfer_cost=1 * MS), Node("n2", transfer_cost=2 * MS))
    used = usage(replace(fig1(), cluster=Cluster(nodes)), placed("upper:n1 lower:n2"))  # o2: 10 tuples per second
    assert used.load.tolist() == pytest.approx([50 * MS + 10 * MS, 190 * MS + 20 * MS])


def test_a_reader_takes_the_copy_on_its_own_node_else_the_first() -> None:
    problem = fig1(3)
    copies = placed("upper:n1,n2 lower:n2,n3")
    assert read_from(problem, copies, "o2", "n2") == "n2"
    assert read_from(problem, copies, "o2", "n3") == "n1"
    assert read_from(problem, Placement({}), "o2", "n3") is None
    assert Transfer("o2", "n1", "n3", 10.0, 1000.0) in transfers(problem, copies)


def test_measured_numbers_replace_estimates() -> None:
    measured = Statistics(1.0, 1.0, {"s1": 20.0}, {"o1": OperatorStatistics(20.0, 4.0, 3 * MS, 7.0)})
    problem = with_statistics(fig1(), measured)
    assert operator_rates(problem)["o1"] == OperatorRates(20.0, 80.0, pytest.approx(60 * MS), 8000.0)
    assert problem.operator["o1"].state_bytes == 7.0
    assert problem.operator["o2"] == fig1().operator["o2"]


@given(problems())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_estimates_put_back_change_nothing(problem: Problem) -> None:
    assert with_statistics(problem, estimated(problem)) == problem


@given(problems())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_columns_say_what_a_plain_computation_says(problem: Problem) -> None:
    placement = random_placement(Random(0), problem)
    used = usage(problem, placement)
    load, sent = _plainly(problem, placement)
    assert dict(zip(problem.cluster.position, used.load.tolist(), strict=True)) == pytest.approx(load)
    identity = {o.name: o.signature or o.name for o in problem.operators()}
    found = {(identity.get(t.producer, t.producer), t.source, t.target): t.bytes for t in transfers(problem, placement)}
    assert found == pytest.approx(sent)


@given(problems())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_latencies_and_bandwidths_of_many_pairs(problem: Problem) -> None:
    names = list(problem.cluster.position)
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names))]
    sources, targets = np.array(pairs).T
    assert latencies(problem.cluster, sources, targets).tolist() == [
        problem.cluster.latency(names[a], names[b]) for a, b in pairs
    ]
    assert bandwidths(problem.cluster, sources, targets).tolist() == [
        problem.cluster.bandwidth(names[a], names[b]) for a, b in pairs
    ]


def _plainly(problem: Problem, placement: Placement) -> tuple[dict[str, float], dict[tuple[str, str, str], float]]:
    rates = operator_rates(problem)
    load = dict.fromkeys(problem.cluster.position, 0.0)
    sent: dict[tuple[str, str, str], float] = {}
    rate: dict[str, float] = {}

    def send(name: str, target: str) -> None:
        source = read_from(problem, placement, name, target)
        if source is not None and source != target:
            stream = problem.stream.get(name)
            size = stream.rate * stream.tuple_bytes if stream else rates[name].bytes_out
            identity = name if stream else problem.operator[name].signature or name
            sent[identity, source, target] = size
            rate[identity] = stream.rate if stream else rates[name].rate_out

    for node in problem.cluster.position:
        running: set[str] = set()
        for fragment in problem.fragments:
            for operator in fragment.operators if node in placement.nodes[fragment.name] else ():
                identity = operator.signature or operator.name
                if identity not in running:
                    running.add(identity)
                    load[node] += rates[operator.name].load
                    for name in operator.inputs:
                        send(name, node)
    for operator, sink in _wanted(problem):
        send(operator, sink)
    for identity, source, target in sent:
        for end in (source, target):
            load[end] += problem.cluster.nodes[problem.cluster.position[end]].transfer_cost * rate[identity]
    return load, sent


def _wanted(problem: Problem) -> Iterator[tuple[str, str]]:
    """Results and the nodes that want them."""
    for query in problem.queries:
        own = [o for f in query.fragments for o in problem.fragment[f].operators]
        read = {name for operator in own for name in operator.inputs}
        if query.sink:
            yield from ((operator.name, query.sink) for operator in own if operator.name not in read)
