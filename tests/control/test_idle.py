"""Who is silent, and what follows from it, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.control.world import SECOND, batch_done

from towpath.control.observe.idle import Idle, Patience, Tick
from towpath.runtime.carriers import BatchDone

AFTER_S = 10.0
PATIENT = Patience(idle_after_s=AFTER_S)
CLOSING = Patience(idle_after_s=AFTER_S, close_after_s=30.0)


def busy(_: str) -> bool:
    return False


def at_rest(_: str) -> bool:
    return True


class Clock:
    """A carrier whose inputs bring what the test says; event times are in seconds."""

    def __init__(self, *patience: Patience) -> None:
        self.idle = Idle()
        self.patience = patience
        self.newest: list[int | None] = [None] * len(patience)

    def hear(self, *seconds: float | None, now: float, took: float = 1.0) -> None:
        times = [None if s is None else int(s * SECOND) for s in seconds]
        known = zip(self.newest, times, strict=True)
        self.newest = [max((t for t in pair if t is not None), default=None) for pair in known]
        self.idle.hear(batch(times, took), self.newest, self.patience, now)


def batch(newest: Sequence[int | None], seconds: float) -> BatchDone:
    return replace(batch_done("c0", 1, 1, newest), seconds=seconds)


def test_a_lone_input_does_not_age() -> None:
    clock = Clock(PATIENT)
    clock.hear(5, now=100)
    assert list(clock.idle.due(100_000, at_rest)) == []


def test_inputs_that_have_come_equally_far_do_not_age() -> None:
    clock = Clock(PATIENT, PATIENT)
    clock.hear(5, 5, now=100)
    assert list(clock.idle.due(100_000, at_rest)) == []


def test_an_input_holds_back_another_for_so_long_and_no_longer() -> None:
    clock = Clock(PATIENT, PATIENT)
    clock.hear(5, 5, now=100)
    clock.hear(60, None, now=200)
    assert list(clock.idle.due(209, at_rest)) == [], "it is behind since 200, however long it was silent before"
    assert list(clock.idle.due(211, at_rest)) == [Tick("c0", 1, 60 * SECOND)]
    assert list(clock.idle.due(500, at_rest)) == [], "the clock does not move it"
    clock.hear(70, None, now=501)
    assert list(clock.idle.due(513, at_rest)) == [Tick("c0", 1, 70 * SECOND)]


def test_each_input_has_its_own_delay() -> None:
    clock = Clock(replace(PATIENT, delay_us=3 * SECOND), replace(PATIENT, delay_us=7 * SECOND))
    clock.hear(60, None, now=100)
    assert list(clock.idle.due(111, at_rest)) == [Tick("c0", 1, (60 - 3 + 7) * SECOND)]


def test_a_silent_input_follows_the_slowest_that_is_not() -> None:
    clock = Clock(PATIENT, PATIENT, PATIENT)
    clock.hear(5, 5, 5, now=100)
    clock.hear(60, 40, None, now=101)
    clock.hear(61, 41, None, now=112)
    assert list(clock.idle.due(112, busy)) == []
    clock.hear(61, 42, None, now=113)
    assert list(clock.idle.due(113, busy)) == [Tick("c0", 2, 42 * SECOND)]


def test_one_that_never_had_a_tuple_holds_back_others_as_long() -> None:
    clock = Clock(PATIENT, PATIENT)
    clock.hear(60, None, now=100)
    assert list(clock.idle.due(109, at_rest)) == []
    assert list(clock.idle.due(111, at_rest)) == [Tick("c0", 1, 60 * SECOND)]


def test_one_that_may_hold_back_others_for_ever_does() -> None:
    clock = Clock(PATIENT, Patience())
    clock.hear(5, 5, now=100)
    clock.hear(60, None, now=101)
    assert list(clock.idle.due(100_000, at_rest)) == []


def test_the_patience_of_one_is_not_that_of_another() -> None:
    clock = Clock(Patience(idle_after_s=1000), Patience(idle_after_s=1), PATIENT)
    clock.hear(5, 6, 60, now=100)
    assert list(clock.idle.due(102, at_rest)) == [Tick("c0", 1, 5 * SECOND)]
    assert list(clock.idle.due(200, at_rest)) == []
    assert list(clock.idle.due(1101, at_rest)) == [Tick("c0", 0, 60 * SECOND), Tick("c0", 1, 60 * SECOND)]


def test_with_close_after_event_time_goes_on_with_the_clock() -> None:
    clock = Clock(CLOSING)
    clock.hear(5, now=100)
    assert list(clock.idle.due(129, at_rest)) == []
    assert list(clock.idle.due(131, at_rest)) == [Tick("c0", 0, (5 + 31) * SECOND)]
    assert list(clock.idle.due(160, at_rest)) == []
    assert list(clock.idle.due(162, at_rest)) == [Tick("c0", 0, (5 + 62) * SECOND)]


def test_nobody_follows_the_clock_of_another() -> None:
    clock = Clock(CLOSING, PATIENT)
    clock.hear(5, 5, now=100)
    assert list(clock.idle.due(131, at_rest)) == [Tick("c0", 0, (5 + 31) * SECOND)]


def test_a_long_batch_is_no_silence() -> None:
    clock = Clock(PATIENT, CLOSING)
    clock.hear(60, 5, now=100)
    assert list(clock.idle.due(150, busy)) == []


def test_what_came_during_a_batch_is_not_known_to_be_missing() -> None:
    clock = Clock(PATIENT, PATIENT)
    clock.hear(5, 5, now=100)
    clock.hear(6, None, now=101)
    clock.hear(7, None, now=132, took=30)
    assert list(clock.idle.due(132, busy)) == []
    clock.hear(8, None, now=135)
    assert list(clock.idle.due(135, busy)) == [Tick("c0", 1, 8 * SECOND)]
