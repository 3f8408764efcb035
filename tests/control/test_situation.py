"""A running job as a placement problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from towpath import planners
from towpath.control.observe.measures import Measures
from towpath.control.observe.situation import Situation, operator
from towpath.placement.check import check
from towpath.placement.costs import METRICS
from towpath.placement.validate import validate

from .live import WORK_SHARE, LiveWorld
from .world import CATALOG, SECOND, World, submission

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
