from __future__ import annotations

import signal

import pytest

from towpath.cli.stopping import SIGNALS, interrupt, on_stop


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_calls_once_and_what_was_there_comes_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    called: list[int] = []
    with on_stop(lambda: called.append(1)):
        signal.raise_signal(number)
        assert signal.getsignal(number) == before
    assert called == [1]
    assert signal.getsignal(number) == before


def test_inside_another_one_the_second_signal_reaches_the_outer() -> None:
    with pytest.raises(KeyboardInterrupt), on_stop(interrupt), on_stop(lambda: None):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
