"""How far event time must go for all windows that have tuples to close, and no further. Decides; does nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from towpath.control.decide.controller import Controller
from towpath.control.observe.idle import Tick
from towpath.control.state.records import CarrierRecord
from towpath.plan.assignment import window_of
from towpath.schema import MS, newest_before

ROUNDED_US = 2 * MS


class CarrierClosing(NamedTuple):
    """Of one carrier."""

    end_us: int  # what is older is late afterwards
    ticks: Sequence[Tick]


def closings(
    carriers: Sequence[CarrierRecord], readers: Sequence[CarrierRecord], controller: Controller
) -> Iterator[CarrierClosing]:
    """`readers` are those of them that read links. A join without windows has answered with its last tuple."""
    makers = controller.links.makers()
    newest_us = max((c.newest_us for c in carriers if c.newest_us is not None), default=None)
    for carrier in carriers:
        # The windows of those who read a link are closed by those who make it.
        closed = [carrier, *readers] if carrier.id in makers else [carrier]
        windows = [c for c in closed if c.template.family.window]
        # Who reads several links goes by the slowest of those who make them.
        reached_us = newest_us if carrier.id in makers else carrier.newest_us
        if reached_us is not None and windows and carrier not in readers:
            end_us = max(_last_end_us(controller, c, reached_us) for c in windows) + _lag_us(carrier)
            tick_us = newest_before(end_us, carrier.delay_us)
            inputs = range(len(carrier.template.family.classes))
            yield CarrierClosing(end_us, [Tick(carrier.id, n, tick_us) for n in inputs])


def _last_end_us(controller: Controller, carrier: CarrierRecord, reached_us: int) -> int:
    """The end of the last window that has tuples."""
    ends = [window_of(row).last_end_us(reached_us) for row in controller.known.rows(carrier.id)]
    return max(ends, default=reached_us)  # without rows there are only windows of queries that have left


def _lag_us(carrier: CarrierRecord) -> int:
    """How far a window behind joins waits for them; Spark and a link round to milliseconds at every step."""
    joins = len(carrier.template.family.classes) - 1
    return joins * carrier.template.family.reach_us + (joins + 1) * ROUNDED_US if joins else 0
