"""What is known of the event times that the micro-batches of a carrier had, over all its starts.

The reports of micro-batches are numbered without gaps, and one that was heard of is committed: it never comes again.
So a report that follows the last one heard says that nothing was missed, also after a carrier was started again; the
first one since then may be of a batch that Spark repeats, with results from a table of earlier on, and therefore its
own tuples count among those before.

Reports can be missed: those just before a controller was killed, or a long series on an endpoint while nobody listened.
What an input brought in such a gap is bounded
- by nothing at all if its position is where the last report left it,
- by its position, if that is an event time (feeds and links),
- by the watermark, if the carrier has no other input,
- else by what it shows next, since a tuple comes at most the allowed delay behind the newest. Until then the carrier is
  in doubt, and a fragment that joins has to wait.

When a carrier is started there may be a backlog. The first micro-batch that left nothing unread says where it ended:
what came up to there was there before, and is not `now`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from towpath.control.state.records import CarrierRecord
from towpath.runtime.carriers import BatchDone
from towpath.schema import newest_before


@dataclass
class Run:
    """A carrier that runs."""

    heard: bool = False  # of a micro-batch since it was started
    caught_up: bool = False  # it has read all that was there when it was started
    backlog_us: int | None = None  # the newest event time of that

    def hear(self, event: BatchDone) -> None:
        self.heard = True
        if not self.caught_up:
            known = [us for us in (self.backlog_us, event.known_us, *event.newest_us) if us is not None]
            self.backlog_us = max(known, default=None)
            self.caught_up = not event.more

    def rest(self, carrier: CarrierRecord) -> None:
        """It has nothing to read, and all that it did was heard of."""
        known = [us for us in (self.backlog_us, carrier.known_us, carrier.newest_us) if us is not None]
        self.caught_up, self.backlog_us = True, max(known, default=None)


def hear(carrier: CarrierRecord, event: BatchDone, delays_us: Sequence[int]) -> int | None:
    """Takes a batch in; returns the highest event time that may have come before what it reports was in force.

    It says nothing while the carrier is in doubt. `delays_us` are those of the inputs.
    """
    if event.batch > carrier.last + 1:
        _bridge(carrier, event, delays_us)
    before, was_sure = carrier.highest_us, carrier.sure
    doubtful = set(carrier.doubtful)
    for n, newest in enumerate(event.newest_us):
        if newest is not None:
            _raise(carrier, newest_before(newest, delays_us[n]) if n in doubtful else newest)
            doubtful.discard(n)
    carrier.doubtful = tuple(sorted(doubtful))
    return before if was_sure and not event.first else carrier.highest_us


def _bridge(carrier: CarrierRecord, event: BatchDone, delays_us: Sequence[int]) -> None:
    carrier.doubtful = tuple(sorted({*carrier.doubtful, *_moved(carrier, event)}))
    if len(delays_us) == 1 and carrier.doubtful and event.watermark_us is not None:
        _raise(carrier, newest_before(event.watermark_us, delays_us[0]))
        carrier.doubtful = ()


def _moved(carrier: CarrierRecord, event: BatchDone) -> Iterator[int]:
    """The inputs of which nobody knows what they brought since the last report."""
    for n in range(len(event.newest_us)):
        begin = event.begins[n] if event.begins else None
        if begin is None or not carrier.ends or carrier.ends[n] != begin:
            bound = event.bounds_us[n] if event.bounds_us else None
            if bound is None:
                yield n
            else:
                _raise(carrier, bound)


def _raise(carrier: CarrierRecord, event_us: int) -> None:
    carrier.highest_us = event_us if carrier.highest_us is None else max(carrier.highest_us, event_us)
