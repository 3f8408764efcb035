from __future__ import annotations

from concurrent.futures import Future
from typing import cast

import pytest

from towpath.control.act.elastic import Elastic
from towpath.control.act.engine import Engine
from towpath.control.decide.scaling import Bounds, Grow, Scaling, Shrink
from towpath.control.state.history import EventKind
from towpath.errors import RuntimeFailure
from towpath.runtime.actors import NeedNode, ReleaseNode
from towpath.runtime.carriers import Runtime

BOUNDS = Bounds(least=1, most=3, above=0.8, below=0.3, after_s=30)


def test_it_grows_when_all_nodes_were_stressed_for_long_enough() -> None:
    scaling = Scaling(BOUNDS)
    assert scaling.decide(0, {"a": 0.9}, ()) is None
    assert scaling.decide(29, {"a": 0.95}, ()) is None
    grow = scaling.decide(30, {"a": 0.9}, ())
    assert grow == Grow("auto1", "all 1 nodes have had more than 80% load for 30 s")


def test_one_node_with_room_is_enough_not_to_grow() -> None:
    scaling = Scaling(BOUNDS)
    assert [scaling.decide(at, {"a": 2.0, "b": 0.7}, ()) for at in (0, 50)] == [None, None]


def test_a_pause_begins_the_count_again() -> None:
    scaling = Scaling(BOUNDS)
    loads = [0.9, 0.5, 0.9, 0.9]
    assert [scaling.decide(20 * n, {"a": load}, ()) for n, load in enumerate(loads)] == [None] * 4


def test_there_are_at_most_so_many() -> None:
    scaling = Scaling(BOUNDS)
    loads = {"a": 0.9, "b": 0.9, "auto1": 0.9}
    assert [scaling.decide(at, loads, ["auto1"]) for at in (0, 50)] == [None, None]


def test_one_that_does_not_answer_counts() -> None:
    scaling = Scaling(BOUNDS)
    assert [scaling.decide(at, {"a": 0.9}, ["auto1", "auto2"]) for at in (0, 50)] == [None, None]


def test_it_gives_up_the_emptiest_of_those_it_started() -> None:
    scaling = Scaling(BOUNDS)
    loads = {"a": 0.0, "auto1": 0.2, "auto2": 0.1}
    scaling.decide(0, loads, ["auto1", "auto2"])
    shrink = scaling.decide(30, loads, ["auto1", "auto2"])
    assert shrink == Shrink("auto2", "3 nodes have had less than 30% load on average for 30 s")


@pytest.mark.parametrize(
    ("loads", "own"),
    [
        ({"a": 0.1, "b": 0.1}, []),  # nodes of the job file are not its to stop
        ({"auto1": 0.1}, ["auto1"]),  # the last one stays
        ({"a": 0.29, "auto1": 0.29}, ["auto1"]),
    ],
)
def test_when_it_does_not_shrink(loads: dict[str, float], own: list[str]) -> None:
    scaling = Scaling(Bounds(least=1, most=3, above=0.5, below=0.3, after_s=30))
    assert [scaling.decide(at, loads, own) for at in (0, 50)] == [None, None]


class Nodes:
    """Gives out nodes when it is asked to."""

    cores = 2

    def __init__(self) -> None:
        self.asked: dict[str, Future[None]] = {}
        self.stopped: list[str] = []
        self.is_open = False

    def start(self, node: str) -> Future[None]:
        self.asked[node] = Future()
        return self.asked[node]

    def open(self, node: str) -> Runtime:
        return cast(Runtime, self)

    @property
    def lost(self) -> str | None:
        return None if self.is_open else "it is being opened"

    def stop(self, node: str) -> None:
        self.stopped.append(node)


