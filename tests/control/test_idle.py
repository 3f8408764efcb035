"""Who is silent, by a clock that the test moves."""

from __future__ import annotations

from dataclasses import replace

from tests.control.world import batch_done

from towpath.control.idle import Idle
from towpath.runtime.carriers import BatchDone

AFTER_S = 10.0


def busy(_: str) -> bool:
    return False


def at_rest(_: str) -> bool:
    return True


def batch(newest: tuple[int | None, ...], seconds: float = 1.0) -> BatchDone:
    return replace(batch_done("c0", 1, 1, newest), seconds=seconds)


def test_a_carrier_at_rest_is_silent_after_a_while_and_again_after_as_long() -> None:
    idle = Idle(AFTER_S)
    idle.hear(batch((5,)), now=100)
    assert list(idle.due(109, at_rest)) == []
    assert list(idle.due(111, at_rest)) == [("c0", 0, 11)]
    assert list(idle.due(120, at_rest)) == []
    assert list(idle.due(122, at_rest)) == [("c0", 0, 22)]


def test_a_long_batch_is_no_silence() -> None:
    idle = Idle(AFTER_S)
    idle.hear(batch((5,)), now=100)
    assert list(idle.due(150, busy)) == []


def test_one_input_is_silent_while_another_is_busy() -> None:
    idle = Idle(AFTER_S)
    idle.hear(batch((5, 5)), now=100)
    for now in range(101, 112):
        idle.hear(batch((now, None)), now)
    assert list(idle.due(111.5, busy)) == []
    idle.hear(batch((112, None)), now=112)
    assert list(idle.due(112, busy)) == [("c0", 1, 11)]


def test_what_came_during_a_batch_is_not_known_to_be_missing() -> None:
    idle = Idle(AFTER_S)
    idle.hear(batch((5, 5)), now=100)
    idle.hear(batch((6, None), seconds=30), now=131)
    assert list(idle.due(131, busy)) == []
