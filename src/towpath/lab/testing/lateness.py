"""Which rows come too late, in plain Python: what carriers are compared with.

A row is in time when it is at most `delay` behind the newest row of the micro-batches before its own: t >= newest -
delay, both rounded to milliseconds in favour of the row. Rows of one micro-batch are never late for each other.

- Filters pass every row, late or not.
- An aggregate has one input. A row that is late is in none of its windows.
- A join has an input for each schema class. Event time is that of its slowest input, and has not begun before every
  input has had a row. A row that is late is in no combination.

Streams of one class that are read together are one input, with the longest delay among them; `Feed` says which of their
rows come when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MS = 1_000


class Lateness:
    """Of one carrier that joins or aggregates."""

    def __init__(self, *delays_us: int) -> None:
        self._delays = delays_us
        self._newest: list[int | None] = [None] * len(delays_us)

    @property
    def cut_us(self) -> int | None:
        """Rows from before then are late in the next micro-batch; None: no row is."""
        cuts = []
        for newest, delay in zip(self._newest, self._delays, strict=True):
            if newest is None:
                return None
            cuts.append((newest // MS) * MS - ((delay + MS - 1) // MS) * MS)
        return min(cuts)

    def take(self, *times_us: Sequence[int]) -> list[list[bool]]:
        """The event times of one micro-batch, of each input; says which of them are in time."""
        cut = self.cut_us
        found = [[cut is None or time >= cut for time in times] for times in times_us]
        for n, times in enumerate(times_us):
            self.reach(n, *times)
        return found

    def reach(self, input: int, *times_us: int) -> None:
        """Event time goes on without rows: a stream is silent, or the job is drained."""
        known = self._newest[input]
        self._newest[input] = max([*times_us, *([] if known is None else [known])], default=None)


class ModelFeed:
    """Several streams of one class: rows wait until every stream has come so far."""

    def __init__(self, streams: Sequence[str]) -> None:
        self._waiting: dict[str, list[int]] = {name: [] for name in streams}
        self._newest: dict[str, int] = {}

    def take(self, times_us: Mapping[str, Sequence[int]], *, drained: bool = False) -> dict[str, list[int]]:
        """New rows of some streams; returns those that are read now, in the order of their arrival."""
        for name, times in times_us.items():
            self._waiting[name] += times
            if times:
                self._newest[name] = max(*times, self._newest.get(name, times[0]))
        whole = len(self._newest) == len(self._waiting)
        until = max(self._newest.values(), default=None) if drained else min(self._newest.values()) if whole else None
        found = {name: [t for t in times if until is not None and t <= until] for name, times in self._waiting.items()}
        self._waiting = {
            name: [t for t in times if until is None or t > until] for name, times in self._waiting.items()
        }
        return found
