"""What is known of the micro-batches of a carrier since it was started.

Batches may have finished that nobody heard of: those just before a carrier was started again, or a long series between
two polls. On every input a tuple comes at most the allowed delay behind the newest before it, so what an input shows
next bounds what it showed before: newest + delay. Until every input has shown something the carrier is in doubt, and a
fragment that joins has to wait.

The batch that ends the doubt may be one that Spark repeats, with results from a table of earlier on. Therefore its own
tuples count among those before.
"""

from __future__ import annotations

from towpath.runtime.carriers import BatchDone


class Run:
    def __init__(self, inputs: int) -> None:
        self._inputs = range(inputs)
        self._doubtful = set(self._inputs)
        self._batch = -1
        self._highest_us: int | None = None  # no tuple of any batch so far is newer; says nothing while in doubt

    @property
    def sure(self) -> bool:
        return not self._doubtful

    @property
    def heard(self) -> bool:
        return self._batch >= 0

    def hear(self, event: BatchDone, delay_us: int) -> int | None:
        """Takes a batch in; returns the highest event time that may have come before what it reports was in force."""
        if event.first or event.batch != self._batch + 1:
            self._doubtful = set(self._inputs)
        self._batch = event.batch
        before, was_sure = self._highest_us, self.sure
        for n, newest in enumerate(event.newest_us):
            if newest is not None:
                self._raise(newest + (delay_us if event.batch and n in self._doubtful else 0))
                self._doubtful.discard(n)
        if event.batch == 0:
            self._doubtful.clear()  # nothing came before it
        return before if was_sure else self._highest_us

    def _raise(self, event_us: int) -> None:
        self._highest_us = event_us if self._highest_us is None else max(self._highest_us, event_us)
