"""Many nodes, without a simulator: what holds in every order of events, and where it leads."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from towpath.placement.problem import Placement
from towpath.policies.zhou import Options
from towpath.policies.zhou.neighbours import neighbours

from .world import World, chains

loads = st.sampled_from([0.05, 0.1, 0.2, 0.4])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = draw(st.integers(2, 5))
    place = st.integers(0, nodes - 1)
    queries = draw(st.lists(st.lists(st.tuples(place, loads), min_size=1, max_size=3), min_size=1, max_size=6))
    problem = chains(nodes, queries)
    placement = Placement.single({f.name: f"n{draw(place)}" for f in problem.fragments})
    options = Options(
        max1=draw(st.integers(0, 3)),
        max2=draw(st.integers(0, 2)),
        maximum_try=draw(st.integers(0, 2)),
        kappa=draw(st.sampled_from([1.2, 5.0])),
        alpha=0.5,
    )
    return World(problem, options, placement)


def check_bounds(world: World) -> None:
    for actor in world.actors.values():
        assert len(actor.partners.g1) <= world.options.max1
        assert len(actor.partners.g2) <= world.options.bound2
        assert not actor.partners.g1.keys() & actor.partners.g2.keys()


def check_at_rest(world: World) -> None:
    """When all messages have arrived: partners are mutual, every fragment is known to one node, and so is its place."""
    for name, actor in world.actors.items():
        for partner in actor.partners.all:
            assert name in world.actors[partner].partners.all
    near = neighbours(world.problem)
    for fragment in world.problem.fragments:
        holders = [name for name, actor in world.actors.items() if fragment.name in actor.holdings.cards]
        assert tuple(holders) == world.placement.nodes[fragment.name]
        for neighbour in near[fragment.name]:
            assert (world.actors[holders[0]].holdings.where(neighbour),) == world.placement.nodes[neighbour]


@given(worlds(), st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_interleaving_keeps_the_bounds_and_ends_in_agreement(world: World, data: st.DataObject) -> None:
    total = sum(world.load(name) for name in world.actors)
    for choice in data.draw(st.lists(st.integers(0, 10_000), max_size=120)):
        # Deliveries are the likelier: half of the numbers choose among them while there are any.
        steps = world.possible() if choice % 2 else world.spontaneous()
        if steps:
            steps[choice // 2 % len(steps)]()
        check_bounds(world)
    world.settle()
    check_bounds(world)
    check_at_rest(world)
    assert sum(world.load(name) for name in world.actors) == pytest.approx(total)


def deviation(world: World) -> float:
    return statistics.stdev(world.load(name) for name in world.actors)


def test_load_spreads_from_one_node_to_all() -> None:
    problem = chains(4, [[(0, 0.05)] for _ in range(16)])
    world = World(problem, Options())
    before = deviation(world)
    world.run(20.0)
    assert deviation(world) < before / 5
    moved = len(world.moved)
    world.run(40.0)
    assert len(world.moved) == moved  # balanced enough: nobody has 1.2 times less than the average


def test_nothing_moves_without_partners() -> None:
    world = World(chains(4, [[(0, 0.05)] for _ in range(16)]), Options(max1=0))
    world.run(10.0)
    assert (world.moved, world.bytes) == ([], 0)


def test_at_most_half_of_the_load_leaves_in_a_round() -> None:
    """The second round comes a second after the first."""
    world = World(chains(6, [[(0, 0.05)] for _ in range(18)]), Options())
    world.run(1.0)
    assert world.load("n0") == pytest.approx(0.9 / 2)


def test_groups_that_are_apart_find_each_other_by_probing() -> None:
    """n0 and n1 are each other's only neighbours and overloaded; n2 and n3 have nothing to do."""
    queries = [[(0, 0.1), (1, 0.1)] for _ in range(12)] + [[(2, 0.01), (3, 0.01)]]
    alone = World(chains(4, queries), Options(max1=1, maximum_try=0, probe_limit=0))
    alone.run(30.0)
    assert alone.load("n2") < 0.1
    probing = World(chains(4, queries), Options(max1=1, maximum_try=0))
    probing.run(30.0)
    assert min(probing.load("n2"), probing.load("n3")) > 0.3


def test_the_same_seed_gives_the_same_moves() -> None:
    queries = [[(n % 3, 0.05), (n % 5, 0.05)] for n in range(12)]

    def moves(seed: int) -> list[object]:
        world = World(chains(6, queries), Options(seed=seed))
        world.run(10.0)
        return [*world.moved, world.bytes]

    assert moves(1) == moves(1)
