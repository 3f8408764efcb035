from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from towpath.lab.bench.steps import Limit, Measure, Pace, Trigger, find_limit

PACE = Pace(warm_up_s=0, measure_s=0, least_triggers=4)


class Fake:
    """Keeps up with so many queries; every look at it shows four triggers."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.n = 0

    def grow_to(self, n: int) -> None:
        assert n >= self.n, "a system never shrinks"
        self.n = n

    def triggers(self) -> Sequence[Trigger]:
        return [Trigger(0.5 if self.n <= self.limit else 3.0, 5000)] * 4


def limit_of(limit: int, first: int, most: int) -> tuple[Limit, list[int]]:
    tried: list[int] = []

    @contextmanager
    def opened() -> Iterator[Fake]:
        fake = Fake(limit)
        yield fake

    def say(text: str) -> None:
        if text.endswith("starting"):
            tried.append(int(text.split()[0].replace(",", "")))

    return find_limit(opened, first, most, PACE, say), tried


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towpath.lab.bench.steps.time.sleep", lambda seconds: None)


@pytest.mark.parametrize(
    ("limit", "first", "most", "found", "reached", "tried"),
    [
        pytest.param(1000, 10, 80, 80, False, [10, 20, 40, 80], id="more than asked for"),
        pytest.param(45, 10, 80, 40, True, [10, 20, 40, 80, 50], id="a little above a doubling"),
        pytest.param(65, 10, 80, 60, True, [10, 20, 40, 80, 50, 60, 70], id="between two doublings"),
        pytest.param(3, 10, 80, 3, True, [10, 5, 2, 3], id="below the first number"),
        pytest.param(0, 4, 80, 0, True, [4, 2, 1], id="not even one"),
        pytest.param(99, 10, 5, 5, False, [5], id="fewer allowed than the first number"),
    ],
)
def test_the_limit_is_found(limit: int, first: int, most: int, found: int, reached: bool, tried: list[int]) -> None:
    result, steps = limit_of(limit, first, most)
    assert (result.n, result.reached, steps) == (found, reached, tried)


@pytest.mark.parametrize(
    ("seconds", "rows", "keeps_up"),
    [
        pytest.param([0.5] * 20, [5000] * 20, True, id="steady"),
        pytest.param([0.5] * 19 + [9.0], [5000] * 20, True, id="one of twenty may be late"),
        pytest.param([0.5] * 17 + [9.0] * 3, [5000] * 20, False, id="three may not"),
        pytest.param([1.0] * 20, [5000 * n for n in range(1, 21)], False, id="a backlog grows"),
        pytest.param([], [], False, id="nothing was seen"),
    ],
)
def test_keeping_up(seconds: list[float], rows: list[int], keeps_up: bool) -> None:
    triggers = tuple(Trigger(s, r) for s, r in zip(seconds, rows, strict=True))
    assert Measure(1, triggers, longest_s=2.0).keeps_up is keeps_up


def test_a_limit_that_was_not_reached_says_so() -> None:
    assert str(Limit(5000, False, None)) == ">= 5,000"
    assert str(Limit(5000, True, None)) == "5,000"


def test_phases_are_means_over_the_triggers() -> None:
    triggers = (Trigger(1, 1, {"addBatch": 10}), Trigger(1, 1, {"addBatch": 30, "walCommit": 4}))
    assert Measure(1, triggers, 2.0).phases_ms == {"addBatch": 20, "walCommit": 2}