class RecordingEngine:
    """An engine that writes down what is done to it."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []
        self.drained = False
        self.controller = self

    def add_node(self, name: str, runtime: Runtime, reason: str) -> None:
        self.done.append(("add", name))

    def drain_node(self, node: str) -> None:
        self.done.append(("drain", node))

    def remove_node(self, name: str, reason: str) -> None:
        self.done.append(("remove", name))

    def node_state(self, node: str) -> str:
        return "drained" if self.drained else "draining"

    def add_history(self, kind: EventKind, text: str, **about: object) -> None:
        self.done.append((kind, text))


def test_a_node_comes_works_and_goes() -> None:
    engine, nodes = RecordingEngine(), Nodes()
    elastic = Elastic(cast(Engine, engine), nodes, BOUNDS, {})
    for at in (0, 30, 40):
        elastic.step(at, {"a": 0.9})
    assert engine.done == [] and list(nodes.asked) == ["auto1"]
    nodes.asked["auto1"].set_result(None)
    elastic.step(45, {"a": 0.9})
    assert engine.done == [] and elastic.own == {}
    nodes.is_open = True
    elastic.step(50, {"a": 0.9})
    assert engine.done == [("add", "auto1")] and elastic.own == {"auto1": 2}
    for at in (60, 90, 100):
        elastic.step(at, {"a": 0.1, "auto1": 0.1})
    assert engine.done[1:] == [("drain", "auto1")]
    engine.drained = True
    elastic.step(110, {"a": 0.1})
    assert engine.done[2:] == [("remove", "auto1")] and nodes.stopped == ["auto1"] and elastic.own == {}


def test_a_node_that_does_not_come_up_is_reported_and_tried_again_later() -> None:
    engine, nodes = RecordingEngine(), Nodes()
    elastic = Elastic(cast(Engine, engine), nodes, BOUNDS, {})
    for at in (0, 30):
        elastic.step(at, {"a": 0.9})
    nodes.asked["auto1"].set_exception(RuntimeFailure("no answer at port 1"))
    elastic.step(31, {"a": 0.9})
    assert engine.done == [(EventKind.REFUSED, "node auto1 could not be started: no answer at port 1")]
    nodes.asked.clear()
    for at in (32, 62):
        elastic.step(at, {"a": 0.9})
    assert list(nodes.asked) == ["auto1"]


def test_what_a_policy_wants_is_done_within_the_bounds() -> None:
    engine, nodes = RecordingEngine(), Nodes()
    elastic = Elastic(cast(Engine, engine), nodes, Bounds(least=1, most=2, after_s=30), {})
    idle = {"a": 0.5}
    elastic.ask(NeedNode("nothing fits"))
    elastic.step(0, idle)
    assert list(nodes.asked) == ["auto1"]
    nodes.asked["auto1"].set_result(None)
    nodes.is_open = True
    elastic.step(1, idle)
    assert engine.done == [("add", "auto1")]
    elastic.ask(NeedNode("nothing fits"))
    elastic.step(2, {"a": 0.5, "auto1": 0.5})
    assert list(nodes.asked) == ["auto1"], "there are as many as there may be"
    elastic.ask(ReleaseNode(("a",), "little to do"))
    elastic.step(3, {"a": 0.5, "auto1": 0.5})
    assert engine.done == [("add", "auto1")], "a is not its to stop"
    elastic.ask(ReleaseNode(("a", "auto1"), "little to do"))
    elastic.step(4, {"a": 0.5, "auto1": 0.5})
    assert engine.done[-1] == ("drain", "auto1")


def test_a_wish_is_forgotten_while_a_node_comes() -> None:
    engine, nodes = RecordingEngine(), Nodes()
    elastic = Elastic(cast(Engine, engine), nodes, Bounds(least=1, most=3, after_s=30), {})
    elastic.ask(NeedNode("nothing fits"))
    elastic.step(0, {"a": 0.5})
    elastic.ask(NeedNode("nothing fits"))
    elastic.step(1, {"a": 0.5})
    nodes.asked["auto1"].set_result(None)
    nodes.is_open = True
    for at in (2, 3, 4):
        elastic.step(at, {"a": 0.5, "auto1": 0.0})
    assert list(nodes.asked) == ["auto1"]
