from __future__ import annotations

from collections.abc import Callable, Sequence

from towpath.control.driver import Driver
from towpath.runtime.moves import Actors, Arrived, Event, Instruction, Move, Note, Send, Started, Wake, Woken

React = Callable[[Event], Sequence[Instruction]]


class Scripted:
    def __init__(self, address: str, react: React) -> None:
        self.address = address
        self.heard: list[Event] = []
        self._react = react

    def handle(self, event: Event) -> Sequence[Instruction]:
        self.heard.append(event)
        return self._react(event)


def drive(*actors: Scripted) -> tuple[Driver, list[tuple[str, Move]], list[str]]:
    moves: list[tuple[str, Move]] = []
    notes: list[str] = []
    driver = Driver(Actors(actors), 0.0, lambda a, m: moves.append((a, m)), lambda a, text: notes.append(text))
    return driver, moves, notes


def test_actors_are_woken_at_the_time_they_asked_for_in_its_order() -> None:
    def react(event: Event) -> Sequence[Instruction]:
        return [Wake(5.0, "later"), Wake(2.0, "sooner")] if isinstance(event, Started) else []

    actor = Scripted("a", react)
    driver, *_ = drive(actor)
    driver.advance(1.9)
    assert actor.heard == [Started(0.0)]
    driver.advance(9.0)
    assert actor.heard[1:] == [Woken(2.0, "sooner"), Woken(5.0, "later")]


def test_messages_arrive_after_what_is_being_handled() -> None:
    order: list[str] = []

    def asks(event: Event) -> Sequence[Instruction]:
        order.append(f"a {type(event).__name__}")
        return [Send("b", "hello", 5), Send("nobody", "lost", 4)] if isinstance(event, Started) else []

    def answers(event: Event) -> Sequence[Instruction]:
        order.append(f"b {type(event).__name__}")
        return [Send("a", "hello yourself", 14), Note("was greeted")] if isinstance(event, Arrived) else []

    _, _, notes = drive(Scripted("a", asks), Scripted("b", answers))
    assert order == ["a Started", "b Arrived", "a Arrived", "b Started"]
    assert notes == ["was greeted"]


def test_moves_are_handed_on_with_who_asked() -> None:
    move = Move("f1", "left", "right", "why not")
    _, moves, _ = drive(Scripted("a", lambda event: [move]))
    assert moves == [("a", move)]
