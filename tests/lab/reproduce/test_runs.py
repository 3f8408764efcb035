from __future__ import annotations

import pytest

from towpath.lab.reproduce import runs


def squared(number: int) -> int:
    if number == 13:
        raise ValueError("an unlucky number")
    return number * number


@pytest.mark.parametrize("processors", [1, 2])
def test_answers_come_in_the_order_of_the_cases(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_processors", lambda: processors)
    steps: list[tuple[str, float]] = []
    assert runs.run_all(squared, [3, 1, 2], lambda text, done: steps.append((text, done))) == [9, 1, 4]
    assert steps[-1] == ("3 of 3 simulations", 1.0)


@pytest.mark.parametrize("processors", [1, 2])
def test_a_failure_is_not_swallowed(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_processors", lambda: processors)
    with pytest.raises(ValueError, match="unlucky"):
        runs.run_all(squared, [1, 13, 2], lambda text, done: None)
