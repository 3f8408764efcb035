"""A running job as a placement problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath import planners
from towpath.control.observe.measures import Measures
from towpath.control.observe.situation import Situation, operator
from towpath.control.observe.topology import Topology
from towpath.placement.check import check
from towpath.placement.costs import METRICS
from towpath.placement.costs.sbon import network_usage
from towpath.placement.problem import EVERYWHERE, Placement
from towpath.placement.validate import validate
from towpath.schema import LINK

from .live import WORK_SHARE, LiveWorld
from .world import CATALOG, SECOND, World, cut, submission

CORES = {"a": 1, "b": 2}
KINDS = ("filter", "same filter", "other filter", "window", "join", "union")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "journal.sqlite", tuple(CORES))
    made.submit(*(submission(kind, kind, node="a") for kind in KINDS))
    return made


def measured(world: World, cost: dict[str, float]) -> Situation:
    measures, live = Measures(), LiveWorld(world)
    for second in range(4):
        for event in live.round(second, cost):
            measures.hear(event, second)
    measures.close_window(4, live.at_rest)
    return Situation(world.controller.state, CATALOG, CORES, measures)


def test_it_is_a_valid_problem_that_planners_and_metrics_take(world: World) -> None:
    problem = measured(world, {"a": 0.5}).problem
    assert validate(problem) == []
    assert problem.current is not None
    assert [v for v in check(problem, problem.current) if v.structural] == []
    for name in ("round_robin", "grouping", "zhou"):
        assert set(planners.run(name, problem).nodes) == set(problem.fragment)
    assert METRICS["load.highest"].value(problem, problem.current) > 0


def test_an_equal_query_rides_on_the_first_ones_fragment(world: World) -> None:
    problem = measured(world, {}).problem
    assert "filter" in problem.query and "same filter" not in problem.query
    assert len(problem.query["union"].fragments) == 2


def test_the_costs_of_a_nodes_fragments_add_up_to_what_its_carriers_do_for_them(world: World) -> None:
    situation = measured(world, {"a": 0.2})
    statistics = situation.statistics("a", 4, 4)
    busy = len(situation.fragments) * 3 * 0.2 / 4  # three of four micro-batches count
    assert situation.load("a") == pytest.approx(busy)
    assert situation.work("a") == statistics.nodes["a"].load == pytest.approx(busy * WORK_SHARE)
    assert sum(o.rate * o.cost for o in statistics.operators.values()) == pytest.approx(busy * WORK_SHARE)
    assert situation.statistics("b", 4, 4).operators == {}


def test_cores_divide_a_nodes_load(world: World) -> None:
    one = measured(world, {"a": 0.2})
    two = Situation(one.state, CATALOG, {"a": 2, "b": 1}, one.measures)
    assert two.load("a") == pytest.approx(one.load("a") / 2)


def test_streams_that_a_carrier_reads_together_share_what_was_measured(world: World) -> None:
    rates = measured(world, {"a": 0.1}).stream_rates
    assert rates["s"] == rates["t"] > 0


def test_a_fragment_keeps_its_name_wherever_it_moves(world: World) -> None:
    live = LiveWorld(world)
    world.move("window", "b")
    for second in range(60):
        live.round(second, {})
    situation = Situation(world.controller.state, CATALOG, CORES, Measures())
    root = world.turns("window")[0].fragment
    assert situation.node_of(f"f{root}") == "b"
    assert situation.fragments[f"f{root}"].id == world.turns("window")[-1].fragment != root
    assert operator(f"f{root}") in situation.problem.operator


def test_while_it_moves_it_is_where_its_results_come_from(world: World) -> None:
    world.batch("c0", [SECOND])
    world.move("filter", "b")
    situation = Situation(world.controller.state, CATALOG, CORES, Measures())
    assert situation.node_of(f"f{world.part('filter').fragment}") == "a"
    assert len(situation.fragments) == len(situation.problem.fragments) == 6


def test_streams_flow_from_where_they_enter_to_every_carrier_elsewhere_that_reads_them(world: World) -> None:
    """`s` enters at b and everything runs on a. A topology says how far that is."""
    before = measured(world, {"a": 0.1})
    assert before.flows == [] and {stream.node for stream in before.problem.streams} == {EVERYWHERE}
    topology = Topology({("a", "b"): 0.050}, {"s": "b"})
    situation = replace(before, topology=topology)
    assert {s.name: s.node for s in situation.problem.streams} == {n: "b" if n == "s" else "" for n in CATALOG}
    assert {(f.stream, f.source, f.target) for f in situation.flows} == {("s", "b", "a")}
    assert situation.problem.cluster.latency("a", "b") == 0.050
    assert situation.statistics("b", 4, 4).nodes["b"].bytes_out == sum(f.bytes for f in situation.flows) > 0
    lost = replace(situation, cores={"a": 1})
    assert lost.flows == [] and validate(lost.problem) == []


def test_a_link_is_as_wide_and_flows_as_fast_as_its_readers_say(tmp_path: Path) -> None:
    world = World(tmp_path / "journal.sqlite", tuple(CORES))
    world.submit(*cut("q", "join window", node="a"))
    link = next(q for q in world.controller.state.queries.values() if q.origin == LINK)
    made, read = (world.turns(name)[0].fragment for name in (link.name, "q"))
    state, live = world.controller.state, LiveWorld(world)
    measures = Measures()
    for second in range(4):
        for event in live.round(second, {"a": 0.1}):
            reads = event.carrier == state.fragments[read].carrier
            measures.hear(replace(event, link_bytes={link.name: 300.0} if reads else {}), second)
    measures.sampled(state.fragments[made].carrier, [made], {1: {made: 50}})
    measures.close_window(4, live.at_rest)
    situation = Situation(state, CATALOG, CORES, measures)
    carrier = measures.carrier(state.fragments[made].carrier)
    assert carrier is not None
    emitted = 0.5 * carrier.rows  # 50 of the 100 rows of a micro-batch
    assert measures.link_rates(state.fragments[read].carrier) == {link.name: 3 * 300 / 4}
    operators = situation.problem.operator
    assert operators[f"f{made}.all"].tuple_bytes == pytest.approx(3 * 300 / 4 / emitted)
    assert situation.flows == [], "both are on one node"
    assert network_usage(situation.problem, Placement.single({f"f{made}": "a", f"f{read}": "b"})) == 0
    far = replace(situation, topology=Topology({("a", "b"): 0.1}))
    apart = Placement.single({f"f{made}": "a", f"f{read}": "b"})
    assert network_usage(far.problem, apart) == pytest.approx(3 * 300 / 4 * 0.1)
