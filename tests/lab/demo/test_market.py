from __future__ import annotations

from towpath.lab.demo.market import EVENTS_PER_S, Market
from towpath.streams.sources import START_US

MARKET = Market.of(20, 10)


def test_the_recorded_streams_are_complete() -> None:
    with MARKET.recorded() as database:
        rows = {name: len(database.table(name).fetchall()) for name in ("persons", "auctions", "bids")}
    assert sum(rows.values()) == MARKET.total_events == 10 * EVENTS_PER_S
    assert rows["bids"] > rows["auctions"] > rows["persons"]


def test_events_are_counted_by_event_time() -> None:
    assert MARKET.events(None) == 0
    assert MARKET.events(START_US + 5_000_000) == 5 * EVENTS_PER_S
    assert MARKET.events(START_US + 99_000_000) == MARKET.total_events
    assert [MARKET.seconds_until(us) for us in (None, START_US + 2_500_000, START_US + 99_000_000)] == [0, 2.5, 10]
