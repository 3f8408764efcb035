"""Keeps a job as busy as it can be: a chunk arrives as soon as all queries have read the one before."""

from __future__ import annotations

import time
from collections.abc import Callable

from towpath.api.running import Towpath
from towpath.errors import RuntimeFailure
from towpath.lab.reproduce.live.plans import LiveSource

LOOK_S = 0.05
PATIENCE_S = 180.0


class LiveDriver:
    def __init__(self, running: Towpath, source: LiveSource) -> None:
        self._running = running
        self._source = source

    def chunk(self, watch: Callable[[], None] = lambda: None) -> float:
        """Seconds until all queries have read one more chunk. Meanwhile `watch` is called."""
        begun = time.monotonic()
        self._source.write()
        while self._read_us() < self._source.newest_us:
            if time.monotonic() > begun + PATIENCE_S:
                raise RuntimeFailure(
                    f"the nodes need more than {PATIENCE_S:.0f} s for {self._source.plan.chunk_rows:,} tuples; "
                    "see that nothing else keeps the machine busy"
                )
            self._running.poll()
            watch()
            time.sleep(LOOK_S)
        return time.monotonic() - begun

    def _read_us(self) -> int:
        """Up to which event time the queries have read, wherever each of them is answered now."""
        state = self._running.engine.controller.state
        fragments = [part.fragment for query in state.queries for part in state.parts_of(query)]
        carriers = {state.fragments[fragment].carrier for fragment in fragments}
        return min(min((t or 0 for t in state.carriers[name].inputs_us), default=0) for name in carriers)
