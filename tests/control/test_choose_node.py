"""Whatever needs a node gets it from the planner that the job names, and the history says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from towpath import planners
from towpath.control.decide.choose_node import JobPlanner, Places
from towpath.control.decide.controller import Controller
from towpath.control.observe import carriers
from towpath.control.observe.carriers import Capacities, Wanted
from towpath.control.observe.measures import Measures
from towpath.control.observe.topology import Topology
from towpath.control.state.history import EventKind
from towpath.placement.problem import Placement, Problem
from towpath.runtime.carriers import BatchDone
from towpath.schema import LINK

from .world import CATALOG, SECOND, World, cut, submission

NODES = ("a", "b", "c")


def last_node(problem: Problem) -> Placement:
    """As many of the last nodes as there are copies, for whatever is not pinned."""
    nodes = [node.name for node in reversed(problem.cluster.nodes)]
    copies = {query.fragments[0]: query.copies for query in problem.queries}
    return Placement(
        {
            f.name: (problem.pinned[f.name],) if f.name in problem.pinned else tuple(nodes[: copies[f.name]])
            for f in problem.fragments
        }
    )


def world_with(tmp_path: Path, plan: Callable[[Problem], Placement]) -> World:
    world = World(tmp_path / "journal.sqlite", NODES)
    places = Places(CATALOG, JobPlanner("mine", plan))
    world.controller = Controller(world.journal.load(), CATALOG, NODES, places)
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_with(tmp_path, last_node)


def node(world: World, query: str) -> str:
    return world.controller.known.node_of(world.part(query).fragment)


def texts_of(world: World, kind: EventKind) -> list[str]:
    return [entry.text for entry in world.journal.history() if entry.kind is kind]


def test_a_new_query_goes_where_the_planner_says(world: World) -> None:
    world.submit(submission("f", "filter"), submission("w", "window"))
    assert (node(world, "f"), node(world, "w")) == ("c", "c")
    assert "asked for; c was chosen by mine among a 0%, b 0%, c 0% busy" in texts_of(world, EventKind.SUBMITTED)[0]


def test_who_names_a_node_or_can_be_shared_is_not_asked_about(world: World) -> None:
    world.submit(submission("f", "filter", node="a"))
    world.submit(submission("again", "filter"))
    assert (node(world, "f"), node(world, "again")) == ("a", "a")
    assert not any("mine" in text for text in texts_of(world, EventKind.SUBMITTED))


def test_copies_go_where_the_planner_says(world: World) -> None:
    twice = (submission("f", "filter"), submission("w", "window", node="b"))
    world.submit(*(replace(asked, copies=2) for asked in twice))
    nodes = {name: [world.controller.known.node_of(p.fragment) for p in world.parts(name)] for name in ("f", "w")}
    assert nodes == {"f": ["c", "b"], "w": ["b", "c"]}
    f, w = texts_of(world, EventKind.SUBMITTED)
    assert f.endswith("asked for; c, b were chosen by mine among a 0%, b 0%, c 0% busy")
    assert w.endswith("asked for; c was chosen by mine among a 0%, c 0% busy")


def test_carriers_of_a_lost_node_go_where_the_planner_says(world: World) -> None:
    world.submit(submission("f", "filter", node="a"))
    world.lose("a")
    assert node(world, "f") == "c"
    assert texts_of(world, EventKind.CARRIER_RESTARTED)[0].endswith("in epoch 1: chosen by mine among b 0%, c 0% busy")


def test_fragments_of_a_drained_node_go_where_the_planner_says(world: World) -> None:
    world.submit(submission("f", "filter", node="a"))
    world.batch("c0", [SECOND])
    world.act(world.controller.draining.begin("a"))
    ((_, target, reason),) = world.controller.leaving()
    assert (target, reason) == ("c", "a is being drained; c was chosen by mine among b 0%, c 0% busy")


def raises(problem: Problem) -> Placement:
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (raises, "since mine failed with ValueError: no idea"),
        (lambda problem: Placement({}, {"new0": "cpu is short"}), "since mine has no place for new0: cpu is short"),
        (lambda problem: Placement({f.name: ("nowhere",) for f in problem.fragments}), "since mine answered"),
    ],
)
def test_a_planner_that_fails_keeps_no_query_out(
    tmp_path: Path, plan: Callable[[Problem], Placement], why: str
) -> None:
    world = world_with(tmp_path, plan)
    world.submit(submission("f", "filter"))
    assert node(world, "f") == "a"
    assert why in texts_of(world, EventKind.SUBMITTED)[0]


def test_by_default_a_node_is_filled_up_to_its_room_by_what_was_measured(tmp_path: Path) -> None:
    world = World(tmp_path / "journal.sqlite", NODES)
    measures = Measures()
    places = Places(CATALOG, capacities=Capacities(dict.fromkeys(NODES, 1), measures=measures))
    world.controller = Controller(world.journal.load(), CATALOG, NODES, places)
    world.submit(submission("f", "filter"))
    assert node(world, "f") == "a"
    for batch in range(4):  # the first one does not count
        measures.hear(busy("c0", batch, 0.9), float(batch))
    measures.close_window(3.0, lambda carrier: False)
    world.submit(submission("w", "window"))
    assert node(world, "w") == "b"
    assert "b was chosen by first_fit among a 90%, b 0%, c 0% busy" in texts_of(world, EventKind.SUBMITTED)[-1]


def busy(carrier: str, batch: int, seconds: float) -> BatchDone:
    return BatchDone(carrier, batch, 1, (0,), None, 100, (), 0, seconds, {}, first=batch == 0)


def test_a_planner_knows_where_streams_enter_how_far_nodes_are_and_what_links_join(tmp_path: Path) -> None:
    """`s` enters at c and `t` at a: the join settles between them, and the aggregate on the join's node."""
    asked: list[Problem] = []

    def by_distance(problem: Problem) -> Placement:
        asked.append(problem)
        return planners.run("relaxation", problem)

    far = {("a", "b"): 0.3, ("a", "c"): 0.3, ("b", "c"): 0.01}
    topology = Topology(far, {"s": "c", "t": "a"})
    world = World(tmp_path / "journal.sqlite", NODES)
    capacities = Capacities(dict.fromkeys(NODES, 1), topology=topology)
    fast = {name: replace(stream, rate=500.0 if name == "s" else 1.0) for name, stream in CATALOG.items()}
    places = Places(fast, JobPlanner("relaxation", by_distance), capacities)
    world.controller = Controller(world.journal.load(), CATALOG, NODES, places)
    world.submit(*cut("q", "join window"))
    (problem,) = asked
    join, aggregate = problem.operators()
    assert problem.stream["s"].node == "c" and problem.stream["t"].node == "a"
    assert join.inputs == ("s", "t") and aggregate.inputs == (join.name,)
    assert problem.cluster.latency("a", "b") == 0.3
    link = next(q.name for q in world.controller.state.queries.values() if q.origin == LINK)
    assert (node(world, link), node(world, "q")) == ("c", "c")
    family = world.controller.known.carrier_of(
        world.controller.state.fragments[world.part("q").fragment]
    ).template.family
    later = Wanted("new0", family, reads=frozenset({link}))
    running = carriers.problem(world.controller.known, fast, capacities, NODES, [later])
    maker = world.controller.state.fragments[world.part(link).fragment].carrier
    assert running.operator["new0.all"].inputs == (f"{maker}.all",), "whoever reads what runs already is drawn to it"
