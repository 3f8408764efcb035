"""Any planner can be a job's: whatever needs a node gets one that it may have, and the history says who chose it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from towpath import planners
from towpath.control.decide.choose_node import JobPlanner, Places
from towpath.control.decide.controller import Controller
from towpath.control.state.history import EventKind

from .world import CATALOG, SECOND, World, submission

NODES = ("a", "b", "c")
KINDS = ("filter", "other filter", "computed", "window", "join", "join window")


@pytest.fixture(params=planners.available())
def planner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(planner: str, tmp_path: Path) -> World:
    """With a job's planner of that name, all of its options as they are by default."""
    found = planners.get(planner)
    world = World(tmp_path / "journal.sqlite", NODES)
    places = Places(CATALOG, JobPlanner(planner, lambda problem: found.plan(problem, found.options())))
    world.controller = Controller(world.journal.load(), CATALOG, NODES, places)
    return world


def node(world: World, query: str) -> str:
    return world.controller.known.node_of(world.part(query).fragment)


def texts_of(world: World, kind: EventKind) -> list[str]:
    return [entry.text for entry in world.journal.history() if entry.kind is kind]


def is_explained(text: str, planner: str) -> bool:
    """In one line, by whom a node was chosen; if not by the planner of the job, why."""
    chosen = f"chosen by {planner} among" in text or f"chosen by first_fit, since {planner} " in text
    return chosen and "\n" not in text


def test_a_new_query_gets_a_node(world: World, planner: str) -> None:
    for kind in KINDS:
        known = set(world.controller.state.carriers)
        world.submit(submission(kind, kind))
        assert node(world, kind) in NODES
        is_new = set(world.controller.state.carriers) != known  # or it is taken in by one that runs
        assert is_explained(texts_of(world, EventKind.SUBMITTED)[-1], planner) == is_new


def test_copies_get_different_nodes(world: World, planner: str) -> None:
    world.submit(submission("w", "window", node="b"))
    world.submit(replace(submission("f", "filter"), copies=2))
    found = [world.controller.known.node_of(p.fragment) for p in world.parts("f")]
    assert len(set(found)) == 2 and set(found) <= set(NODES)
    assert is_explained(texts_of(world, EventKind.SUBMITTED)[-1], planner)


def test_what_is_on_a_drained_node_gets_another(world: World, planner: str) -> None:
    world.submit(*(submission(kind, kind, node="a") for kind in KINDS))
    for carrier in list(world.carriers):
        world.batch(carrier, *[[SECOND]] * world.carriers[carrier].inputs)
    world.act(world.controller.draining.begin("a"))
    leaving = world.controller.leaving()
    assert len(leaving) == len(KINDS)
    for _, target, reason in leaving:
        assert target in ("b", "c") and is_explained(reason, planner)


def test_what_was_on_a_lost_node_gets_another(world: World, planner: str) -> None:
    world.submit(*(submission(kind, kind, node="a") for kind in KINDS))
    world.lose("a")
    assert {node(world, kind) for kind in KINDS} <= {"b", "c"}
    restarted = texts_of(world, EventKind.CARRIER_RESTARTED)
    assert restarted and all(is_explained(text, planner) for text in restarted)
