"""Which inputs of carriers are silent, and what follows from it for their event time.

- An input that has been silent for `idle_after` while another one was ahead of it holds that one back no longer: its
  event time follows the slowest of those that are not silent. The clock alone never moves it, and what comes first of
  all inputs is never late.
- An input with `close_after` goes on with the clock after so much silence, so that its last windows close. Others do
  not follow it in that.

An input counts as silent only while it is known to have had nothing to read: a micro-batch that takes long says nothing
about what has come meanwhile, and a tick ahead of data that waits would make that data late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from towpath.runtime.carriers import BatchDone
from towpath.schema import in_time_from


@dataclass(frozen=True)
class Patience:
    """Of one input: how long it may be silent, and what its streams allow."""

    idle_after_s: float | None = None  # None: it holds the others back for ever
    close_after_s: float | None = None  # None: silence closes no window
    delay_us: int = 0


class Tick(NamedTuple):
    """An input's event time is to go on without data."""

    carrier: str
    input: int
    event_us: int


@dataclass
class _Input:
    heard: float  # when it last had tuples, by the clock of the caller
    quiet: float  # until when it is known to have had none since
    behind: float | None = None  # since when another input has been ahead of it
    ticked: float = 0.0
    ticked_us: int | None = None  # the last tick

    def silent_s(self, since: float) -> float:
        return self.quiet - max(self.heard, since)


@dataclass
class _Silence:
    patience: Sequence[Patience]
    inputs: list[_Input]
    newest_us: list[int | None] = field(default_factory=list)  # of tuples, not of ticks

    def reached_us(self, n: int) -> int | None:
        newest = self.newest_us[n]
        return None if newest is None else in_time_from(newest, self.patience[n].delay_us)

    def note_who_is_behind(self, now: float) -> None:
        reached = [self.reached_us(n) for n in range(len(self.inputs))]
        front = max((us for us in reached if us is not None), default=None)
        for place, us in zip(self.inputs, reached, strict=True):
            behind = front is not None and (us is None or us < front)
            place.behind = (now if place.behind is None else place.behind) if behind else None

    def idle(self, n: int) -> bool:
        after_s, place = self.patience[n].idle_after_s, self.inputs[n]
        return after_s is not None and place.behind is not None and place.silent_s(place.behind) > after_s

    def followed_us(self, n: int) -> int | None:
        """How far an idle input follows the others."""
        waiting = [self.reached_us(m) for m in range(len(self.inputs)) if not self.idle(m)]
        if any(us is None for us in waiting):
            return None
        return min(us for us in waiting if us is not None) + self.patience[n].delay_us

    def clock_us(self, n: int, now: float) -> int | None:
        after_s, place, newest = self.patience[n].close_after_s, self.inputs[n], self.newest_us[n]
        if after_s is None or newest is None or place.quiet - max(place.heard, place.ticked) <= after_s:
            return None
        place.ticked = now
        return newest + int(place.silent_s(place.heard) * 1e6)


class Idle:
    def __init__(self) -> None:
        self._carriers: dict[str, _Silence] = {}

    def hear(self, event: BatchDone, newest_us: Sequence[int | None], patience: Sequence[Patience], now: float) -> None:
        """A micro-batch is done; `newest_us` is how far the tuples of each input have come by now."""
        self.meet(event.carrier, newest_us, patience, now)
        carrier = self._carriers[event.carrier]
        carrier.newest_us = list(newest_us)
        # What a micro-batch reads is settled when it begins.
        begun = now - event.seconds
        for place, newest in zip(carrier.inputs, event.newest_us, strict=True):
            if newest is not None:
                place.heard = place.quiet = now
            else:
                place.quiet = max(place.quiet, begun)
        carrier.note_who_is_behind(now)

    def meet(self, name: str, newest_us: Sequence[int | None], patience: Sequence[Patience], now: float) -> None:
        """A carrier that runs and may have nothing to read from its start on."""
        if name not in self._carriers:
            carrier = self._carriers[name] = _Silence(patience, [_Input(now, now) for _ in newest_us], list(newest_us))
            carrier.note_who_is_behind(now)

    def forget(self, carriers: Iterable[str]) -> None:
        for carrier in carriers:
            self._carriers.pop(carrier, None)

    def due(self, now: float, waiting: Callable[[str], bool]) -> Iterator[Tick]:
        """What is to be ticked now. `waiting` says that a carrier has no input."""
        for name, carrier in self._carriers.items():
            if self._could_be(carrier, now) and waiting(name):
                for place in carrier.inputs:
                    place.quiet = now
            for n, place in enumerate(carrier.inputs):
                times = (carrier.clock_us(n, now), carrier.followed_us(n) if carrier.idle(n) else None)
                event_us = max((us for us in times if us is not None), default=None)
                if event_us is not None and (place.ticked_us is None or event_us > place.ticked_us):
                    place.ticked_us = event_us
                    yield Tick(name, n, event_us)

    @staticmethod
    def _could_be(carrier: _Silence, now: float) -> bool:
        """Whether it is worth the question: some input would be silent if it had nothing to read until now."""
        for place, patience in zip(carrier.inputs, carrier.patience, strict=True):
            follows = patience.idle_after_s is not None and place.behind is not None
            if follows and now - max(place.heard, place.behind or now) > (patience.idle_after_s or 0):
                return True
            if patience.close_after_s is not None and now - max(place.heard, place.ticked) > patience.close_after_s:
                return True
        return False
