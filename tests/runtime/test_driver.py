from __future__ import annotations

from collections.abc import Callable, Sequence

from towpath.placement.cluster import Node
from towpath.runtime.actors import (
    Actors,
    Arrived,
    Move,
    NeedNode,
    NodeJoined,
    NodeLost,
    Note,
    PolicyEvent,
    PolicyInstruction,
    ReleaseNode,
    ScalingWish,
    Send,
    Started,
    Wake,
    Woken,
)
from towpath.runtime.driver import Driver, InProcess, PolledClock

React = Callable[[PolicyEvent], Sequence[PolicyInstruction]]


class Scripted:
    def __init__(self, address: str, react: React) -> None:
        self.address = address
        self.heard: list[PolicyEvent] = []
        self._react = react

    def handle(self, event: PolicyEvent) -> Sequence[PolicyInstruction]:
        self.heard.append(event)
        return self._react(event)


def drive(*actors: Scripted) -> tuple[Driver, PolledClock, list[tuple[str, Move]], list[str]]:
    moves: list[tuple[str, Move]] = []
    notes: list[str] = []
    clock = PolledClock(0.0)
    driver = Driver(
        Actors(actors), clock, InProcess(clock), lambda a, m: moves.append((a, m)), lambda a, text: notes.append(text)
    )
    driver.start()
    clock.advance(0.0)
    return driver, clock, moves, notes


def test_actors_are_woken_at_the_time_they_asked_for_in_its_order() -> None:
    def react(event: PolicyEvent) -> Sequence[PolicyInstruction]:
        return [Wake(5.0, "later"), Wake(2.0, "sooner")] if isinstance(event, Started) else []

    actor = Scripted("a", react)
    _, clock, *_ = drive(actor)
    clock.advance(1.9)
    assert actor.heard == [Started(0.0)]
    clock.advance(9.0)
    assert actor.heard[1:] == [Woken(2.0, "sooner"), Woken(5.0, "later")]


def test_messages_arrive_after_what_is_being_handled_and_after_the_start() -> None:
    order: list[str] = []

    def asks(event: PolicyEvent) -> Sequence[PolicyInstruction]:
        order.append(f"a {type(event).__name__}")
        return [Send("b", "hello", 5), Send("nobody", "lost", 4)] if isinstance(event, Started) else []

    def answers(event: PolicyEvent) -> Sequence[PolicyInstruction]:
        order.append(f"b {type(event).__name__}")
        return [Send("a", "hello yourself", 14), Note("was greeted")] if isinstance(event, Arrived) else []

    *_, notes = drive(Scripted("a", asks), Scripted("b", answers))
    assert order == ["a Started", "b Started", "b Arrived", "a Arrived"]
    assert notes == ["was greeted"]


def test_moves_are_handed_on_with_who_asked() -> None:
    move = Move("f1", "left", "right", "why not")
    _, _, moves, _ = drive(Scripted("a", lambda event: [move]))
    assert moves == [("a", move)]


def again(event: PolicyEvent) -> Sequence[PolicyInstruction]:
    return [Wake(event.at + 2.0, "again")] if isinstance(event, Started | NodeJoined) else []


def test_the_actor_of_a_lost_node_hears_nothing_until_it_is_back() -> None:
    a, b = Scripted("a", again), Scripted("b", again)
    driver, clock, *_ = drive(a, b)
    clock.advance(1.0)
    driver.lose("b")
    assert not driver.reaches("b")
    driver.deliver("b", Arrived(1.0, "a", "hello"))
    clock.advance(1.5)
    driver.join(Node("b"))
    clock.advance(2.5)
    assert a.heard == [Started(0.0), NodeLost(1.0, "b"), NodeJoined(1.5, Node("b")), Woken(2.0, "again")]
    assert b.heard == [Started(0.0), NodeJoined(1.5, Node("b"))], "what it had asked for before is forgotten"
    clock.advance(3.5)
    assert b.heard[2:] == [Woken(3.5, "again")]


def test_an_actor_whose_node_was_lost_at_the_start_is_started_when_it_comes() -> None:
    b = Scripted("b", lambda event: [])
    clock = PolledClock(0.0)
    driver = Driver(Actors((b,)), clock, InProcess(clock), lambda a, m: None, lambda a, text: None)
    driver.lose("b")
    driver.start()
    assert b.heard == []
    clock.advance(3.0)
    driver.join(Node("b"))
    assert b.heard == [Started(3.0), NodeJoined(3.0, Node("b"))]


def wishing(event: PolicyEvent) -> Sequence[PolicyInstruction]:
    return [NeedNode("too much to do"), ReleaseNode(("b", "c"), "too little to do")]


def test_whoever_has_no_nodes_to_give_notes_that_one_is_wanted() -> None:
    *_, notes = drive(Scripted("m", wishing))
    assert notes == [
        "another node is wanted, and there is none to give: too much to do",
        "one of b, c could go, and nodes stay: too little to do",
    ]


def test_whoever_has_nodes_hears_that_one_is_wanted() -> None:
    wishes: list[tuple[str, ScalingWish]] = []
    clock = PolledClock(0.0)
    actors = Actors((Scripted("m", wishing),))
    Driver(
        actors, clock, InProcess(clock), lambda a, m: None, lambda a, text: None, lambda a, w: wishes.append((a, w))
    ).start()
    assert wishes == [("m", wish) for wish in wishing(Started(0.0))]


def test_messages_take_as_long_as_nodes_are_apart_and_do_not_overtake_each_other() -> None:
    clock, heard = PolledClock(0.0), list[tuple[float, str]]()
    latency = {"near": 0.1, "far": 5.0}
    network = InProcess(clock, lambda one, other: latency[other])
    for to in ("far", "near"):
        network.send("a", to, 0, lambda to=to: heard.append((clock.now, to)))  # type: ignore[misc]
    latency["far"] = 1.0
    network.send("a", "far", 0, lambda: heard.append((clock.now, "far again")))
    clock.advance(10.0)
    assert heard == [(0.1, "near"), (5.0, "far"), (5.0, "far again")]
