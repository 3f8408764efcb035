"""An online auction market in the manner of Nexmark: persons open auctions, persons bid on them.

Of 50 events of the market 1 is a new person, 3 are new auctions and 46 are bids; ids are row numbers. Who is
referred to exists already and is mostly recent, so joins by id within a few seconds find partners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from towpath.streams.base import UTC_US, Arrivals, Generator, Positions, choose, positions

SHARES = {"persons": 1, "auctions": 3, "bids": 46}
EVENTS = sum(SHARES.values())

RECENT_S = 12  # nine of ten references are younger than 10 seconds: sqrt(10/12)
HOT_EVERY, HOT_SHARE = 50, 1 / 3  # one id in 50 is hot; the newest hot one draws a third of all references

CITIES = (("Phoenix", "AZ"), ("Los Angeles", "CA"), ("San Francisco", "CA"), ("Boise", "ID"), ("Portland", "OR"))
FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gia", "Hal", "Ines", "Jo")
LAST_NAMES = ("Abrams", "Baker", "Cruz", "Diaz", "Evans", "Fox", "Grant", "Hill", "Ito", "Jones")
ITEMS = ("lamp", "chair", "clock", "camera", "guitar", "bicycle", "radio", "painting")
CHANNELS, CHANNEL_WEIGHTS = ("web", "app", "partner", "phone"), (50, 35, 12, 3)
CATEGORIES = 5


@dataclass(frozen=True)
class _Table(Arrivals):
    """One table of the market. Its `rate` is its share of the market's rate."""

    table: ClassVar[str]

    def existing(self, table: str, k: Positions) -> Positions:
        """How many rows `table` has when this table's row k comes."""
        return k * np.uint64(SHARES[table]) // np.uint64(SHARES[self.table]) + np.uint64(1)

    def refer(self, name: str, table: str, k: Positions) -> npt.NDArray[np.int64]:
        """The id of an existing row of `table`: a hot one, or one of the last seconds, the newer the likelier."""
        existing = self.existing(table, k)
        span = max(1.0, RECENT_S * self.rate * SHARES[table] / SHARES[self.table])
        age = (np.square(self.uniform(name, k)) * span).astype(np.uint64)
        newest = existing - np.uint64(1)
        hot = newest - newest % np.uint64(HOT_EVERY)
        is_hot = self.uniform(f"{name} is hot", k) < HOT_SHARE
        return np.where(is_hot, hot, newest - age % existing).astype(np.int64)

    def money(self, name: str, k: Positions) -> npt.NDArray[np.float64]:
        """1.00 to 1000.99, half of it below 126."""
        u = self.uniform(name, k)
        return np.floor(100 + 1e5 * u * u * u) / 100


class Persons(_Table):
    table = "persons"
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("email", pa.string()),
            ("city", pa.string()),
            ("state", pa.string()),
            ("at", UTC_US),
        ]
    )

    def batch(self, first: int, last: int) -> pa.RecordBatch:
        k = positions(first, last)
        ids = pa.array(k.astype(np.int64))
        given = choose(FIRST_NAMES, [1] * len(FIRST_NAMES), self.uniform("first name", k))
        family = choose(LAST_NAMES, [1] * len(LAST_NAMES), self.uniform("last name", k))
        home = (self.noise("city", k) % np.uint64(len(CITIES))).astype(np.int64)
        columns = [
            ids,
            pc.binary_join_element_wise(given, family, " "),
            pc.binary_join_element_wise(pc.utf8_lower(given), ids.cast(pa.string()), "@example.com", ""),
            pa.array([city for city, _ in CITIES]).take(pa.array(home)),
            pa.array([state for _, state in CITIES]).take(pa.array(home)),
            pa.array(self.event_times(k), UTC_US),
        ]
        return pa.record_batch(columns, schema=self.schema)


class Auctions(_Table):
    table = "auctions"
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("item", pa.string()),
            ("seller", pa.int64()),
            ("category", pa.int64()),
            ("initial_bid", pa.float64()),
            ("reserve", pa.float64()),
            ("expires", UTC_US),
            ("at", UTC_US),
        ]
    )

    def batch(self, first: int, last: int) -> pa.RecordBatch:
        k = positions(first, last)
        at = self.event_times(k)
        initial = self.money("initial bid", k)
        open_for = 2_000_000 + (self.noise("open for", k) % np.uint64(18_000_000)).astype(np.int64)
        columns = [
            pa.array(k.astype(np.int64)),
            choose(ITEMS, [1] * len(ITEMS), self.uniform("item", k)),
            pa.array(self.refer("seller", "persons", k)),
            pa.array((self.noise("category", k) % np.uint64(CATEGORIES)).astype(np.int64)),
            pa.array(initial),
            pa.array(np.round(initial + self.money("reserve", k), 2)),
            pa.array(at + open_for, UTC_US),
            pa.array(at, UTC_US),
        ]
        return pa.record_batch(columns, schema=self.schema)


class Bids(_Table):
    table = "bids"
    schema = pa.schema(
        [
            ("auction", pa.int64()),
            ("bidder", pa.int64()),
            ("price", pa.float64()),
            ("channel", pa.string()),
            ("url", pa.string()),
            ("at", UTC_US),
        ]
    )

    def batch(self, first: int, last: int) -> pa.RecordBatch:
        k = positions(first, last)
        auctions = pa.array(self.refer("auction", "auctions", k))
        columns = [
            auctions,
            pa.array(self.refer("bidder", "persons", k)),
            pa.array(self.money("price", k)),
            choose(CHANNELS, CHANNEL_WEIGHTS, self.uniform("channel", k)),
            pc.binary_join_element_wise("https://market.example/auctions", auctions.cast(pa.string()), "/"),
            pa.array(self.event_times(k), UTC_US),
        ]
        return pa.record_batch(columns, schema=self.schema)


_TABLES: dict[str, type[Persons | Auctions | Bids]] = {t.table: t for t in (Persons, Auctions, Bids)}


def auction(table: str, rate: float, seed: int, start_us: int, disorder_us: int, rows: int | None) -> Generator:
    """One table of a market that has `rate` events per second over all its tables."""
    share = SHARES[table] / EVENTS
    return _TABLES[table](f"{seed}/{table}", rate * share, start_us, disorder_us, rows)
