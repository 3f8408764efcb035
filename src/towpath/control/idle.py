"""Which inputs of carriers have been silent for so long that their event time must go on with the clock.

An input counts as silent only while it is known to have had nothing to read: a micro-batch that takes long says nothing
about what has come meanwhile, and a tick ahead of data that waits would make that data late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from towpath.runtime.carriers import BatchDone


@dataclass
class _Input:
    heard: float  # when it last had tuples, by the clock of the caller
    quiet: float  # until when it is known to have had none since
    ticked: float


class Idle:
    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._inputs: dict[str, list[_Input]] = {}

    def hear(self, event: BatchDone, now: float) -> None:
        # What a micro-batch reads is settled when it begins.
        begun = now - event.seconds
        known = self._inputs.setdefault(event.carrier, [_Input(now, now, now) for _ in event.newest_us])
        for place, newest_us in zip(known, event.newest_us, strict=True):
            if newest_us is not None:
                place.heard = place.quiet = place.ticked = now
            else:
                place.quiet = max(place.quiet, begun)

    def forget(self, carriers: Iterable[str]) -> None:
        for carrier in carriers:
            self._inputs.pop(carrier, None)

    def due(self, now: float, waiting: Callable[[str], bool]) -> Iterator[tuple[str, int, float]]:
        """Carrier, input, and for how many seconds it has been silent. `waiting` tells that a carrier has no input."""
        for carrier, inputs in self._inputs.items():
            late = [i for i in inputs if now - i.ticked > self._after_s]
            if late and waiting(carrier):
                for place in inputs:
                    place.quiet = now
            for n, place in enumerate(inputs):
                if place.quiet - place.ticked > self._after_s:
                    place.ticked = now
                    yield carrier, n, place.quiet - place.heard
