"""How far event time must go for all windows that have tuples to close, and no further. Decides; does nothing.

Who reads derived streams goes by those who make them: event time is moved on where streams enter, and far enough for
the windows of all levels. Each level begins where the results of the one below end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from towpath.control.decide.controller import Controller
from towpath.control.observe.idle import Tick
from towpath.control.state.records import CarrierRecord
from towpath.plan.assignment import window_of
from towpath.schema import MS, is_link, level, newest_before, stream_of

ROUNDED_US = 2 * MS


class CarrierClosing(NamedTuple):
    """Of one carrier."""

    end_us: int  # what is older is late afterwards
    ticks: Sequence[Tick]


def closings(carriers: Sequence[CarrierRecord], controller: Controller) -> Iterator[CarrierClosing]:
    """A join without windows has answered with its last tuple."""
    makers = controller.links.makers()
    over_links = _last_of_all(carriers, controller, makers)
    for carrier in carriers:
        inputs = [n for n, schema_class in enumerate(carrier.template.family.classes) if not is_link(schema_class)]
        linked = carrier.id in makers or len(inputs) < len(carrier.template.family.classes)
        end_us = over_links if linked else _own_end_us(controller, carrier)
        if inputs and end_us is not None:
            tick_us = newest_before(end_us, carrier.delay_us)
            yield CarrierClosing(end_us, [Tick(carrier.id, n, tick_us) for n in inputs])


def _own_end_us(controller: Controller, carrier: CarrierRecord) -> int | None:
    """Of a carrier that has no part in a link."""
    if carrier.newest_us is None or not carrier.template.family.window:
        return None
    return _last_end_us(controller, carrier, carrier.newest_us) + _lag_us(carrier)


def _last_of_all(carriers: Sequence[CarrierRecord], controller: Controller, makers: set[str]) -> int | None:
    """The end of the last window of those who make links or read them; None if there is none.

    Who reads several links goes by the slowest of those who make them, so all are taken as far as the newest.
    """
    levels: dict[int, list[CarrierRecord]] = {}
    for carrier in carriers:
        levels.setdefault(_level(carrier), []).append(carrier)
    # Results have the ends of windows as their times, so what a level has read says nothing of those below.
    reached_us, end_us, lag_us = _newest_us(carriers, linked=False), None, 0
    for number in sorted(levels):
        concerned = [c for c in levels[number] if number or c.id in makers]
        windowed = [c for c in concerned if c.template.family.window]
        # Spark and a link round to milliseconds at every step.
        lag_us += max(map(_lag_us, concerned), default=0) + (ROUNDED_US if number else 0)
        reached_us = _later(reached_us, _newest_us(concerned, linked=True))
        if windowed and reached_us is not None:
            last_us = max(_last_end_us(controller, c, reached_us) for c in windowed)
            end_us = _later(last_us, end_us)
            if any(c.id in makers for c in windowed):
                reached_us = _later(last_us, reached_us)
    return None if end_us is None else end_us + lag_us


def _newest_us(carriers: Sequence[CarrierRecord], *, linked: bool) -> int | None:
    """Of the tuples that were read of links, or of streams."""
    read = (zip(c.inputs_us, c.template.family.classes, strict=False) for c in carriers)  # nothing at first
    return max((us for c in read for us, class_ in c if us is not None and is_link(class_) == linked), default=None)


def _later(one_us: int | None, other_us: int | None) -> int | None:
    return max((us for us in (one_us, other_us) if us is not None), default=None)


def _level(carrier: CarrierRecord) -> int:
    """How many derived streams lie below what a carrier makes."""
    return max((level(stream_of(c)) for c in carrier.template.family.classes if is_link(c)), default=0)


def _last_end_us(controller: Controller, carrier: CarrierRecord, reached_us: int) -> int:
    """The end of the last window that has tuples."""
    ends = [window_of(row).last_end_us(reached_us) for row in controller.known.rows(carrier.id)]
    return max(ends, default=reached_us)  # without rows there are only windows of queries that have left


def _lag_us(carrier: CarrierRecord) -> int:
    """How far a window behind joins waits for them; Spark and a link round to milliseconds at every step."""
    joins = len(carrier.template.family.classes) - 1
    return joins * carrier.template.family.reach_us + (joins + 1) * ROUNDED_US if joins else 0
