from __future__ import annotations

import pytest

from towpath.lab.sim.kernel import ACTS, FAULTS, WINDOWS, Kernel, Process, Signal


def run(kernel: Kernel) -> None:
    while kernel.next < float("inf"):
        kernel.step()


def test_orders_by_time_then_urgency_then_age() -> None:
    kernel, seen = Kernel(), []
    for name, time, urgency in [("d", 2.0, FAULTS), ("c", 1.0, WINDOWS), ("a", 1.0, FAULTS), ("b", 1.0, ACTS)]:
        kernel.at(time, lambda name=name: seen.append((kernel.now, name)), urgency)
    kernel.at(1.0, lambda: seen.append((kernel.now, "b2")), ACTS)
    run(kernel)
    assert seen == [(1.0, "a"), (1.0, "b"), (1.0, "b2"), (1.0, "c"), (2.0, "d")]


def test_a_failure_ends_the_simulation_and_says_when() -> None:
    kernel = Kernel()
    kernel.at(1.25, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        run(kernel)
    assert caught.value.__notes__ == ["at 1.250000 simulated seconds"]


@pytest.mark.parametrize("time", [0.5, float("nan")])
def test_the_past_cannot_be_asked_for(time: float) -> None:
    kernel = Kernel()
    kernel.at(1.0, lambda: kernel.at(time, lambda: None))
    with pytest.raises(ValueError, match="past"):
        run(kernel)


def test_a_process_waits_for_seconds_and_signals() -> None:
    kernel, seen = Kernel(), []
    signal, done = Signal(2), Signal(0)

    def process() -> Process:
        yield 1.0
        seen.append(("waited", kernel.now))
        yield signal
        seen.append(("both", kernel.now))
        yield done
        seen.append(("at once", kernel.now))

    kernel.run(process())
    kernel.at(2.0, signal.down)
    kernel.at(3.0, signal.down)
    run(kernel)
    assert seen == [("waited", 1.0), ("both", 3.0), ("at once", 3.0)]
