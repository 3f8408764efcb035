"""About how many rows fragments put out, from the newest micro-batches in the results logs.

Nothing is counted on the way of the data, and nothing of the engine is touched: any thread may look.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from towpath.console.look import CarrierLook
from towpath.control.observe.measures import REMEMBERED, smoothed
from towpath.control.observe.sampling import emitted
from towpath.store.layout import Store


class Rates:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._looked: dict[str, int] = {}  # by carrier, the newest micro-batch that was looked at
        self._rates: dict[str, dict[int, float]] = {}  # by carrier and fragment, rows per second

    def look(self, carriers: Iterable[CarrierLook]) -> dict[int, float]:
        """By fragment; one that put nothing out of late is not there."""
        with self._lock:
            known = {carrier.id: carrier for carrier in carriers}
            self._looked = {name: last for name, last in self._looked.items() if name in known}
            self._rates = {name: rates for name, rates in self._rates.items() if name in known}
            for carrier in known.values():
                if carrier.last > self._looked.get(carrier.id, -1) and carrier.period_s:
                    self._sample(carrier, carrier.period_s)
            return {fragment: rate for rates in self._rates.values() for fragment, rate in rates.items()}

    def _sample(self, carrier: CarrierLook, period_s: float) -> None:
        after = max(self._looked.get(carrier.id, -1), carrier.last - REMEMBERED)
        batches = emitted(self._store.results(carrier.id), after, carrier.last)
        self._looked[carrier.id] = carrier.last
        if not batches:
            return
        seconds = len(batches) * period_s
        before = self._rates.get(carrier.id, {})
        fragments = before.keys() | {fragment for counts in batches.values() for fragment in counts}
        now = {f: sum(counts.get(f, 0) for counts in batches.values()) / seconds for f in fragments}
        new = {f: smoothed(before.get(f) if before else None, rate) for f, rate in now.items()}
        self._rates[carrier.id] = {f: rate for f, rate in new.items() if rate > 1e-3}
