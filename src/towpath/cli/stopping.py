"""Ctrl-C and SIGTERM: both mean the same, and what happens is said by whoever is busy."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_stop(act: Callable[[], object]) -> Iterator[None]:
    """While this lasts, a signal to stop calls `act`; a second one ends the command as it would without this."""
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(*_: Any) -> None:
        restore()
        act()

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


def interrupt() -> None:
    raise KeyboardInterrupt
